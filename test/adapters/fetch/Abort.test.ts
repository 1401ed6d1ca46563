import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, ManagedRuntime } from "effect";
import type { RelayRun } from "../../../src/adapters/fetch/FetchRecovery.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { moments, sent, stalled } from "../../ClientAborts.ts";
import { found, until } from "../../Polling.ts";
import { protocols, read, setup } from "./Cases.ts";

const reasonOf = (promise: Promise<unknown>) =>
  Effect.promise(() =>
    promise.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );

/** A caller of `fetch`, which knows nothing of Effect, aborts here. */
const abortController = (): AbortController => new AbortController();

/** How a run ended, once that is on record. */
const ended = (runtime: ManagedRuntime.ManagedRuntime<RunRecorder, never>, run: () => string) =>
  Effect.promise(() =>
    runtime.runPromise(
      Effect.flatMap(RunRecorder, (recorder) =>
        found(
          Effect.map(
            Effect.suspend(() => recorder.run(run())),
            (record) => record?.end,
          ),
        ),
      ),
    ),
  );

describe("a client that goes away", () => {
  for (const protocol of protocols) {
    for (const [name, answer] of moments) {
      it.live(`stops its ${protocol} upstream at once ${name}, as its user's cancel`, () =>
        Effect.gen(function* () {
          const { post, server } = yield* setup({ answers: [answer] });
          const controller = abortController();
          const reason = new Error("enough");
          const body = post(protocol, { signal: controller.signal }).then(read);
          const failed = reasonOf(body.then(({ error }) => Promise.reject(error)));
          yield* server.until((rows) => rows.find((row) => sent(row, answer)));
          controller.abort(reason);
          assert.strictEqual(yield* failed, reason);
          assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
          assert.strictEqual((yield* server.log).length, 1);
        }),
      );
    }
  }

  it.live("gets its own reason if it leaves before the request is on its way, and nothing is sent", () =>
    Effect.gen(function* () {
      const { post, server } = yield* setup({ answers: [{ content: [{ text: 1 }] }] });
      const controller = abortController();
      const reason = new Error("enough");
      const failed = reasonOf(post("openai-chat", { signal: controller.signal }));
      controller.abort(reason);
      assert.strictEqual(yield* failed, reason);
      assert.strictEqual((yield* server.log).length, 0);
    }),
  );

  for (const [name, answer] of moments) {
    for (const [whose, why, end] of [
      ["its user's cancel", undefined, "user_cancelled"],
      ["no user's cancel where its own time limit aborts", new DOMException("", "TimeoutError"), "caller_interrupted"],
    ] as const)
      it.live(`is on record as ${whose} ${name}`, () =>
        Effect.gen(function* () {
          const runtime = ManagedRuntime.make(StreamProcessor.layerDefault);
          const runs: Array<string> = [];
          const options = { runtime, onEvent: (_: unknown, run: RelayRun) => void runs.push(run.run_id) };
          const { post, server } = yield* setup({ answers: [answer] }, options);
          const controller = abortController();
          const body = post("openai-chat", { signal: controller.signal }).then(read);
          yield* server.until((rows) => rows.find((row) => sent(row, answer)));
          controller.abort(why);
          yield* reasonOf(body);
          yield* server.ended(1);
          assert.strictEqual((yield* ended(runtime, () => runs[0] ?? "")).reason, end);
          yield* Effect.promise(() => runtime.dispose());
        }),
      );
  }

  it.live("ends the wait before a retry", () =>
    Effect.gen(function* () {
      const refused = { status: 503, headers: { "retry-after": "30" } };
      const { events, post, server } = yield* setup({ answers: [refused] });
      const controller = abortController();
      const failed = reasonOf(post("openai-chat", { signal: controller.signal }));
      yield* server.ended(1);
      // The wait is announced by an event.
      yield* until(() => events.some((event) => event._tag === "RetryScheduled"));
      controller.abort();
      assert.strictEqual(Reflect.get(Object(yield* failed), "name"), "AbortError");
      assert.strictEqual((yield* server.log).length, 1);
    }),
  );

  it.live("cancels by its body as by its signal", () =>
    Effect.gen(function* () {
      const { events, post, server } = yield* setup({ answers: [stalled("event", 4)] });
      const response = yield* Effect.promise(() => post("openai-chat"));
      const reader = response.body?.getReader();
      yield* Effect.promise(async () => reader?.read());
      yield* Effect.promise(async () => reader?.cancel());
      assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
      assert.notInclude(
        events.map((event) => event._tag),
        "RunCompleted",
      );
    }),
  );

  it.live("has cancelled nothing once the marker is out", () =>
    Effect.gen(function* () {
      // The connection stays open behind the last event.
      const open = { content: [{ text: 1 }], break: { kind: "stall", at: "event", n: 99 } } as const;
      const { events, post, server } = yield* setup({ answers: [open] });
      const response = yield* Effect.promise(() => post("openai-chat"));
      const reader = response.body?.getReader();
      const decoder = new TextDecoder();
      yield* Effect.promise(async () => {
        for (let text = ""; !text.includes('"stop"'); ) {
          const next = await reader?.read();
          text += decoder.decode(next?.value, { stream: true });
        }
        await reader?.cancel();
      });
      yield* server.ended(1);
      assert.notInclude(
        events.map((event) => event._tag),
        "RunInterrupted",
      );
    }),
  );

  it.live("may also just forget its response: what cannot be read any more ends", () =>
    Effect.gen(function* () {
      const { post, server } = yield* setup({ answers: [stalled("event", 4)] });
      yield* Effect.promise(async () => void (await post("openai-chat")));
      setFlagsFromString("--expose-gc");
      const collect: unknown = runInNewContext("gc");
      assert.isFunction(collect);
      let closed = false;
      const ended = yield* Effect.forkChild(
        Effect.tap(server.ended(1), () => Effect.sync(() => (closed = true))),
        { startImmediately: true },
      );
      while (!closed) {
        if (typeof collect === "function") collect();
        yield* Effect.promise(() => new Promise((done) => setImmediate(done)));
      }
      assert.strictEqual((yield* Fiber.join(ended)).outcome, "client_closed");
    }),
  );

  it.live("gets its own reason at once where its signal was aborted before", () =>
    Effect.gen(function* () {
      const { post, server } = yield* setup(undefined);
      const error = yield* reasonOf(post("openai-chat", { signal: AbortSignal.abort(new Error("no")) }));
      assert.strictEqual(Reflect.get(Object(error), "message"), "no");
      assert.strictEqual((yield* server.log).length, 0);
    }),
  );
});
