/**
 * Lists the other proxies that the gateway is compared with, if this machine has them.
 */
import { type Contender, nginx, peer, type Skipped } from "./Contenders.ts";

/** Starts one proxy. */
export type Start = () => Promise<Contender | Skipped>;

/** nginx, http-proxy and @llmops/gateway in front of one provider. */
export const others = (upstream: string): ReadonlyArray<Start> => [
  () => nginx(upstream),
  () => peer("http-proxy", "HttpProxy.mjs", upstream),
  () =>
    peer("@llmops/gateway", "LlmopsGateway.mjs", upstream, {
      "x-llmops-provider": "openai",
      "x-llmops-custom-host": `${upstream}/v1`,
    }),
];

/** Starts them one after another, so that each has its core to itself while it starts. */
export const startInOrder = async (starts: ReadonlyArray<Start>): Promise<ReadonlyArray<Contender | Skipped>> => {
  const started: Array<Contender | Skipped> = [];
  for (const start of starts) started.push(await start());
  return started;
};
