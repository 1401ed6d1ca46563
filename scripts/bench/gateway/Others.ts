/**
 * Names the proxies of others that the gateway is measured beside, where this machine has them.
 */
import { type Contender, nginx, peer, type Skipped } from "./Contenders.ts";

/** Starts one of them. */
export type Start = () => Promise<Contender | Skipped>;

/** nginx, http-proxy and @llmops/gateway, before one provider. */
export const others = (upstream: string): ReadonlyArray<Start> => [
  () => nginx(upstream),
  () => peer("http-proxy", "HttpProxy.mjs", upstream),
  () =>
    peer("@llmops/gateway", "LlmopsGateway.mjs", upstream, {
      "x-llmops-provider": "openai",
      "x-llmops-custom-host": `${upstream}/v1`,
    }),
];

/** Starts them one behind the other: each is alone on its core while it does. */
export const inOrder = async (starts: ReadonlyArray<Start>): Promise<ReadonlyArray<Contender | Skipped>> => {
  const started: Array<Contender | Skipped> = [];
  for (const start of starts) started.push(await start());
  return started;
};
