/**
 * Checks that runs of promises keep the laws of the Effect entry: text is shown once, a reader that leaves ends its run, a tool runs once,
 * and code answers questions.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import {
  AnswerRefused,
  createRecovery,
  type PromiseAttempt,
  type PromiseRecovery,
  type PromiseRun,
  type PromiseRunOptions,
  RunInterrupted,
  ToolRefused,
} from "../../../src/adapters/promise/PromiseRecovery.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import type { CallReference } from "../../../src/runtime/contract/ToolCall.ts";
import { turn } from "../../Polling.ts";

/** Maximum virtual time of a test, in seconds: less than the default of any clock. */
const secondsMax = 85;

/** Plays a body with a recovery of its own, and lets the time of the test pass while it waits. */
const play = <A>(body: (recovery: PromiseRecovery, recorder: RunRecorder["Service"]) => Promise<A>) =>
  Effect.gen(function* () {
    const services = yield* Layer.build(RunRecorder.layerMemory());
    const context = yield* Effect.context<never>();
    const recorder = Layer.merge(Layer.succeedContext(services), Layer.succeedContext(context));
    const recovery = yield* Effect.acquireRelease(
      Effect.sync(() => createRecovery({ recorder })),
      (it) => Effect.promise(it.close),
    );
    const memory = yield* Effect.provideContext(RunRecorder, services);
    const fiber = yield* Effect.forkChild(Effect.promise(() => body(recovery, memory)));
    for (let second = 0; fiber.pollUnsafe() === undefined; second += 1) {
      assert.isBelow(second, secondsMax, "it does not end");
      for (let step = 0; step < 4; step += 1) yield* turn;
      yield* TestClock.adjust("1 second");
    }
    return yield* Fiber.join(fiber);
  }).pipe(Effect.scoped);

const hangUp = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

const observe = (part: string): Observation.Observation => {
  if (part === "[end]") return Observation.terminal("stop");
  if (part === "[start]") return Observation.lifecycle;
  if (part === "[call]")
    return Observation.calls([{ choice: 0, ordinal: 0, id: "c1", tool: "pay", executor: "runtime", phase: "ready" }]);
  return Observation.text(part.length);
};

/** A provider that plays one script for each attempt; an error breaks it, and `wait` waits for its signal. */
const scripted = (...scripts: ReadonlyArray<ReadonlyArray<string | Error>>) => {
  const seen: Array<PromiseAttempt> = [];
  const attempt = async function* (context: PromiseAttempt) {
    const script = scripts[Math.min(seen.length, scripts.length - 1)] ?? [];
    seen.push(context);
    for (const step of script) {
      if (typeof step !== "string") throw step;
      if (step === "wait") await new Promise((done) => context.signal.addEventListener("abort", done));
      else yield step;
    }
  };
  return { attempt, seen };
};

const request = (attempt: PromiseRunOptions<string>["attempt"]): PromiseRunOptions<string> => ({
  provider: { id: "example", reasoning: false },
  tools: [],
  attempt,
  observe,
  runId: "run",
});

/** What a caller has on its screen, and the kinds of all events. */
const read = async (run: PromiseRun<string>, onEvent: (event: RunEvent<string>) => unknown = () => undefined) => {
  const kinds: Array<string> = [];
  let screen = "";
  for await (const event of run) {
    kinds.push(event._tag);
    if (event._tag === "Part" && !event.part.startsWith("[")) screen += event.part;
    if (event._tag === "AttemptDiscarded") screen = "";
    await onEvent(event);
  }
  return { kinds, screen };
};

const failureOf = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => assert.fail(`expected a failure, got ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );

const interrupted = async (promise: Promise<unknown>): Promise<RunInterrupted> => {
  const error = await failureOf(promise);
  assert.instanceOf(error, RunInterrupted);
  // Narrowed by the line above, which assert does not tell the compiler.
  return error as RunInterrupted;
};

describe("a run of promises", () => {
  it.effect("repeats a request of which nothing was shown, and gives the answer once", () =>
    play(async (recovery) => {
      const { attempt, seen } = scripted(["[start]", hangUp()], ["[start]", "Hello", "[end]"]);
      const { kinds, screen } = await read(recovery.recover(request(attempt)));
      assert.strictEqual(screen, "Hello");
      assert.strictEqual(seen.length, 2);
      assert.strictEqual(kinds.at(-1), "RunCompleted");
    }),
  );

  it.effect("accepts a promise of an iterable, and a request that fails before it has one", () =>
    play(async (recovery) => {
      const { attempt } = scripted(["Hello", "[end]"]);
      let requests = 0;
      const later = async (context: PromiseAttempt) => {
        requests += 1;
        if (requests === 1) throw hangUp();
        return attempt(context);
      };
      assert.strictEqual((await read(recovery.recover(request(later)))).screen, "Hello");
      assert.strictEqual(requests, 2);
    }),
  );

  it.effect("sends nothing before it is read, and is read once", () =>
    play(async (recovery) => {
      const { attempt, seen } = scripted(["Hello", "[end]"]);
      const run = recovery.recover(request(attempt));
      assert.strictEqual(seen.length, 0);
      await read(run);
      assert.throws(() => run[Symbol.asyncIterator](), "once");
      assert.strictEqual(seen.length, 1);
    }),
  );

  it.effect("shows no text twice: after text it stops, with the provider's own error as the cause", () =>
    play(async (recovery) => {
      const error = hangUp();
      const { attempt, seen } = scripted(["Hello", error]);
      const end = await interrupted(read(recovery.recover(request(attempt))));
      assert.deepStrictEqual([end.reason, end.rule], ["stopped", "text_shown"]);
      assert.strictEqual(end.cause, error);
      assert.strictEqual(seen.length, 1);
    }),
  );

  it.effect("does what code answers, once", () =>
    play(async (recovery, recorder) => {
      const { attempt, seen } = scripted(["Hello", hangUp()], ["Hello", " world", "[end]"]);
      const run = recovery.recover(request(attempt));
      const { kinds, screen } = await read(run, (event) => {
        if (event._tag !== "QuestionAsked") return;
        assert.throws(() => run.answer("it_ran"), "expected one of retry, accept, stop, got it_ran");
        run.answer("retry");
        assert.throws(() => run.answer("retry"), "no question is open");
      });
      assert.strictEqual(screen, "Hello world");
      assert.includeMembers(kinds, ["QuestionAsked", "QuestionAnswered", "AttemptDiscarded"]);
      assert.strictEqual(seen.length, 2);
      const record = await Effect.runPromise(recorder.run("run"));
      assert.deepStrictEqual(
        record?.questions.map(({ answer }) => answer),
        ["retry"],
      );
    }),
  );

  it.effect("refuses an answer while no question is open", () =>
    play(async (recovery) => {
      const { attempt } = scripted(["Hello", "[end]"]);
      const run = recovery.recover(request(attempt));
      assert.throws(() => run.answer("retry"), AnswerRefused);
      await read(run);
    }),
  );

  it.effect("ends when its reader leaves the loop, and aborts the request", () =>
    play(async (recovery, recorder) => {
      const { attempt, seen } = scripted(["Hello", "wait"]);
      for await (const event of recovery.recover(request(attempt))) if (event._tag === "Part") break;
      assert.isTrue(seen[0]?.signal.aborted);
      const record = await Effect.runPromise(recorder.run("run"));
      assert.deepStrictEqual([record?.state, record?.end?.reason], ["ended", "consumer_finished"]);
    }),
  );

  it.effect("ends when it is disposed while its reader waits", () =>
    play(async (recovery) => {
      const { attempt, seen } = scripted(["wait"]);
      const reading = await (async () => {
        await using run = recovery.recover(request(attempt));
        const events = run[Symbol.asyncIterator]();
        assert.strictEqual((await events.next()).value?._tag, "AttemptStarted");
        const pending = events.next();
        return { events, pending };
      })();
      assert.isTrue((await reading.pending).done);
      assert.isTrue((await reading.events.next()).done);
      assert.isTrue(seen.every(({ signal }) => signal.aborted));
    }),
  );

  it.effect("sends nothing if it is closed before it is read", () =>
    play(async (recovery) => {
      const { attempt, seen } = scripted(["Hello", "[end]"]);
      const run = recovery.recover(request(attempt));
      await run.close();
      assert.deepStrictEqual((await read(run)).kinds, []);
      assert.strictEqual(seen.length, 0);
    }),
  );

  it.effect("closes a source that opens after its reader has left", () =>
    play(async (recovery) => {
      const opening = Promise.withResolvers<AsyncIterable<string>>();
      let returned = false;
      const parts: AsyncIterable<string> = {
        [Symbol.asyncIterator]: () => ({
          next: () => assert.fail("a source that nobody reads was read"),
          return: async () => {
            returned = true;
            return { done: true, value: undefined };
          },
        }),
      };
      const run = recovery.recover(request(() => opening.promise));
      const events = run[Symbol.asyncIterator]();
      await events.next();
      const pending = events.next();
      await run.close();
      opening.resolve(parts);
      assert.isTrue((await pending).done);
      await new Promise(setImmediate);
      assert.isTrue(returned);
    }),
  );

  it.effect("counts an abort of its signal as the user's Stop", () =>
    play(async (recovery) => {
      const stop = new AbortController();
      const { attempt, seen } = scripted(["Hello", "wait"]);
      const run = recovery.recover({ ...request(attempt), signal: stop.signal });
      const end = await interrupted(read(run, (event) => event._tag === "Part" && stop.abort()));
      assert.deepStrictEqual([end.reason, end.rule], ["do_not_retry", "user_cancelled"]);
      assert.isTrue(seen[0]?.signal.aborted);
    }),
  );

  it.effect("replays a stalled request, and aborts it first", () =>
    play(async (recovery) => {
      const { attempt, seen } = scripted(["wait"], ["Hello", "[end]"]);
      const run = recovery.recover({ ...request(attempt), clocks: { first_progress: "5 seconds" } });
      assert.strictEqual((await read(run)).screen, "Hello");
      assert.deepStrictEqual(
        seen.map(({ signal }) => signal.aborted),
        [true, false],
      );
    }),
  );

  it.effect("renews the credentials once", () =>
    play(async (recovery) => {
      const asked: Array<string> = [];
      const { attempt } = scripted([Object.assign(new Error("expired"), { status: 401 })], ["Hello", "[end]"]);
      const run = recovery.recover({ ...request(attempt), refreshCredentials: async () => asked.push("renewed") });
      assert.strictEqual((await read(run)).screen, "Hello");
      assert.deepStrictEqual(asked, ["renewed"]);
    }),
  );
});

describe("a tool of promises", () => {
  it.effect("runs each call once, and its outcome continues the answer", () =>
    play(async (recovery) => {
      const paid: Array<string> = [];
      const pay = recovery.guardTool("pay", "mutating", async (invoice: string) => {
        paid.push(invoice);
        return `paid ${invoice}`;
      });
      const { attempt } = scripted(["[call]", "wait"]);
      const later = scripted(["Done", "[end]"]);
      const run = recovery.recover({
        ...request(attempt),
        tools: [pay],
        canContinue: later.attempt,
        clocks: { idle: 5_000 },
      });
      const outcomes: Array<unknown> = [];
      const { screen } = await read(run, async (event) => {
        for (const call of event._tag === "Part" ? (event.calls ?? []) : []) {
          outcomes.push(await pay.run(call, "42"));
          outcomes.push(await failureOf(pay.run(call, "42")));
        }
      });
      assert.strictEqual(screen, "Done");
      assert.deepStrictEqual(paid, ["42"]);
      assert.strictEqual(outcomes[0], "paid 42");
      assert.instanceOf(outcomes[1], ToolRefused);
      assert.deepStrictEqual(
        later.seen[0]?.calls.map(({ outcome }) => outcome),
        ["settled"],
      );
    }),
  );

  it.effect("is asked for again if its response broke before it started, and the first call stays refused", () =>
    play(async (recovery) => {
      const paid: Array<string> = [];
      const pay = recovery.guardTool("pay", "mutating", (invoice: string) => paid.push(invoice));
      const { attempt } = scripted(["[call]", hangUp()], ["[call]", "[end]"]);
      const rules: Array<string> = [];
      const refused: Array<unknown> = [];
      let first: CallReference | undefined;
      await read(recovery.recover({ ...request(attempt), tools: [pay] }), async (event) => {
        if (event._tag === "RetryScheduled") rules.push(event.rule);
        for (const call of event._tag === "Part" ? (event.calls ?? []) : []) {
          if (first === undefined) first = call;
          else {
            refused.push(await failureOf(pay.run(first, "the first")));
            await pay.run(call, "the second");
          }
        }
      });
      assert.deepStrictEqual([rules, paid], [["tool_calls_fenced"], ["the second"]]);
      assert.instanceOf(refused[0], ToolRefused);
    }),
  );

  it.effect("rejects with its handler's own error", () =>
    play(async (recovery) => {
      const error = new Error("no money");
      const pay = recovery.guardTool("pay", "mutating", () => Promise.reject(error));
      const { attempt } = scripted(["[call]", "[end]"]);
      let thrown: unknown;
      await read(recovery.recover({ ...request(attempt), tools: [pay] }), async (event) => {
        for (const call of event._tag === "Part" ? (event.calls ?? []) : [])
          thrown = await failureOf(pay.run(call, ""));
      });
      assert.strictEqual(thrown, error);
    }),
  );
});

describe("a recovery of promises", () => {
  it.effect("ends its runs when it closes, and refuses later ones", () =>
    play(async (recovery) => {
      const { attempt } = scripted(["wait"]);
      const reading = interrupted(read(recovery.recover(request(attempt))));
      await new Promise(setImmediate);
      await recovery.close();
      assert.strictEqual((await reading).rule, "lifecycle_closed");
      await failureOf(read(recovery.recover({ ...request(attempt), runId: "later" })));
    }),
  );
});
