/**
 * Runs without a defined path whose caller rotates hosts: a dead host holds back no request to another one.
 */
import { createServer } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Stream } from "effect";
import { ProviderClient } from "../../../src/client/index.ts";
import { protocols } from "../../../src/provider/Protocols.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { providersMax } from "../../../src/runtime/pacing/Throttle.ts";
import { ReportedOrigins } from "../../../src/runtime/run/ReportedOrigins.ts";
import { Reached } from "../../../src/runtime/run/Shared.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../../src/testing/index.ts";

const provider = { id: "rotating", model: "m", reasoning: false } as const;

describe("The origins at which a provider was seen", () => {
  /** Origins, some of which are down. */
  const origins = (...down: ReadonlyArray<string>) => {
    const paths = new Set(down);
    const seen = new ReportedOrigins({
      standing: ({ path }) => ({ path: paths.has(path) ? "down" : "up", cooldownMs: 0 }),
    });
    return { paths, seen, next: () => seen.next(provider, undefined).path };
  };

  it("are the path of the next request, but never replace the run's own path", () => {
    const { next, seen } = origins();
    assert.strictEqual(next(), "rotating");
    seen.saw(provider, "https://a.test");
    assert.strictEqual(next(), "https://a.test");
    assert.strictEqual(seen.next(provider, "own").path, "own");
    assert.strictEqual(seen.next({ ...provider, id: "other" }, undefined).path, "other");
  });

  it("hold a request back by none that is down while another one is up", () => {
    const { next, paths, seen } = origins();
    seen.saw(provider, "https://a.test");
    seen.saw(provider, "https://b.test");
    paths.add("https://b.test");
    assert.strictEqual(next(), "https://a.test");
  });

  it("let one request find out if there is another host, and then hold back those to the same one", () => {
    const { next, paths, seen } = origins();
    seen.saw(provider, "https://a.test");
    paths.add("https://a.test");
    assert.strictEqual(next(), "rotating");
    seen.saw(provider, "https://a.test");
    assert.strictEqual(next(), "https://a.test");
    paths.delete("https://a.test");
    seen.saw(provider, "https://a.test");
    paths.add("https://a.test");
    assert.strictEqual(next(), "rotating", "each outage is found out anew");
  });

  it("count only if the last three requests went there, so a host that was used once does not end the waits for another", () => {
    const { next, paths, seen } = origins();
    seen.saw(provider, "https://b.test");
    seen.saw(provider, "https://a.test");
    paths.add("https://a.test");
    assert.strictEqual(next(), "https://b.test");
    seen.saw(provider, "https://a.test");
    assert.strictEqual(next(), "https://b.test");
    seen.saw(provider, "https://a.test");
    assert.strictEqual(next(), "https://a.test");
  });

  it("are forgotten with the provider that was used least recently, above 256 providers", () => {
    const { seen } = origins();
    const of = (id: string) => seen.next({ id }, undefined).path;
    for (let each = 0; each < providersMax; each += 1) seen.saw({ id: `p${each}` }, `https://${each}.test`);
    seen.saw({ id: "p0" }, "https://0.test");
    assert.strictEqual(of("p1"), "https://1.test");
    seen.saw({ id: "new" }, "https://new.test");
    assert.deepStrictEqual(["p0", "p1", "p2", "new"].map(of), [
      "https://0.test",
      "p1",
      "https://2.test",
      "https://new.test",
    ]);
    assert.strictEqual(providersMax, 256);
  });
});

describe("The providers that have responded", () => {
  it("are the 256 latest ones", () => {
    const reached = new Reached();
    for (let each = 0; each < 256; each += 1) reached.add(`p${each}`);
    reached.add("p0");
    assert.deepStrictEqual([reached.has("p0"), reached.size], [true, 256]);
    reached.add("new");
    assert.deepStrictEqual(
      [reached.has("p0"), reached.has("p1"), reached.has("new"), reached.size],
      [false, true, true, 256],
    );
  });
});

/** A port that refuses connections. */
const refusing = Effect.callback<string>((resume) => {
  const server = createServer();
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    server.close(() => resume(Effect.succeed(`http://127.0.0.1:${port}`)));
  });
});

describe("A caller that rotates two hosts, one of which is dead", () => {
  it.live("gets its answers from the other one, without a wait for the dead one", () =>
    Effect.gen(function* () {
      const living = yield* FaultProvider.make({});
      const dead = yield* refusing;
      const client = yield* ProviderClient;
      const { run } = yield* StreamProcessor;
      const openChat = (host: string, { bytes, delivery }: AttemptContext) =>
        client.stream({
          protocol: protocols.get("openai-chat"),
          url: `${host}/v1/chat/completions`,
          body: { model: "m", stream: true, messages: [] },
          bytes,
          delivery,
        });
      // The caller rotates the hosts, so the run knows nothing of them.
      const hosts = [living.url, dead];
      let turn = 0;
      const played = () =>
        Stream.runCollect(
          run({
            provider,
            tools: [],
            // A run that waited for a path would wait longer than the test.
            budget: { max_outage_ms: 1_000 },
            attempt: (context) => openChat(hosts[turn++ % hosts.length] ?? dead, context),
            observe: (part) => part.observation,
          }),
        );
      for (let n = 0; n < 4; n += 1) {
        const events = yield* played();
        const tags = events.map(({ _tag }) => _tag);
        assert.notInclude(tags, "Waiting", `run ${n}`);
        assert.strictEqual(tags.at(-1), "RunCompleted", `run ${n}`);
      }
      assert.isAbove(turn, 4, "some attempts met the dead host");
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(StreamProcessor.layerDefault, ProviderClient.layer()))),
  );
});
