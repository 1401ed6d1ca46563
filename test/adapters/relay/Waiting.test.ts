/** What a client hears while nothing is known: the withheld head, and the no-ops behind it. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import {
  call,
  client,
  head,
  layer,
  opening,
  pass,
  planOf,
  reset,
  role,
  scripted,
  settle,
  stop,
  text,
} from "./RelayCases.ts";

const withheld = { head: { withinMs: 45_000 }, keepAliveMs: 15_000 } as const;
const headOf = ({ head: { headers } }: Relay.RelayResponse, name: string): string | undefined =>
  headers.find(([key]) => key.toLowerCase() === name)?.[1];
const counted = (all: string, part: string): number => all.split(part).length - 1;
/** The scripted provider says no `object`: only a no-op of ours has one. */
const noOps = (all: string): number => counted(all, '"object":"chat.completion.chunk"');
const comments = (all: string): number => counted(all, ": keep-alive\n\n");

describe("a head that is withheld", () => {
  it.effect("is that of the attempt which the first bytes come from", () =>
    Effect.gen(function* () {
      const second = { ...head, headers: [...head.headers, ["x-request-id", "second"] as const] };
      const script = scripted([head, role, 10_000, reset()], [second, role, 5_000, text("a"), stop, "end"]);
      const open = yield* opening(planOf(), { ...withheld, transport: yield* script.timed });
      yield* pass(11);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(10);
      const response = yield* Fiber.join(open);
      assert.strictEqual(headOf(response, "x-request-id"), "second");
      assert.strictEqual(headOf(response, "x-recovery-attempts"), "2");
      assert.isUndefined(headOf(response, "x-recovery-waiting"));
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("goes after its time with the newest stream's, and with one of our own where there is none", () =>
    Effect.gen(function* () {
      const early = scripted([head, role, "silence"]);
      const open = yield* opening(planOf(), { ...withheld, transport: early.transport });
      yield* pass(44);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(2);
      assert.strictEqual(headOf(yield* Fiber.join(open), "content-type"), "text/event-stream");
      const none = yield* opening(planOf(), { ...withheld, transport: scripted(["silence"]).transport });
      yield* pass(46);
      const own = yield* Fiber.join(none);
      assert.strictEqual(own.head.status, 200);
      assert.match(headOf(own, "content-type") ?? "", /^text\/event-stream/);
      assert.strictEqual(headOf(own, "x-recovery-waiting"), "true");
      assert.strictEqual(headOf(own, "x-recovery-run"), own.run_id);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("leaves a status to a run that ends before", () =>
    Effect.gen(function* () {
      const { timed } = scripted([head, role, 5_000, reset()], [head, role, reset()]);
      const budget = { max_auto_retries: 1 };
      const open = yield* opening(planOf(), { ...withheld, transport: yield* timed, budget });
      yield* pass(30);
      const error = yield* Effect.flip(Fiber.join(open));
      assert.strictEqual(error.rule, "budget_exhausted");
      assert.strictEqual(error.attempts, 2);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("leaves a status to an error event that was asked again, and none to the provider's last word", () =>
    Effect.gen(function* () {
      const overloaded = 'data: {"error":{"code":503,"message":"overloaded"}}\n\n';
      const passing = scripted([head, overloaded, "end"], [head, role, overloaded, "end"]);
      const budget = { max_auto_retries: 1, max_not_processed: 1 };
      const open = yield* opening(planOf(), { ...withheld, transport: passing.transport, budget });
      yield* pass(30);
      assert.strictEqual((yield* Effect.flip(Fiber.join(open))).attempts, 2);
      const last = 'data: {"error":{"code":"context_length_exceeded","message":"too long"}}\n\n';
      const final = yield* Relay.open(planOf(), { ...withheld, transport: scripted([head, last, "end"]).transport });
      const got = yield* client(final.read);
      yield* settle;
      assert.deepStrictEqual(got, { text: last, end: "not_retryable" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("never goes early for a response that is no stream", () =>
    Effect.gen(function* () {
      const json = { ...head, headers: [["content-type", "application/json"] as const] };
      const script = scripted([100_000, json, '{"choices":[]}', "end"]);
      const clocks = { first_progress: false, idle: false } as const;
      const plan = planOf({ stream: false });
      const open = yield* opening(plan, { ...withheld, transport: yield* script.timed, clocks });
      yield* pass(99);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(2);
      const response = yield* Fiber.join(open);
      assert.strictEqual(headOf(response, "content-type"), "application/json");
      const got = yield* client(response.read);
      yield* settle;
      assert.deepStrictEqual(got, { text: '{"choices":[]}', end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("of a stream is never followed by a document", () =>
    Effect.gen(function* () {
      const json = { ...head, headers: [["content-type", "application/json"] as const] };
      const script = scripted([60_000, reset()], [json, '{"choices":[{"message":{"content":"hi"}}]}', "end"]);
      const budget = { max_auto_retries: 1 };
      const open = yield* opening(planOf(), { ...withheld, transport: yield* script.timed, budget });
      yield* pass(46);
      const got = yield* client((yield* Fiber.join(open)).read);
      yield* pass(60);
      assert.strictEqual(got.end, "not_retryable");
      assert.notInclude(got.text, "hi");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("waits for a document that is under way where a stream was asked for, and no longer than its attempt", () =>
    Effect.gen(function* () {
      const json = { ...head, headers: [["content-type", "application/json"] as const] };
      const body = '{"choices":[{"message":{"content":"hi"}}]}';
      const clocks = { first_progress: false, idle: false } as const;
      const whole = scripted([json, 60_000, body, "end"]);
      const open = yield* opening(planOf(), { ...withheld, transport: yield* whole.timed, clocks });
      yield* pass(59);
      assert.isUndefined(open.pollUnsafe());
      yield* pass(2);
      const response = yield* Fiber.join(open);
      assert.strictEqual(headOf(response, "content-type"), "application/json");
      const got = yield* client(response.read);
      yield* settle;
      assert.deepStrictEqual(got, { text: body, end: "end" });
      const broken = scripted([json, 60_000, reset()], ["silence"]);
      const other = yield* opening(planOf(), { ...withheld, transport: yield* broken.timed, clocks });
      yield* pass(62);
      assert.strictEqual(headOf(yield* Fiber.join(other), "x-recovery-waiting"), "true");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("of our own makes a document behind it unreadable, which costs one request", () =>
    Effect.gen(function* () {
      const json = { ...head, headers: [["content-type", "application/json"] as const] };
      const script = scripted([60_000, json, '{"choices":[]}', "end"]);
      const clocks = { first_progress: false, idle: false } as const;
      const open = yield* opening(planOf(), { ...withheld, transport: yield* script.timed, clocks });
      yield* pass(46);
      const got = yield* client((yield* Fiber.join(open)).read);
      yield* pass(20);
      assert.strictEqual(got.end, "not_retryable");
      assert.strictEqual(script.seen.opened, 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});

describe("a client that waits behind a head", () => {
  it.effect("gets no BOM behind a no-op: it would be read as a part of the first event's name", () =>
    Effect.gen(function* () {
      const bom = "\uFEFF";
      for (const [wait, lost] of [
        [1_000, false],
        [70_000, true],
      ] as const) {
        const script = scripted([wait, head, `${bom}${role}`, text("a"), stop, "end"]);
        const clocks = { first_progress: false, idle: false } as const;
        const open = yield* opening(planOf(), { ...withheld, transport: yield* script.timed, clocks });
        yield* pass(46);
        const got = yield* client((yield* Fiber.join(open)).read);
        yield* pass(40);
        assert.strictEqual(got.text.includes(bom), !lost, String(wait));
        assert.include(got.text, role);
        assert.strictEqual(comments(got.text) > 0, lost);
      }
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("gets comments before the response has begun, or events where it counts those", () =>
    Effect.gen(function* () {
      for (const firstNoOp of ["comment", "event"] as const) {
        const { timed } = scripted([head, role, 100_000, text("a"), stop, "end"]);
        const options = { ...withheld, transport: yield* timed, firstNoOp, clocks: { first_progress: false } } as const;
        const open = yield* opening(planOf(), options);
        yield* pass(46);
        const got = yield* client((yield* Fiber.join(open)).read);
        yield* pass(50);
        const [events, lines] = [noOps(got.text), comments(got.text)];
        assert.deepStrictEqual([events, lines], firstNoOp === "event" ? [3, 0] : [0, 3]);
        yield* pass(10);
        assert.strictEqual(got.end, "end");
        assert.isTrue(got.text.endsWith(role + text("a") + stop), got.text);
      }
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("never gets a comment where its protocol's clients refuse them", () =>
    Effect.gen(function* () {
      const url = "https://api.example/v1beta/models/m:streamGenerateContent?alt=sse";
      const { transport } = scripted([head, "silence"]);
      const open = yield* opening(planOf({ contents: [] }, url), { ...withheld, transport });
      yield* pass(46);
      const got = yield* client((yield* Fiber.join(open)).read);
      yield* pass(31);
      assert.strictEqual(counted(got.text, '"parts":[{"text":""}]'), 2);
      assert.notInclude(got.text, ":keep");
      assert.notMatch(got.text, /^:/m);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("survives a healthy response of any length: held whole, and one long call held in live", () =>
    Effect.gen(function* () {
      const clocks = { first_progress: false, idle: false } as const;
      const long = [text("a"), ...Array.from({ length: 40 }, () => [60_000, text("b")] as const).flat()];
      const whole = scripted([head, role, ...long, stop, "end"]);
      const options = { ...withheld, clocks, reveal: "on_complete" } as const;
      const held = yield* opening(planOf(), { ...options, transport: yield* whole.timed });
      yield* pass(46);
      const got = yield* client((yield* Fiber.join(held)).read);
      yield* pass(40 * 60);
      assert.strictEqual(got.end, "end");
      // One every 15 s from the head on, and in place of the last one the response.
      assert.strictEqual(comments(got.text) + noOps(got.text), (40 * 60 - 45) / 15 - 1);
      const calling = scripted([head, text("a"), call, ...Array.from({ length: 20 }, () => 60_000), stop, "end"]);
      const live = yield* Relay.open(planOf(), { ...withheld, clocks, transport: yield* calling.timed });
      const called = yield* client(live.read);
      yield* pass(20 * 60 + 1);
      assert.strictEqual(called.end, "end");
      assert.isAtLeast(noOps(called.text), 79);
      // Between whole events only, and none behind the marker.
      const events = called.text.split("\n\n").slice(0, -1);
      for (const event of events) JSON.parse(event.slice("data: ".length));
      assert.isTrue(called.text.endsWith(call + stop));
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("gets its response as live once a hold has lasted as long as it may", () =>
    Effect.gen(function* () {
      const { timed } = scripted([head, role, text("a"), 60_000, text("b"), 60_000, call, 60_000, stop, "end"]);
      const clocks = { first_progress: false, idle: false } as const;
      const options = { ...withheld, clocks, reveal: "on_complete", holdMaxMs: 30_000 } as const;
      const open = yield* opening(planOf(), { ...options, transport: yield* timed });
      yield* pass(31);
      const got = yield* client((yield* Fiber.join(open)).read);
      yield* settle;
      assert.strictEqual(got.text, role + text("a"));
      yield* pass(30);
      assert.isTrue(got.text.endsWith(text("b")));
      yield* pass(115);
      assert.notInclude(got.text, "pay");
      yield* pass(10);
      assert.isTrue(got.text.endsWith(call + stop));
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("gets none where its provider alone is silent behind text, nor from a reader that is busy", () =>
    Effect.gen(function* () {
      const clocks = { idle: false } as const;
      const spoken = scripted([head, text("a"), "silence"]);
      const live = yield* Relay.open(planOf(), { ...withheld, clocks, transport: spoken.transport });
      const got = yield* client(live.read);
      yield* pass(60);
      assert.strictEqual(got.text, text("a"));
      const held = scripted([head, text("a"), call, "silence"]);
      const slow = yield* Relay.open(planOf(), { ...withheld, clocks, transport: held.transport });
      yield* slow.read;
      // The socket takes nothing for an hour: what is due meanwhile is not written behind it.
      yield* pass(3_600);
      const later = yield* client(slow.read);
      yield* pass(16);
      assert.strictEqual(noOps(later.text), 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("ends the second half of a line end that comes behind a no-op", () =>
    Effect.gen(function* () {
      const line = (it: string): string => it.replaceAll("\n", "\r\n");
      const { timed } = scripted([head, line(text("a")).slice(0, -1), `\n${line(call)}`, 20_000, line(stop), "end"]);
      const response = yield* Relay.open(planOf(), { ...withheld, transport: yield* timed });
      const got = yield* client(response.read);
      yield* pass(16);
      assert.match(got.text, /\r\n\r\n\n?data: \{"id":"chatcmpl-1"/);
      yield* pass(10);
      assert.strictEqual(got.end, "end");
      for (const event of got.text.split(/(?:\r?\n){2,}/).slice(0, -1)) JSON.parse(event.slice("data: ".length));
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is kept while a question is open, and goes on with the answer", () =>
    Effect.gen(function* () {
      const { timed } = scripted([head, role, 50_000, reset()], [head, role, text("b"), stop, "end"]);
      const tools = [{ type: "mcp", server_label: "shop" }];
      const clocks = { first_progress: false } as const;
      const options = { ...withheld, clocks, asks: "if_it_matters" } as const;
      const open = yield* opening(planOf({ tools }), { ...options, transport: yield* timed });
      yield* pass(46);
      const got = yield* client((yield* Fiber.join(open)).read);
      yield* pass(300);
      assert.isAtLeast(comments(got.text), 20);
      const recorder = yield* RunRecorder;
      const [run] = yield* recorder.runs();
      const revision = run?.questions[0]?.revision ?? 0;
      assert.include(run?.questions[0]?.choices ?? [], "retry");
      yield* recorder.answer({ run_id: run?.run_id ?? "", revision, choice: "retry", by: "person" });
      yield* pass(5);
      assert.strictEqual(got.end, "end");
      assert.isTrue(got.text.endsWith(role + text("b") + stop));
    }).pipe(
      Effect.scoped,
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(UserDecisions.layerDurable({ parkAfterMs: Number.POSITIVE_INFINITY })),
          Layer.provideMerge(RunRecorder.layerMemory()),
        ),
      ),
    ),
  );
});

describe("the end of a run behind a head", () => {
  const overloaded = 'data: {"error":{"code":503,"message":"overloaded"}}\n\n';
  const last = 'data: {"error":{"code":"context_length_exceeded","message":"too long"}}\n\n';
  /** How a response ends that was shown its first text before the rest came. */
  const ends = (ending: Relay.RelayOptions["ending"], first: string, ...steps: ReadonlyArray<string | Error>) =>
    Effect.gen(function* () {
      const transport = yield* scripted([head, first, 1_000, ...steps]).timed;
      const budget = { max_auto_retries: 0, max_not_processed: 0 };
      const response = yield* Relay.open(planOf(), { ...withheld, transport, budget, ...(ending && { ending }) });
      const got = yield* client(response.read);
      yield* pass(2);
      return { ...got, last: response.last() };
    });

  it.effect("hands a passing error event on, but not to a client that is told in better words", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ends("break", text("a"), overloaded, "end")).text, text("a") + overloaded);
      const told = yield* ends("tell", text("a"), overloaded, "end");
      assert.strictEqual(told.text, text("a"));
      assert.strictEqual(told.end, "text_shown");
      assert.strictEqual(told.last?.id, "chatcmpl-1");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("hands on what is the provider's last word", () =>
    Effect.gen(function* () {
      for (const ending of ["break", "tell"] as const) {
        const got = yield* ends(ending, text("a"), last, "end");
        assert.deepStrictEqual([got.text, got.end], [text("a") + last, "not_retryable"]);
      }
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is the provider's own clean end where that is asked for, behind what may leave and without a call", () =>
    Effect.gen(function* () {
      const cut = yield* ends("as_provider", text("a"), "end");
      assert.deepStrictEqual([cut.text, cut.end], [text("a"), "end"]);
      const calling = yield* ends("as_provider", text("a"), call, "end");
      assert.deepStrictEqual([calling.text, calling.end], [text("a"), "end"]);
      const broken = yield* ends("as_provider", text("a"), reset());
      assert.strictEqual(broken.end, "text_shown");
      const error = yield* ends("as_provider", text("a"), overloaded, "end");
      assert.deepStrictEqual([error.text, error.end], [text("a") + overloaded, "end"]);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is the provider's own clean end for a response that was held whole, and a failure without any bytes", () =>
    Effect.gen(function* () {
      const options = {
        ...withheld,
        reveal: "on_complete",
        ending: "as_provider",
        budget: { max_auto_retries: 0 },
      } as const;
      const { transport } = scripted([head, role, text("a"), "end"]);
      const got = yield* client((yield* Relay.open(planOf(), { ...options, transport })).read);
      yield* settle;
      assert.deepStrictEqual(got, { text: role + text("a"), end: "end" });
      const nothing = scripted([head, "end"]);
      const error = yield* Effect.flip(Relay.open(planOf(), { ...options, transport: nothing.transport }));
      assert.strictEqual(error.rule, "budget_exhausted");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});

describe("a client that goes away while it waits", () => {
  it.effect("ends the run at once: before the head, behind it, and between two no-ops", () =>
    Effect.gen(function* () {
      const before = scripted(["silence"]);
      const open = yield* opening(planOf(), { ...withheld, transport: before.transport });
      yield* pass(10);
      yield* Fiber.interrupt(open);
      assert.strictEqual(before.seen.opened, 1);
      const behind = scripted([head, role, "silence"]);
      const held = yield* opening(planOf(), { ...withheld, transport: behind.transport });
      yield* pass(46);
      const response = yield* Fiber.join(held);
      const got = yield* client(response.read);
      yield* pass(20);
      assert.isTrue(yield* response.cancel);
      yield* settle;
      assert.strictEqual(got.end, "user_cancelled");
      assert.strictEqual(behind.seen.aborted, 1);
      const text = got.text;
      yield* TestClock.adjust("1 hour");
      assert.strictEqual(got.text, text);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});
