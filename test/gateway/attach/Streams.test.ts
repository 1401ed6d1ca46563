import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric, Redacted } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { found, until } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { front, paths } from "../GatewayCases.ts";
import { again, ask, attach, clientOf, eventsOf, longMs, stage, whole } from "./AttachCases.ts";

const events = eventsOf("anthropic-messages");
const all = Buffer.concat(events);
const key = { "x-api-key": "sk-ant-one" } as const;

/** A run whose client has left behind so many events. */
const left = (count: number, program = {}) =>
  Effect.gen(function* () {
    const it = yield* stage(events, program);
    const first = ask(it, "anthropic-messages", key);
    const provider = yield* it.nth(0);
    provider.send(count);
    yield* Effect.promise(() => first.head);
    first.leave();
    const run = yield* it.lingers("left");
    return { ...it, provider, run };
  });

describe("The stream of a run", () => {
  it.live("continues with the next byte, wherever the client's connection was cut", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      it.provider.finish();
      yield* it.lingers("ended");
      for (let at = 0; at <= all.byteLength; at += 97) {
        const got = yield* whole(attach(it, it.run, { ...key, "last-event-id": String(at) }));
        assert.isTrue(got.body.equals(all.subarray(at)), `from ${at}`);
        assert.isFalse(got.broken);
        assert.strictEqual(got.head?.headers["x-recovery-attached"], String(at));
      }
      assert.lengthOf(it.asked, 1);
    }),
  );

  it.live("is its client's alone: 404 for another credential, another token's holder and any other name", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      for (const headers of [{}, { "x-api-key": "sk-ant-two" }, { authorization: "Bearer sk-ant-one" }]) {
        for (const method of ["GET", "HEAD", "DELETE"]) {
          const got = yield* whole(attach(it, it.run, headers, method));
          assert.strictEqual(got.head?.statusCode, 404, method);
        }
      }
      assert.strictEqual((yield* whole(attach(it, "gw_other", key))).head?.statusCode, 404);
      assert.strictEqual((yield* whole(attach(it, it.run, key, "POST"))).head?.statusCode, 405);
      assert.lengthOf(yield* it.attachable, 1, "nobody has cancelled it");
    }),
  );

  it.live("is no document of a browser", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      const got = yield* whole(
        attach(it, it.run, { ...key, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }),
      );
      assert.strictEqual(got.head?.statusCode, 403);
    }),
  );

  it.live("refuses a place that it has not sent, and what is no number of bytes", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      for (const at of ["x", "-1", String(all.byteLength + 1)]) {
        const got = yield* whole(attach(it, it.run, { ...key, "last-event-id": at }));
        assert.strictEqual(got.head?.statusCode, 400, at);
      }
    }),
  );

  it.live("answers HEAD without replacing the reader, with no-store and without an id", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      const reader = attach(it, it.run, key);
      yield* it.lingers("read");
      const got = yield* whole(attach(it, it.run, key, "HEAD"));
      assert.strictEqual(got.head?.statusCode, 200);
      assert.strictEqual(got.head?.headers["cache-control"], "no-store, no-transform");
      assert.strictEqual(got.body.byteLength, 0);
      it.provider.finish();
      const read = yield* whole(reader);
      assert.isFalse(read.broken);
      assert.isTrue(read.body.equals(all));
      assert.match(read.head?.headers["cache-control"] ?? "", /no-store/);
    }),
  );

  it.live("has one reader: a second one takes the place of the first, whose connection breaks", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      const first = attach(it, it.run, key);
      yield* it.lingers("read");
      yield* Effect.promise(() => first.head);
      const second = attach(it, it.run, key);
      const broken = yield* whole(first);
      assert.isTrue(broken.broken);
      it.provider.finish();
      const got = yield* whole(second);
      assert.isTrue(got.body.equals(all));
      assert.lengthOf(it.asked, 1);
    }),
  );

  it.live("is read while the first client still reads: that one loses its place", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const first = ask(it, "anthropic-messages", key);
      (yield* it.nth(0)).send(4);
      const head = yield* Effect.promise(() => first.head);
      const second = attach(it, String(head.headers["x-recovery-run"]), key);
      assert.isTrue((yield* whole(first)).broken);
      (yield* it.nth(0)).finish();
      assert.isTrue((yield* whole(second)).body.equals(all));
      assert.lengthOf(it.asked, 1);
    }),
  );

  it.live("is cancelled by its living reader too", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const first = ask(it, "anthropic-messages", key);
      (yield* it.nth(0)).send(4);
      const head = yield* Effect.promise(() => first.head);
      const run = String(head.headers["x-recovery-run"]);
      assert.strictEqual((yield* whole(attach(it, run, key, "DELETE"))).head?.statusCode, 204);
      assert.isTrue((yield* whole(first)).broken);
      assert.strictEqual(yield* it.until((runs) => runs[0]?.end?.reason), "user_cancelled");
    }),
  );

  it.live("is served over HTTP/1.0, to its clean end", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      it.provider.finish();
      yield* it.lingers("ended");
      const { hostname, port } = new URL(it.url);
      const text = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            const socket = connect(Number(port), hostname);
            let got = "";
            socket.on("data", (chunk) => {
              got += chunk.toString("latin1");
            });
            socket.on("close", () => resolve(got));
            socket.write(
              `GET /recovery/streams/${it.run} HTTP/1.0\r\nhost: ${hostname}:${port}\r\nx-api-key: sk-ant-one\r\n\r\n`,
            );
          }),
      );
      const body = text.slice(text.indexOf("\r\n\r\n") + 4);
      assert.isTrue(Buffer.from(body, "latin1").equals(all), text.slice(0, 400));
    }),
  );

  it.live("is not another token's, though both send the same provider key", () =>
    Effect.gen(function* () {
      const token = (name: string) => ({
        ...{ name, token: Redacted.make(`${name}-${"x".repeat(16)}`), page: false, metrics: false },
      });
      const it = yield* stage(events, { tokens: [token("red"), token("blue")] });
      const of = (name: string) => ({ ...key, "x-recovery-token": `${name}-${"x".repeat(16)}` });
      const first = ask(it, "anthropic-messages", of("red"));
      const provider = yield* it.nth(0);
      provider.send(4);
      first.leave();
      const run = yield* it.lingers("left");
      assert.strictEqual((yield* whole(attach(it, run, of("blue")))).head?.statusCode, 404);
      const other = ask(it, "anthropic-messages", { ...of("blue"), ...again });
      (yield* it.nth(1)).finish();
      assert.isTrue((yield* whole(other)).body.equals(all));
      const own = ask(it, "anthropic-messages", { ...of("red"), ...again });
      provider.finish();
      assert.isTrue((yield* whole(own)).body.equals(all));
      assert.lengthOf(it.asked, 2);
    }),
  );
});

/** Repeats that attached so far; other tests of this file count too. */
const repeats = (context: Context.Context<never>): number =>
  Metric.snapshotUnsafe(context)
    .filter(({ attributes, id }) => id === "stream_recovery.gateway.attached" && attributes?.how === "repeat")
    .reduce((sum, { state }) => sum + ("count" in state ? Number(state.count) : 0), 0);

describe("A run without its client", () => {
  it.live("ends with the gateway: a shutdown waits for no client that may come back", () =>
    Effect.gen(function* () {
      const runs = yield* Effect.scoped(
        Effect.gen(function* () {
          const it = yield* left(4, { limits: { drainMs: longMs } });
          return Effect.orDie(Context.get(it.services, RunRecorder).runs());
        }),
      );
      assert.strictEqual((yield* runs)[0]?.end?.reason, "lifecycle_closed");
    }),
  );

  it.live("is no new run for its repeat: one run on record, and a metric of its own", () =>
    Effect.gen(function* () {
      const it = yield* left(4);
      const before = repeats(it.services);
      const second = ask(it, "anthropic-messages", { ...key, ...again });
      it.provider.finish();
      yield* whole(second);
      yield* it.until((runs) => runs[0]?.end);
      assert.lengthOf(yield* it.runs, 1);
      yield* found(Effect.map(it.gateway.serving, (serving) => (serving === 0 ? true : undefined)));
      assert.strictEqual(repeats(it.services), before + 1);
    }),
  );

  it.live("attaches a document too, where its client did not ask for a stream", () =>
    Effect.gen(function* () {
      let requests = 0;
      let answer = () => {};
      const document = JSON.stringify({
        ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
        choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
      });
      const at = yield* serverOf((request, response) => {
        requests += 1;
        request.resume();
        answer = () => {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(document);
        };
      });
      const { url } = yield* front(at, { lingerMs: longMs });
      const body = JSON.stringify({ model: "m", messages: [] });
      const asking = (headers = {}) =>
        clientOf(`${url}${paths["openai-chat"]}`, {
          body,
          headers: { "content-type": "application/json", ...headers },
        });
      const first = asking();
      yield* until(() => requests > 0);
      first.leave();
      yield* whole(first);
      const second = asking(again);
      answer();
      const got = yield* whole(second);
      assert.strictEqual(got.body.toString(), document);
      assert.strictEqual(requests, 1);
    }),
  );
});
