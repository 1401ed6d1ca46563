/** A client that goes away and may come back: nothing is handed over in between, and nothing is lost. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import type { RelayEvent } from "../../../src/adapters/relay/RelayReader.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { Presence } from "../../../src/stages/output/Presence.ts";
import {
  call,
  client,
  head,
  layer,
  pass,
  planOf,
  reset,
  role,
  type Step,
  scripted,
  settle,
  stop,
  text,
} from "./RelayCases.ts";

/** Relays a request to a client that reads all the time: what it has had, and what the run said. */
const relayed = (options: Partial<Relay.RelayOptions>, ...attempts: ReadonlyArray<ReadonlyArray<Step>>) =>
  Effect.gen(function* () {
    const script = scripted(...attempts);
    const events: Array<RelayEvent> = [];
    const response = yield* Relay.open(planOf(), {
      transport: yield* script.timed,
      ...options,
      onEvent: (event) => events.push(event),
    });
    const got = yield* client(response.read);
    return { response, got, seen: script.seen, tags: () => events.map((it) => it._tag) };
  });

const shownOf = (runId: string) =>
  Effect.gen(function* () {
    const record = yield* (yield* RunRecorder).run(runId);
    return record?.incidents.map((it) => it.facts.shown);
  });

describe("a client that is away", () => {
  it.effect("gets nothing, and then exactly what it would have got", () =>
    Effect.gen(function* () {
      const steps = [head, role, text("a"), 2_000, text("b"), 2_000, text("c"), 6_000, text("d"), stop, "end"] as const;
      const { got, response, seen } = yield* relayed({}, steps);
      yield* pass(1);
      assert.strictEqual(got.text, role + text("a"));
      yield* response.away;
      yield* pass(5);
      assert.strictEqual(got.text, role + text("a"));
      yield* response.back;
      yield* settle;
      assert.strictEqual(got.text, role + text("a") + text("b") + text("c"));
      yield* pass(10);
      assert.strictEqual(got.text, role + text("a") + text("b") + text("c") + text("d") + stop);
      assert.strictEqual(got.end, "end");
      assert.strictEqual(seen.opened, 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("has been shown nothing of it: a break is replayed, and run events are told meanwhile (L4)", () =>
    Effect.gen(function* () {
      const presence = new Presence();
      presence.markAway();
      const broken = [head, role, text("half"), 1_000, reset()] as const;
      const whole = [head, role, text("whole"), 9_000, stop, "end"] as const;
      const script = scripted(broken, whole);
      const events: Array<string> = [];
      const open = yield* Effect.forkScoped(
        Relay.open(planOf(), {
          transport: yield* script.timed,
          presence,
          head: { withinMs: 3_000 },
          onEvent: (event) => events.push(event._tag),
        }),
      );
      yield* pass(6);
      const response = yield* Fiber.join(open);
      assert.deepStrictEqual(events, ["AttemptStarted", "RetryScheduled", "AttemptStarted"]);
      assert.deepStrictEqual(yield* shownOf(response.run_id), ["nothing"]);
      const got = yield* client(response.read);
      yield* settle;
      assert.strictEqual(got.text, "");
      yield* response.back;
      yield* settle;
      assert.strictEqual(got.text, role + text("whole"));
      yield* pass(10);
      assert.strictEqual(got.text, role + text("whole") + stop);
      assert.strictEqual(script.seen.opened, 2);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("that had text before keeps what it was shown: a break meanwhile is not replayed", () =>
    Effect.gen(function* () {
      const { got, response, seen } = yield* relayed({}, [head, role, text("a"), 2_000, text("b"), 2_000, reset()]);
      yield* pass(1);
      yield* response.away;
      yield* pass(10);
      assert.strictEqual(got.text, role + text("a"));
      assert.strictEqual(got.end, "text_shown");
      assert.deepStrictEqual(yield* shownOf(response.run_id), ["text"]);
      assert.strictEqual(seen.opened, 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("gets a call only once its end is proven, also where it came while it was away (L4)", () =>
    Effect.gen(function* () {
      const { got, response } = yield* relayed({}, [head, role, text("a"), 1_000, text("b"), call, 4_000, stop, "end"]);
      yield* settle;
      yield* response.away;
      yield* pass(3);
      yield* response.back;
      yield* settle;
      assert.strictEqual(got.text, role + text("a") + text("b"));
      yield* pass(3);
      assert.strictEqual(got.text, role + text("a") + text("b") + call + stop);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("finds a run that has ended meanwhile whole", () =>
    Effect.gen(function* () {
      const { got, response, tags } = yield* relayed({}, [head, role, text("a"), 1_000, text("b"), stop, "end"]);
      yield* settle;
      yield* response.away;
      yield* pass(3);
      // What was held waits in the embedder's own read once the run has ended.
      assert.strictEqual(got.text, role + text("a") + text("b") + stop);
      assert.strictEqual(got.end, "end");
      assert.include(tags(), "RunCompleted");
      assert.isFalse(yield* response.cancel);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is kept waiting by nothing: no-ops go only to a client that is there", () =>
    Effect.gen(function* () {
      let beats = 0;
      const options = { keepAliveMs: 1_000, onKeepAlive: () => (beats += 1) };
      const { got, response } = yield* relayed(options, [head, role, 30_000, text("a"), stop, "end"]);
      yield* pass(3);
      const before = beats;
      assert.isAbove(before, 0);
      yield* response.away;
      yield* pass(10);
      assert.strictEqual(beats, before);
      yield* response.back;
      yield* pass(3);
      assert.isAbove(beats, before);
      yield* pass(20);
      assert.strictEqual(got.text.replaceAll(": keep-alive\n\n", ""), role + text("a") + stop);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("for whom too much is held is evicted: the run goes on to its end and keeps nothing (L11)", () =>
    Effect.gen(function* () {
      const big = text("x".repeat(3 * 1024 * 1024));
      const steps = [head, role, text("a"), 1_000, big, big, big, 1_000, big, 5_000, stop, "end"] as const;
      const { got, response, seen, tags } = yield* relayed({}, steps);
      yield* settle;
      yield* response.away;
      assert.isFalse(response.evicted());
      yield* pass(3);
      assert.isTrue(response.evicted());
      yield* response.back;
      yield* pass(6);
      assert.strictEqual(got.text, role + text("a"));
      assert.include(tags(), "RunCompleted");
      assert.strictEqual(seen.opened, 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("for whom too much was held is asked for again by no one: a break ends the run", () =>
    Effect.gen(function* () {
      const big = text("x".repeat(3 * 1024 * 1024));
      const { got, response, seen } = yield* relayed({}, [head, role, 1_000, big, big, big, 1_000, reset()]);
      yield* settle;
      yield* response.away;
      yield* pass(5);
      assert.isTrue(response.evicted());
      assert.strictEqual(got.end, "user_cancelled");
      assert.deepStrictEqual(yield* shownOf(response.run_id), ["nothing"]);
      assert.strictEqual(seen.opened, 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});
