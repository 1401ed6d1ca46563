/**
 * What a provider says behind its error event, or behind a finish that cannot be read, reaches the client too.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Scope } from "effect";
import { TestClock } from "effect/testing";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import type { RelayPlan } from "../../../src/adapters/relay/RelayPlan.ts";
import { behindBytesMax, behindMs } from "../../../src/adapters/relay/RelaySource.ts";
import type { RelayHead } from "../../../src/adapters/relay/RelayTransport.ts";
import { dataFrame, namedFrame } from "../../samples/Json.ts";
import { head, layer, planOf, type Step, scripted as scriptedSteps, settle, shown } from "./RelayCases.ts";

/** A transport whose attempts all begin with the same head. */
const scripted = (...attempts: ReadonlyArray<ReadonlyArray<Step>>) =>
  scriptedSteps(...attempts.map((steps) => [head, ...steps]));

const planAt = (path: string, body: object): RelayPlan => planOf(body, `https://api.example/v1/${path}`);

const responses = planAt("responses", { input: "x" });
const chat = planAt("chat/completions", { messages: [] });
const messages = planAt("messages", { messages: [] });

const sse = (frame: Readonly<Record<string, unknown>>): string =>
  typeof frame.type === "string" ? namedFrame(frame) : dataFrame(frame);

const created = sse({ type: "response.created", response: { id: "r", status: "in_progress", output: [] } });
const vague = sse({ type: "error", code: "server_error", message: "The server had an error", param: null });
const error = { code: "insufficient_quota", message: "You exceeded your current quota" };
const failed = sse({ type: "response.failed", response: { id: "r", status: "failed", error } });

/** Reads to the end: everything that left, and how it ended. */
const readAll = Effect.fnUntraced(function* (answer: Relay.RelayResponse) {
  let all = "";
  const read = Effect.gen(function* () {
    for (;;) {
      const bytes = yield* answer.read;
      if (bytes === undefined) return "END" as const;
      all += shown(bytes);
    }
  });
  const end = yield* Effect.catchTag(read, "RelayInterrupted", (broken) => Effect.succeed(broken));
  return { all, end };
});

describe("Relay: behind an error event", () => {
  it.effect("the final event leaves with it, in one piece or apart, and its reason is the failure", () =>
    Effect.gen(function* () {
      for (const steps of [
        [created + vague + failed, "end"],
        [created, vague, failed, "end"],
        [created, vague.slice(0, 20), vague.slice(20) + failed.slice(0, 30), failed.slice(30), "end"],
        [created + vague, failed, new Error("read ECONNRESET")],
      ] satisfies ReadonlyArray<ReadonlyArray<Step>>) {
        const { seen, transport } = scripted(steps);
        const answer = yield* Relay.open(responses, { transport });
        const { all, end } = yield* readAll(answer);
        assert.strictEqual(all, created + vague + failed);
        assert.deepInclude(end === "END" ? {} : end.failure, { kind: "rejected", reason: "quota", in_band: true });
        assert.strictEqual(seen.opened, 1);
      }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a provider that says no more is waited for half a second, and a half event never leaves", () =>
    Effect.gen(function* () {
      const refused = sse({ type: "error", error: { type: "invalid_request_error", message: "no" } });
      const { transport } = scripted([created, refused, "event: half", "silence"]);
      const answer = yield* Relay.open(responses, { transport });
      const reading = yield* Effect.forkChild(readAll(answer), { startImmediately: true });
      yield* settle;
      yield* TestClock.adjust(behindMs - 1);
      yield* settle;
      assert.isUndefined(reading.pollUnsafe());
      yield* TestClock.adjust(1);
      yield* settle;
      const { all, end } = yield* Fiber.join(reading);
      assert.strictEqual(all, created + refused);
      assert.notStrictEqual(end, "END");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a provider that does not stop is read to a limit", () =>
    Effect.gen(function* () {
      const refused = sse({ type: "error", error: { type: "invalid_request_error", message: "no" } });
      const more = sse({ type: "response.note", text: "x".repeat(300_000) });
      const { seen, transport } = scripted([refused, ...Array.from({ length: 50 }, () => more)]);
      const answer = yield* Relay.open(responses, { transport });
      const { all } = yield* readAll(answer);
      assert.isBelow(all.length, behindBytesMax + 2 * more.length);
      assert.strictEqual(seen.aborted, 1);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a provider that does not stop, and whose bytes never become an event, is read to the same limit", () =>
    Effect.gen(function* () {
      const refused = sse({ type: "error", error: { type: "invalid_request_error", message: "no" } });
      const more = "x".repeat(100_000);
      const { seen, transport } = scripted([refused, ...Array.from({ length: 60 }, () => more)]);
      const answer = yield* Relay.open(responses, { transport });
      const { all } = yield* readAll(answer);
      assert.strictEqual(all, refused);
      assert.isBelow(seen.reads * more.length, behindBytesMax + 4 * more.length);
      assert.strictEqual(seen.aborted, 1);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a client that leaves meanwhile ends it, and a failure that is replayed leaves nothing of it", () =>
    Effect.gen(function* () {
      const hanging = scripted([created, vague, "silence"]);
      const scope = yield* Scope.make();
      const answer = yield* Relay.open(responses, { transport: hanging.transport }).pipe(Scope.provide(scope));
      const reading = yield* Effect.forkChild(Effect.flip(answer.read), { startImmediately: true });
      yield* settle;
      yield* answer.cancel;
      assert.strictEqual((yield* Fiber.join(reading)).rule, "user_cancelled");
      assert.strictEqual(hanging.seen.aborted, 1);

      const whole = sse({ type: "response.completed", response: { id: "r", status: "completed", output: [] } });
      const again = scripted([created, vague, "end"], [created, whole, "end"]);
      const second = yield* Relay.open(responses, { transport: again.transport });
      const all = yield* Effect.forkChild(readAll(second), { startImmediately: true });
      yield* settle;
      yield* TestClock.adjust("10 seconds");
      yield* settle;
      assert.deepStrictEqual(yield* Fiber.join(all), { all: created + whole, end: "END" });
    }).pipe(Effect.provide(layer)),
  );
});

describe("Relay: behind a finish whose call cannot be read", () => {
  const call = { index: 0, id: "c", function: { name: "write", arguments: '{"a' } };
  const chunk = (delta: object, finish_reason: string | null) => sse({ choices: [{ index: 0, delta, finish_reason }] });
  const usage = sse({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
  const begun = chunk({ role: "assistant", content: "Hm" }, null);
  const cut = chunk({ tool_calls: [call] }, null) + chunk({}, "tool_calls");
  const done = "data: [DONE]\n\n";

  it.effect("a chat whose call cannot be read is withheld once nothing repeats it any more", () =>
    Effect.gen(function* () {
      for (const steps of [
        [begun + cut + usage + done, "end"],
        [begun, cut, usage, done, "end"],
      ] satisfies ReadonlyArray<ReadonlyArray<Step>>) {
        const { seen, transport } = scripted(steps);
        const answer = yield* Relay.open(chat, { transport, budget: { max_auto_retries: 0 } });
        assert.deepNestedInclude(yield* readAll(answer), { all: "", "end.rule": "budget_exhausted" });
        assert.strictEqual(seen.opened, 1);
      }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a message whose call cannot be read is withheld once nothing repeats it any more", () =>
    Effect.gen(function* () {
      const frames = [
        sse({ type: "message_start", message: { usage: { input_tokens: 1 } } }),
        sse({ type: "content_block_start", index: 0, content_block: { type: "text", text: "Hm" } }),
        sse({
          type: "content_block_start",
          index: 1,
          content_block: { type: "tool_use", id: "t", name: "write", input: {} },
        }),
        sse({ type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"a' } }),
        sse({ type: "content_block_stop", index: 1 }),
        sse({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } }),
        sse({ type: "message_stop" }),
      ];
      const { transport } = scripted([...frames, "end"]);
      const answer = yield* Relay.open(messages, { transport, budget: { max_auto_retries: 0 } });
      assert.deepNestedInclude(yield* readAll(answer), { all: "", "end.rule": "budget_exhausted" });
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a call that the limit cut is asked for once, and every byte leaves", () =>
    Effect.gen(function* () {
      const finish = sse({
        choices: [{ index: 0, delta: {}, finish_reason: "tool_calls", native_finish_reason: "length" }],
      });
      const body = [begun, chunk({ tool_calls: [call] }, null), finish, usage, done];
      for (const reveal of ["live", "on_complete"] as const) {
        const { seen, transport } = scripted([...body, "end"]);
        const answer = yield* Relay.open(chat, { transport, reveal });
        assert.deepStrictEqual(yield* readAll(answer), { all: body.join(""), end: "END" });
        assert.strictEqual(seen.opened, 1);
      }
    }).pipe(Effect.provide(layer)),
  );
});

describe("Relay: a response that its provider keeps", () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  const whole = sse({ type: "response.completed", response: { id: "r", status: "completed", output: [] } });

  it.effect("is not posted a second time once the request may have arrived", () =>
    Effect.gen(function* () {
      const seenOf = [
        [created, reset],
        [created, "end"],
      ] satisfies ReadonlyArray<ReadonlyArray<Step>>;
      // A background job may be unknown; a stored response exists once its first event has come.
      for (const kept of [{ background: true, store: true }, { background: true }, { store: true }])
        for (const steps of "background" in kept ? [...seenOf, [reset]] : seenOf) {
          const { seen, transport } = scripted(steps, [created, whole, "end"]);
          const plan = planAt("responses", { input: "x", ...kept });
          const answer = yield* Relay.open(plan, { transport, reveal: "on_complete" });
          assert.strictEqual((yield* Effect.flip(answer.read)).rule, "side_effects_unprovable");
          assert.strictEqual(seen.opened, 1);
        }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("is posted again where it is only stored, and nothing of it has come", () =>
    Effect.gen(function* () {
      const overloaded = sse({ type: "error", error: { type: "server_error", message: "try again" } });
      for (const steps of [[reset], [": wait\n\n", reset], ["end"], [overloaded, "end"]] satisfies ReadonlyArray<
        ReadonlyArray<Step>
      >) {
        const { seen, transport } = scripted(steps, [created, whole, "end"]);
        const plan = planAt("responses", { input: "x", store: true });
        const answer = yield* Relay.open(plan, { transport, reveal: "on_complete" });
        const reading = yield* Effect.forkChild(readAll(answer), { startImmediately: true });
        yield* settle;
        yield* TestClock.adjust("10 seconds");
        yield* settle;
        assert.strictEqual((yield* Fiber.join(reading)).end, "END");
        assert.strictEqual(seen.opened, 2);
      }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("is posted again where the provider says that it did nothing", () =>
    Effect.gen(function* () {
      const throttled = sse({ type: "error", error: { code: "rate_limit_exceeded", message: "try again in 1s" } });
      const { seen, transport } = scripted([throttled, "end"], [created, whole, "end"]);
      const answer = yield* Relay.open(planAt("responses", { input: "x", background: true }), { transport });
      const reading = yield* Effect.forkChild(readAll(answer), { startImmediately: true });
      yield* settle;
      yield* TestClock.adjust("10 seconds");
      yield* settle;
      assert.deepStrictEqual(yield* Fiber.join(reading), { all: created + whole, end: "END" });
      assert.strictEqual(seen.opened, 2);
    }).pipe(Effect.provide(layer)),
  );
});

describe("Relay: a stream under another type", () => {
  const json: RelayHead = { status: 200, statusText: "OK", headers: [["Content-Type", "application/json"]] };
  const chunk = (content: string, finish_reason: string | null = null) =>
    sse({ choices: [{ index: 0, delta: { content }, finish_reason }] });
  const play = (head: RelayHead, ...attempts: ReadonlyArray<ReadonlyArray<Step>>) =>
    scriptedSteps(...attempts.map((steps) => [head, ...steps]));

  it.effect("events under application/json are a stream: what is cut is no whole answer", () =>
    Effect.gen(function* () {
      const whole = chunk("a") + chunk("", "stop");
      const one = play(json, [whole.slice(0, 3), whole.slice(3), "end"]);
      const answer = yield* Relay.open(chat, { transport: one.transport });
      assert.deepStrictEqual(yield* readAll(answer), { all: whole, end: "END" });
      const cut = play(json, [chunk("a"), "end"]);
      const broken = yield* Relay.open(chat, { transport: cut.transport, budget: { max_auto_retries: 0 } });
      assert.notStrictEqual((yield* readAll(broken)).end, "END");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("a document under it stays one, however large and however it is cut", () =>
    Effect.gen(function* () {
      const document = JSON.stringify({ choices: [{ message: { content: "x".repeat(200_000) } }] });
      for (const steps of [
        [document, "end"],
        [" \n", document.slice(0, 1), document.slice(1), "end"],
      ] satisfies ReadonlyArray<ReadonlyArray<Step>>) {
        const { transport } = play(json, steps);
        const answer = yield* Relay.open(chat, { transport });
        assert.deepStrictEqual(yield* readAll(answer), { all: steps.slice(0, -1).join(""), end: "END" });
      }
      const { transport } = play(json, [document.slice(0, 50), "end"]);
      const answer = yield* Effect.exit(
        Relay.open(chat, { transport, head: "content", budget: { max_auto_retries: 0 } }),
      );
      assert.strictEqual(answer._tag, "Failure");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("an error as JSON under text/event-stream is the provider's refusal", () =>
    Effect.gen(function* () {
      const refused = '{"error":{"code":"insufficient_quota","message":"your plan"}}';
      const { seen, transport } = play(head, [refused, "end"]);
      const error = yield* Effect.flip(Relay.open(chat, { transport, head: "content" }));
      assert.deepInclude(error.failure, { kind: "rejected", reason: "quota" });
      assert.strictEqual(shown(error.response?.body), refused);
      assert.strictEqual(seen.opened, 1);
    }).pipe(Effect.provide(layer)),
  );
});

describe("Relay, on_complete: whole is what its protocol's last event has ended", () => {
  const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  const chunk = (content: string, finish_reason: string | null = null) =>
    sse({ choices: [{ index: 0, delta: { content }, finish_reason }] });
  const done = "data: [DONE]\n\n";
  const usage = sse({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
  const said = (text: string) =>
    sse({ type: "message_start", message: {} }) +
    sse({ type: "content_block_start", index: 0, content_block: { type: "text", text } }) +
    sse({ type: "message_delta", delta: { stop_reason: "end_turn" } });
  const last = sse({ type: "message_stop" });

  /** [plan, what comes up to the marker, what the last event is]. */
  const wires: ReadonlyArray<readonly [RelayPlan, (text: string) => string, string]> = [
    [messages, said, last],
    [chat, (text) => chunk(text) + chunk("", "stop"), usage + done],
  ];

  const playing = Effect.fnUntraced(function* (
    plan: RelayPlan,
    options: Omit<Relay.RelayOptions, "transport">,
    ...attempts: ReadonlyArray<ReadonlyArray<Step>>
  ) {
    const { seen, transport } = scripted(...attempts);
    const answer = yield* Relay.open(plan, { transport, ...options });
    const reading = yield* Effect.forkChild(readAll(answer), { startImmediately: true });
    for (let turn = 0; turn < 6; turn += 1) {
      yield* settle;
      yield* TestClock.adjust("20 seconds");
    }
    const { all, end } = yield* Fiber.join(reading);
    return { all, end, opened: seen.opened };
  });

  it.effect("a cut between the marker and it is replayed, and in live it is complete at the marker", () =>
    Effect.gen(function* () {
      for (const [plan, marked, closing] of wires) {
        const attempts = [
          [marked("one"), reset()],
          [marked("two") + closing, "end"],
        ] satisfies ReadonlyArray<ReadonlyArray<Step>>;
        const held = yield* playing(plan, { reveal: "on_complete" }, ...attempts);
        assert.deepStrictEqual(held, { all: marked("two") + closing, end: "END", opened: 2 }, plan.protocol.id);
        const live = yield* playing(plan, { reveal: "live" }, ...attempts);
        assert.deepStrictEqual(live, { all: marked("one"), end: "END", opened: 1 }, plan.protocol.id);
      }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("an end before the last event costs a second request only if clients need that event", () =>
    Effect.gen(function* () {
      const late = sse({ type: "error", error: { type: "overloaded_error", message: "x" } });
      for (const [plan, marked, closing] of wires)
        for (const [tail, behind] of [
          [["end"], ""],
          [["silence"], ""],
          [[late, "end"], late],
        ] satisfies ReadonlyArray<readonly [ReadonlyArray<Step>, string]>) {
          const attempts = [
            [marked("one"), ...tail],
            [marked("two") + closing, "end"],
          ] satisfies ReadonlyArray<ReadonlyArray<Step>>;
          const got = yield* playing(plan, { reveal: "on_complete" }, ...attempts);
          const isRequired = plan === messages;
          const all = isRequired ? marked("two") + closing : marked("one") + behind;
          assert.deepStrictEqual(got, { all, end: "END", opened: isRequired ? 2 : 1 }, `${plan.protocol.id} ${tail}`);
        }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("silence and a break behind the last event cost no second request", () =>
    Effect.gen(function* () {
      for (const [plan, marked, closing] of wires)
        for (const steps of [
          [marked("one") + closing, reset()],
          [marked("one"), closing, "silence"],
        ] satisfies ReadonlyArray<ReadonlyArray<Step>>) {
          const got = yield* playing(plan, { reveal: "on_complete" }, steps);
          assert.deepStrictEqual(got, { all: marked("one") + closing, end: "END", opened: 1 }, plan.protocol.id);
        }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("where it may not be asked for again, what lacks only its last event is whole", () =>
    Effect.gen(function* () {
      for (const [plan, marked] of wires) {
        const budget = { max_auto_retries: 0 };
        const got = yield* playing(plan, { reveal: "on_complete", budget }, [marked("one"), reset()]);
        assert.deepStrictEqual(got, { all: marked("one"), end: "END", opened: 1 }, plan.protocol.id);
      }
    }).pipe(Effect.provide(layer)),
  );

  it.effect("an answer that outgrew what may be held is complete at its marker", () =>
    Effect.gen(function* () {
      const big = chunk("x".repeat(1024 * 1024));
      const steps = [...Array.from({ length: 9 }, () => big), chunk("", "stop"), reset()];
      const got = yield* playing(chat, { reveal: "on_complete" }, steps);
      assert.strictEqual(got.end, "END");
      assert.strictEqual(got.opened, 1);
    }).pipe(Effect.provide(layer)),
  );
});
