/**
 * Routes: failures that move a run to another route, content that never moves, and the caller's final error.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Stream, Tracer } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../../runtime/Scripted.ts";
import { type More, play, quota, rejected, routed, routeOfEach, serverError, soon } from "./RouteBench.ts";

describe("A run with routes", () => {
  it.effect("moves at the second consecutive error of its provider, without a wait", () =>
    Effect.gen(function* () {
      const run = routed([[serverError], [serverError]], { b: [S.hello] });
      const seen = yield* play(run);
      assert.deepStrictEqual(routeOfEach(seen), ["first", "first", "b"]);
      const delays = seen.events.flatMap((it) => (it._tag === "RetryScheduled" ? [it.delay_ms] : []));
      assert.deepStrictEqual(delays, [375, 0]);
      const last = seen.events.at(-1);
      assert.deepInclude(last, { _tag: "RunCompleted", attempts: 3, route: "b" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("moves at once if its provider stalls before any progress", () =>
    Effect.gen(function* () {
      const run = routed([[S.start, S.never]], { b: [S.hello] });
      assert.deepStrictEqual(routeOfEach(yield* play(run)), ["first", "b"]);
    }).pipe(Effect.provide(S.processor())),
  );

  for (const reason of ["quota", "not_found", "permission"] as const) {
    it.effect(`moves at once if the account or the model is refused: ${reason}`, () =>
      Effect.gen(function* () {
        const run = routed([[rejected(403, reason)]], { b: [S.hello] });
        assert.deepStrictEqual(routeOfEach(yield* play(run)), ["first", "b"]);
      }).pipe(Effect.provide(S.processor())),
    );
  }

  for (const [status, reason] of [
    [400, "invalid_request"],
    [401, "auth"],
    [404, "not_found"],
  ] as const) {
    it.effect(`moves at the ${status} of a route with its own key, and the breaker is open for the next run`, () =>
      Effect.gen(function* () {
        const run = routed([[rejected(status, reason)]], { b: [S.hello] }, { ownRoute: true });
        assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(run))), ["first", "b"]);
        const next = routed([], { b: [S.hello] }, { ownRoute: true });
        assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(next))), ["b"]);
        assert.deepStrictEqual(next.requests(), [0, 1]);
      }).pipe(Effect.provide(S.processor())),
    );
  }

  for (const [status, reason] of [
    [400, "invalid_request"],
    [401, "auth"],
    [413, "context_overflow"],
  ] as const) {
    it.effect(`stays at the ${status} ${reason} of a caller's own credential or request`, () =>
      Effect.gen(function* () {
        const run = routed([[rejected(status, reason)]], { b: [S.hello] });
        const seen = yield* play(run);
        assert.deepStrictEqual(run.requests(), [1, 0]);
        assert.deepInclude(S.errorOf(seen.exit)?.failure, { kind: "rejected", reason });
      }).pipe(Effect.provide(S.processor())),
    );
  }

  it.effect(
    "renews the credentials of a route with its own key before it leaves it, and opens no breaker for that",
    () =>
      Effect.gen(function* () {
        let renewed = 0;
        const refreshCredentials = Effect.sync(() => (renewed += 1));
        const more = { ownRoute: true, refreshCredentials };
        const run = routed([[rejected(401, "auth")], S.hello], { b: [] }, more);
        assert.deepStrictEqual(routeOfEach(yield* play(run)), ["first", "first"]);
        assert.strictEqual(renewed, 1);
        const stale = routed([[rejected(401, "auth")], [rejected(401, "auth")]], { b: [S.hello] }, more);
        assert.deepStrictEqual(routeOfEach(yield* play(stale)), ["first", "first", "b"]);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("renews the credentials of its first route for no other one", () =>
    Effect.gen(function* () {
      let renewed = 0;
      const refreshCredentials = Effect.sync(() => (renewed += 1));
      const run = routed([[rejected(402, "quota")]], { b: [[rejected(401, "auth")]] }, { refreshCredentials });
      const seen = yield* play(run);
      assert.deepStrictEqual(run.requests(), [1, 1]);
      assert.strictEqual(renewed, 0);
      assert.strictEqual(S.errorOf(seen.exit)?.failure.status, 402);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("reports the first route's failure with its own error if the second one is worse (L12)", () =>
    Effect.gen(function* () {
      const run = routed([[serverError], [serverError]], { b: [[rejected(400, "invalid_request")]] });
      const seen = yield* play(run);
      const error = S.errorOf(seen.exit);
      assert.deepStrictEqual(error?.failure, { kind: "server_error", status: 500 });
      assert.deepStrictEqual(error?.cause, new S.ProviderBroke({ kind: "server_error", status: 500 }));
      assert.include(error?.message, "internal error (status 500)");
      assert.strictEqual(error?.attempts, 3);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("never goes back to a route that it has left, whichever route fails", () =>
    Effect.gen(function* () {
      const twice = [[serverError], [serverError]];
      const run = routed(twice, { b: twice, c: twice });
      const seen = yield* play(run);
      assert.deepStrictEqual(run.requests(), [2, 2, 2]);
      // The last route's second failure is the third counted retry, because the budget covers all routes.
      assert.include(seen.lines.at(-1), "end stopped budget_exhausted");
      assert.strictEqual(S.errorOf(seen.exit)?.failure.kind, "server_error");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("moves no further than max_moves", () =>
    Effect.gen(function* () {
      const run = routed(
        [[rejected(402, "quota")]],
        { b: [[rejected(402, "quota")]], c: [] },
        { budget: { max_moves: 1 } },
      );
      yield* play(run);
      assert.deepStrictEqual(run.requests(), [1, 1, 0]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("takes no token of the throttle for a move", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      for (let at = 0; at < 40; at += 1) {
        yield* S.watch(processor.run(routed([[quota]], { b: [S.hello] }).options));
      }
      const seen = yield* play(routed([[serverError], S.hello], {}));
      const delays = seen.events.flatMap((it) => (it._tag === "RetryScheduled" ? [it.delay_ms] : []));
      assert.deepStrictEqual(delays, [375]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("stays a cancel if it is cancelled on the second route", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const cancel = { run: Effect.suspend(() => processor.cancel("r")) };
      const run = routed([[rejected(402, "quota")]], { b: [[S.start, cancel, S.never]] }, { runId: "r" });
      const seen = yield* play(run);
      assert.deepInclude(S.errorOf(seen.exit), { rule: "user_cancelled" });
      assert.deepInclude(S.errorOf(seen.exit)?.failure, { kind: "cancelled", by: "user" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("names the route of every attempt, and records it", () =>
    Effect.gen(function* () {
      const run = routed([[rejected(402, "quota")]], { b: [S.hello] }, { runId: "r" });
      yield* play(run);
      assert.deepStrictEqual(
        run.attempts().map(({ mode, route }) => [mode, route]),
        [
          ["first", undefined],
          ["replay", "b"],
        ],
      );
      const { attempts, incidents, provider } = yield* S.recordOf("r");
      assert.strictEqual(provider.id, "scripted");
      assert.deepStrictEqual(
        attempts.map(({ route, run }) => [route, run?.moves, run?.own_route]),
        [
          [undefined, 0, false],
          ["b", 1, true],
        ],
      );
      assert.deepInclude(incidents[0]?.decision, { route: "next", mode: "replay", delay_ms: 0 });
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("The telemetry of a run with routes", () => {
  it.effect("names an attempt's route and provider on its span", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.NativeSpan> = [];
      const tracer = Tracer.make({
        span: (made) => {
          const span = new Tracer.NativeSpan(made);
          spans.push(span);
          return span;
        },
      });
      yield* Effect.withTracer(play(routed([[quota]], { b: [S.hello] })), tracer);
      const told = spans
        .filter(({ name }) => name === "stream_recovery.attempt")
        .map(({ attributes }) => [attributes.get("gen_ai.provider.name"), attributes.get("stream_recovery.route")]);
      assert.deepStrictEqual(told, [
        ["scripted", undefined],
        ["provider-b", "b"],
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("names the provider that failed in each incident", () =>
    Effect.gen(function* () {
      yield* play(routed([[quota]], { b: [[quota]] }, { runId: "r" }));
      const { incidents } = yield* S.recordOf("r");
      assert.deepStrictEqual(
        incidents.map(({ provider }) => provider.id),
        ["scripted", "provider-b"],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("counts for the group of its first route: it stays in its group on any route", () =>
    Effect.gen(function* () {
      const path = { id: "scripted", credential: "digest" };
      const cut = [S.start, S.reasoning("x".repeat(400)), S.reset];
      const more: More = { group: "tree", path, runId: "r", requestTokens: 100 };
      yield* play(routed([cut, cut], { b: [cut, S.hello] }, more));
      const { incidents } = yield* S.recordOf("r");
      const wasted = incidents.map(({ run }) => run.group_wasted_tokens);
      assert.deepStrictEqual(
        wasted,
        incidents.map(({ run }) => run.wasted_tokens),
      );
      assert.isAbove(wasted.at(-1) ?? 0, wasted.at(0) ?? 0);
      assert.lengthOf(wasted, 3);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A finish that counts as a failure", () => {
  const ends = (finish: string): S.Step => ({ part: { name: finish, says: Observation.terminal(finish) } });

  for (const finish of ["content_filter", "refusal", "SAFETY", "model_context_window_exceeded"]) {
    it.effect(`moves if nothing was shown: ${finish}`, () =>
      Effect.gen(function* () {
        const more: More = { finishFailures: ["refused", "model_length"] };
        const run = routed([[S.start, ends(finish)]], { b: [S.hello] }, more);
        assert.deepStrictEqual(routeOfEach(yield* play(run)), ["first", "b"]);
      }).pipe(Effect.provide(S.processor())),
    );
  }

  it.effect("ends its response if text was shown, if no other route is left, or if the option is off", () =>
    Effect.gen(function* () {
      const refusal = ends("refusal");
      const finishFailures = ["refused"] as const;
      const shown = routed([[S.start, S.text("I"), refusal]], { b: [] }, { finishFailures });
      assert.deepInclude((yield* play(shown)).events.at(-1), {
        _tag: "RunCompleted",
        finish: "refusal",
        late_failure: { kind: "refused" },
      });
      const alone = routed([[S.start, refusal]], {}, { finishFailures });
      assert.strictEqual((yield* play(alone)).lines.at(-1), "completed");
      const unasked = routed([[S.start, refusal]], { b: [] });
      assert.strictEqual((yield* play(unasked)).lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect(
    "moves unseen if the whole response was held, and the last refusal is handed over if all routes refuse",
    () =>
      Effect.gen(function* () {
        const refused = [S.start, ends("refusal")];
        const more: More = { finishFailures: ["refused"], reveal: "on_complete" };
        const run = routed([refused], { b: [refused] }, more);
        const seen = yield* play(run);
        assert.deepStrictEqual(run.requests(), [1, 1]);
        assert.deepStrictEqual(seen.lines.slice(-3), ["start", "refusal", "completed"]);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("does not include a truncation at the limit that the request has set", () =>
    Effect.gen(function* () {
      const more: More = { finishFailures: ["refused", "model_length", "empty"] };
      for (const finish of ["length", "max_tokens", "max_output_tokens", "MAX_TOKENS"]) {
        const run = routed([[S.start, S.text("half"), ends(finish)]], { b: [] }, more);
        assert.deepInclude((yield* play(run)).events.at(-1), { _tag: "RunCompleted", late_failure: undefined });
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("moves at once if an empty response counts as a failure", () =>
    Effect.gen(function* () {
      const empty = [S.start, S.done];
      const asked = routed([empty], { b: [S.hello] }, { finishFailures: ["empty"] });
      assert.deepStrictEqual(routeOfEach(yield* play(asked)), ["first", "b"]);
      const known = routed([empty], { b: [S.hello] }, { emptyIsFailure: true });
      assert.deepStrictEqual(routeOfEach(yield* play(known)), ["first", "b"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("Nothing that was shown or done moves to another route", () => {
  it.effect("shown text stays on its route", () =>
    Effect.gen(function* () {
      const run = routed([[S.start, S.text("half"), serverError]], { b: [] });
      const seen = yield* play(run);
      assert.deepStrictEqual(run.requests(), [1, 0]);
      assert.include(seen.lines, "ask text_shown");
    }).pipe(Effect.provide(S.processor())),
  );

  for (const [name, steps] of [
    ["open", [S.callStarts("bash")]],
    ["handed over", [S.callReady("bash")]],
  ] as const) {
    it.effect(`a call of a tool without a guard stays on its route: ${name}`, () =>
      Effect.gen(function* () {
        const tools = [{ name: "bash", executor: "runtime", effect: "mutating" }] as const;
        const run = routed([[S.start, ...steps, rejected(402, "quota")]], { b: [S.hello] }, { tools });
        yield* play(run);
        assert.deepStrictEqual(run.requests(), [1, 0]);
      }).pipe(Effect.provide(S.processor())),
    );
  }

  for (const [name, handler, failure] of [
    ["settled", Effect.succeed("ran"), quota],
    ["settled, and its continuation failed twice", Effect.succeed("ran"), undefined],
    ["of unknown outcome", Effect.die(new Error("half done")), quota],
  ] as const) {
    it.effect(`a call stays on its route: ${name}`, () =>
      Effect.gen(function* () {
        const tool = (yield* ToolGuard).mutating("bash", () => handler);
        const called = [S.start, S.callReady("bash"), S.wait(1), failure ?? S.reset];
        const first = failure === undefined ? [called, [serverError], [serverError], [serverError]] : [called];
        const run = routed(first, { b: [S.hello] }, { tools: [tool], canContinue: true });
        const processor = yield* StreamProcessor;
        const seen = yield* S.played(processor.run(run.options), (event) =>
          event._tag === "Part"
            ? Effect.forEach(event.calls ?? [], (call) => Effect.exit(tool.run(call, call.input)))
            : Effect.void,
        );
        assert.deepStrictEqual(run.requests(), [first.length, 0], seen.lines.join(" | "));
      }).pipe(Effect.provide(S.processor())),
    );
  }

  it.effect("a cursor stays on its route, where the response is resumed", () =>
    Effect.gen(function* () {
      const cursor = (part: S.ScriptedPart) => (part.name === "start" ? "at-start" : undefined);
      const reset = S.fail({ kind: "transport", code: "ECONNRESET" });
      const run = routed([[S.start, reset], [reset], S.hello], { b: [] }, { cursor });
      yield* play(run);
      assert.deepStrictEqual(run.requests(), [3, 0]);
      assert.deepStrictEqual(
        run.attempts().map((it) => it.cursor),
        [undefined, "at-start", "at-start"],
      );
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A caller that cannot discard", () => {
  it.effect("never sees the start of a route that was left", () =>
    Effect.gen(function* () {
      const run = routed([[S.start, quota]], { b: [S.hello] });
      const parts: Array<string> = [];
      const processor = yield* StreamProcessor;
      yield* Stream.runForEach(processor.parts(run.options), ({ name }) => Effect.sync(() => parts.push(name)));
      assert.deepStrictEqual(parts, ["start", "hello", "done"]);
    }).pipe(Effect.provide(S.processor())),
  );
});
