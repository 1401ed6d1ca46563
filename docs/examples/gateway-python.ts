/**
 * The gateway in front of a Python program, which only gets another base URL. In a terminal: `npx stream-recovery serve`, and
 * `OPENAI_BASE_URL=http://127.0.0.1:8787/v1` for the program.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Context, Effect, Layer } from "effect";
import { Gateway, GatewayLayers } from "effect-stream-recovery/gateway";
import { FaultProvider } from "effect-stream-recovery/testing";

const python = `
import json, os, urllib.request
body = {"model": "gpt-5", "stream": True, "messages": [{"role": "user", "content": "Say hello"}]}
headers = {"content-type": "application/json", "authorization": "Bearer not-a-key"}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as lines:
    for line in lines:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                print(choice["delta"].get("content") or "", end="", flush=True)
`;

const answers = [
  { content: [{ text: 3 }], break: { kind: "rst", at: "after_head" } },
  { content: [{ text: 3 }] },
] as const;

const program = Effect.gen(function* () {
  const provider = yield* FaultProvider.make({ script: { answers } });
  const upstreams = { openai: `${provider.url}/v1` }; // the real one: leave out `upstreams`
  const services = yield* Layer.build(GatewayLayers.layer({ db: "memory", port: 0, upstreams }));
  const env = { ...process.env, OPENAI_BASE_URL: `${Context.get(services, Gateway).url}/v1`, NO_PROXY: "127.0.0.1" };
  const child = spawn("python3", ["-c", python], { stdio: "inherit", env });
  yield* Effect.promise(() => once(child, "close"));
});
await Effect.runPromise(Effect.scoped(program));
