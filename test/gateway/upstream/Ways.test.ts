import { createServer as createHttps } from "node:https";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { proxyServer } from "../../client/EgressProxyServer.ts";
import { answer } from "../../client/Server.ts";
import { key, localhost } from "../../failure/provoked/Certificates.ts";
import { listening } from "../../Servers.ts";
import { front, post, recovery } from "../GatewayCases.ts";

/** A provider behind TLS that says who asked it, and dies with its first connection where it is told to. */
const provider = (seen: Array<string | undefined>, cut: () => void) =>
  listening(
    createHttps({ key, cert: localhost }, (request, response) => {
      seen.push(request.headers.authorization);
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (seen.length > 1) {
        response.end(answer);
        return;
      }
      response.flushHeaders();
      cut();
    }),
  );

describe("two upstreams of one protocol", () => {
  it.live(
    "are reached at once by a proxy with a password and without one, each with its own credential, also when the proxy dies",
    () =>
      Effect.gen(function* () {
        const seen: Array<string | undefined> = [];
        let cut = (): void => undefined;
        const port = yield* provider(seen, () => cut());
        const proxy = yield* proxyServer({ login: "corp:hunter2", names: { localhost: port } });
        cut = proxy.kill;
        const team = Redacted.make(proxy.url.replace("://", "://corp:hunter2@"));
        const common = { headers: [], ca: localhost };
        const gateway = yield* front("http://127.0.0.1:1", {
          named: [
            { ...common, name: "team", url: "https://localhost/v1", proxy: team, credential: Redacted.make("sk-team") },
            { ...common, name: "own", url: `https://localhost:${port}/v1`, proxy: "direct" },
          ],
        });
        const headers = ["host", "127.0.0.1", "authorization", "Bearer client"];
        const broken = yield* post(`${gateway.url}/u/team`, "openai-chat", { headers });
        assert.strictEqual(broken.text, answer);
        assert.strictEqual(recovery(broken, "attempts"), "2");
        const [first, second] = yield* Effect.all(
          [
            post(`${gateway.url}/u/team`, "openai-chat", { headers }),
            post(`${gateway.url}/u/own`, "openai-chat", { headers }),
          ],
          { concurrency: 2 },
        );
        assert.deepStrictEqual([first.text, second.text], [answer, answer]);
        assert.deepStrictEqual([...seen].sort(), [
          "Bearer client",
          "Bearer sk-team",
          "Bearer sk-team",
          "Bearer sk-team",
        ]);
        assert.isTrue(
          proxy.asked.every(({ head, target }) => target === "localhost:443" && !/Bearer|sk-team/.test(head)),
        );
        assert.notMatch(JSON.stringify(yield* gateway.until((runs) => runs)), /hunter2|Y29ycDpodW50ZXIy/);
      }),
  );
});
