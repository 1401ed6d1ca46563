/** What a caller without types may give, at every entrance: the run ends once, and what is on record can be read. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect";
import * as Schema from "effect/Schema";
import * as Observation from "../../src/domain/Observation.ts";
import { ObservationError, read } from "../../src/domain/ObservationReading.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import type { RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import type { RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import * as Routes from "../../src/stages/routes/Routes.ts";
import * as S from "./Scripted.ts";
import { scriptedSeam } from "./ScriptedSeam.ts";

type Options = RunOptions<S.ScriptedPart, S.ProviderBroke, never>;

const long = "x".repeat(300);
const foreign: ReadonlyArray<unknown> = [
  null,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -1,
  -0,
  0,
  1.5,
  2 ** 60,
  "",
  "running",
  "constructor",
  long,
  "\ud800",
  true,
  {},
  [],
  [null],
  { length: 3 },
  () => Number.NaN,
  Symbol("s"),
  10n,
  new Date(Number.NaN),
];

/** The record as it stands, and as JSON gives it back: it must be the same, by its schema. */
const readable = (record: RunRecord, told: string): void => {
  const sent: unknown = JSON.parse(JSON.stringify(record));
  const read = Schema.decodeUnknownExit(RunRecord)(sent);
  assert.isTrue(Exit.isSuccess(read), `${told}: ${Exit.isSuccess(read) ? "" : read.cause}`);
  if (Exit.isSuccess(read)) assert.deepStrictEqual(read.value, record, told);
};

/** Runs the options in a layer of their own and closes it: how the run ended, and that its record can be read. */
const ends = (options: unknown, told: string) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const layer = S.processor();
    const services = yield* Layer.buildWithScope(Layer.fresh(layer), scope);
    const processor = Context.get(services, StreamProcessor);
    // A caller without types gives this.
    const events = processor.run(options as Options);
    const { lines } = yield* S.played(events);
    yield* Scope.close(scope, Exit.void);
    const last = lines.filter((line) => line === "completed" || line.startsWith("end "));
    assert.strictEqual(last.length, 1, `${told}: ${lines.join(" | ")}`);
    const recorder = Context.get(services, RunRecorder);
    for (const { run_id } of yield* recorder.runs({})) {
      const record = yield* recorder.run(run_id);
      if (record === undefined) continue;
      assert.isDefined(record.end, told);
      readable(record, told);
    }
    return lines;
  });

const told = (field: string, value: unknown): string => `${field} = ${typeof value} ${String(value).slice(0, 20)}`;

const breaking = () =>
  S.scripted([S.start, S.text("a"), S.reset], [S.start, S.text("b"), S.done], [S.text("c"), S.done]);

const fields: ReadonlyArray<string> = [
  "provider",
  "provider.id",
  "provider.model",
  "provider.reasoning",
  "provider.apiKey",
  "tools",
  "tools.0",
  "tools.0.name",
  "tools.0.executor",
  "tools.0.effect",
  "attempt",
  "observe",
  "runId",
  "transcript",
  "retryOf",
  "classify",
  "reveal",
  "discardable",
  "canContinue",
  "continueText",
  "cursor",
  "refreshCredentials",
  "emptyIsFailure",
  "streaming",
  "clocks",
  "clocks.idle",
  "clocks.first_progress",
  "clocks.lunar",
  "budget",
  "budget.max_auto_retries",
  "budget.max_elapsed_ms",
  "budget.max_retry_after_ms",
  "budget.max_wishes",
  "policy",
  "policy.name",
  "sizeOf",
  "signal",
  "path",
  "path.id",
  "path.way",
  "finishFailures",
  "finishFailures.0",
  "routes",
  "seam",
  "seam.make",
  "seam.max",
  "routes.own",
  "routes.further",
  "routes.further.0",
  "routes.further.0.id",
  "routes.further.0.provider",
  "routes.further.0.provider.model",
  "routes.further.0.attempt",
  "routes.further.0.observe",
  "routes.further.0.path",
  "routes.further.0.own",
];

/** A second route, and what goes with it. */
const further = () => ({
  routes: Routes.of([
    { id: "b", provider: { id: "b" }, attempt: breaking().attempt, observe: S.options(breaking()).observe },
  ]),
  path: { id: "wire", way: { probe: Effect.succeed({ _tag: "works" }), dropIdle: () => undefined } },
  finishFailures: ["refused"],
  seam: scriptedSeam(),
});

const withField = (value: unknown, [key, ...rest]: ReadonlyArray<string>, by: unknown): unknown => {
  if (key === undefined) return by;
  if (Array.isArray(value))
    return value.map((held: unknown, at) => (String(at) === key ? withField(held, rest, by) : held));
  const held: Readonly<Record<string, unknown>> = { ...Object(value) };
  return { ...held, [key]: withField(held[key], rest, by) };
};

describe("The options of a run", () => {
  for (const field of fields) {
    it.effect(`${field}: whatever stands there, the run ends once and its record can be read (L7, L8)`, () =>
      Effect.gen(function* () {
        for (const value of foreign) {
          const tools = [{ name: "look", executor: "runtime", effect: "read_only" }];
          const whole = { ...S.options(breaking()), ...further(), tools };
          yield* ends(withField(whole, field.split("."), value), told(field, value));
        }
      }),
    );
  }

  const twice = further().routes.further.flatMap((route) => [route, route]);
  const refused: ReadonlyArray<readonly [string, unknown, RegExp]> = [
    ["budget.max_elapsed_ms", Number.POSITIVE_INFINITY, /^budget\.max_elapsed_ms: expected a finite number/],
    ["budget.max_auto_retries", 2.5, /^budget\.max_auto_retries: expected a whole number/],
    ["budget.max_wishes", 3, /^budget\.max_wishes: expected one of max_auto_retries/],
    ["clocks.idle", Number.NaN, /^clocks\.idle: expected milliseconds or a duration above 0, or false, got NaN/],
    ["clocks.idle", "5 parsecs", /^clocks\.idle: expected milliseconds or a duration above 0, or false, got 9 char/],
    ["clocks.idle", {}, /^clocks\.idle: expected milliseconds or a duration above 0, or false, got a value of type/],
    ["clocks.lunar", 5, /^clocks\.lunar: expected one of first_progress/],
    ["provider.id", long, /^provider\.id: expected a name of 1 to 128 characters, got 300 characters/],
    ["provider.model", 5, /^provider\.model: expected a name, got 5/],
    ["tools.0.effect", "harmless", /^tools\[0\]\.effect: expected "read_only" or "mutating" or "unknown"/],
    ["runId", long, /^runId: expected 1 to 128 characters, got 300 characters/],
    ["retryOf", 5, /^retryOf: expected a string, got 5/],
    ["transcript", {}, /^transcript: expected a string, got a value of type object/],
    ["reveal", "later", /^reveal: expected "live" or "on_complete"/],
    ["observe", undefined, /^observe: expected a function, got nothing/],
    ["path", 5, /^path: expected the name of a path or a Path, got 5/],
    ["path", "x".repeat(2_049), /^path: expected at most 2048 characters, got 2049 characters/],
    ["path.id", "x".repeat(2_049), /^path\.id: expected at most 2048 characters, got 2049 characters/],
    ["path.credential", "x".repeat(2_049), /^path\.credential: expected at most 2048 characters, got 2049/],
    ["path.credential", 5, /^path\.credential: expected a digest, got 5/],
    ["path.way", {}, /^path\.way: expected an object with `probe` and `dropIdle`, got a value of type object/],
    ["finishFailures", "refused", /^finishFailures: expected a list, got 7 characters/],
    ["finishFailures.0", "sulked", /^finishFailures\[0\]: expected "refused" or "empty" or "model_length"/],
    [
      "seam",
      () => undefined,
      /^seam: expected Seam\.of\(…\) of effect-stream-recovery\/stages, got a value of type function/,
    ],
    ["seam.make", 5, /^seam\.make: expected a function, got 5/],
    ["seam.max", -1, /^seam\.max: expected a whole number, not below 0, got -1/],
    ["linger", 30_000, /^linger: expected Linger\.of\(ms\) of effect-stream-recovery\/stages, got 30000/],
    ["lingerMs", 30_000, /^lingerMs: expected linger: Linger\.of\(ms\) of effect-stream-recovery\/stages in its place/],
    ["maxSeams", 1, /^maxSeams: expected seam: Seam\.of\(make, \{ max \}\) of effect-stream-recovery\/stages/],
    ["ownRoute", true, /^ownRoute: expected routes: Routes\.of\(routes, \{ own \}\) of effect-stream-recovery\/stages/],
    ["routes", [], /^routes: expected Routes\.of\(\[…\]\) of effect-stream-recovery\/stages, got a list/],
    ["routes.own", "yes", /^routes\.own: expected a boolean or credential, got 3 characters/],
    ["routes.further", {}, /^routes: expected a list, got a value of type object/],
    ["routes.further", Array(16).fill({}), /^routes: expected at most 15, got 16/],
    ["routes.further.0", null, /^routes\[0\]: expected an object, got null/],
    ["routes.further.0.id", long, /^routes\[0\]\.id: expected a name of 1 to 128 characters, got 300 characters/],
    ["routes.further.0.id", "", /^routes\[0\]\.id: expected a name of 1 to 128 characters, got ""/],
    ["routes.further", twice, /^routes\[1\]\.id: expected a unique name, got "b", which another route has/],
    ["routes.further.0.provider.id", "", /^routes\[0\]\.provider\.id: expected a name, got ""/],
    ["routes.further.0.path", 5, /^routes\[0\]\.path: expected the name of a path or a Path, got 5/],
    ["routes.further.0.attempt", 5, /^routes\[0\]\.attempt: expected a function, got 5/],
    ["routes.further.0.observe", 5, /^routes\[0\]\.observe: expected a function, got 5/],
    ["routes.further.0.own", 1, /^routes\[0\]\.own: expected a boolean, got 1/],
    ["policy.name", long, /^policy: expected a RecoveryPolicy|^policy\.name: expected a name/],
  ];
  it.effect("that cannot be recorded are refused before the first request, by the field and what was expected", () =>
    Effect.gen(function* () {
      for (const [field, value, expected] of refused) {
        const provider = breaking();
        const tools = [{ name: "look", executor: "runtime", effect: "read_only" }];
        // A caller without types gives this.
        const options = withField({ ...S.options(provider), ...further(), tools }, field.split("."), value) as Options;
        const error = yield* Effect.flip(Stream.runDrain((yield* StreamProcessor).run(options)));
        assert.strictEqual(error.reason, "refused", field);
        assert.match(error.message, expected);
        assert.strictEqual(provider.attempts.length, 0);
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a policy's name may have 128 characters", () =>
    Effect.gen(function* () {
      const policy = RecoveryPolicy.make({ name: "x".repeat(128) });
      yield* S.played((yield* StreamProcessor).run(S.options(breaking(), { runId: "named", policy })));
      assert.strictEqual((yield* S.recordOf("named")).policy, policy.name);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a model's name of any length is a label, and nothing else of the provider's object is stored", () =>
    Effect.gen(function* () {
      const secret = { id: "p", model: long, apiKey: "sk-planted" };
      yield* S.played((yield* StreamProcessor).run(S.options(breaking(), { runId: "r", provider: secret })));
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(record.provider, { id: "p", model: "x".repeat(128) });
      assert.notInclude(JSON.stringify(record), "sk-planted");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("the options of takeUp are looked at too", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      for (const value of foreign) {
        // A caller without types gives these.
        const wrong = [
          processor.takeUp(value as string, { request: S.options(breaking()), transcript: "t" }),
          processor.takeUp("r", { request: S.options(breaking()), transcript: value as string }),
          processor.takeUp("r", { request: S.options(breaking()), transcript: "t", cursor: value as string }),
          processor.takeUp("r", { request: value as Options, transcript: "t" }),
        ];
        for (const stream of wrong) {
          const error: RunInterrupted = yield* Effect.flip(Stream.runDrain(stream));
          assert.strictEqual(error.reason, "refused");
        }
      }
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("What observe says", () => {
  const paths = [
    "progress",
    "shows",
    "quiet",
    "keep_alive",
    "characters",
    "calls",
    "calls.0",
    "calls.0.choice",
    "calls.0.ordinal",
    "calls.0.id",
    "calls.0.tool",
    "calls.0.executor",
    "calls.0.phase",
    "calls.0.input",
    "text_before_calls",
    "terminal",
    "terminal_at_end",
    "finish",
    "failure",
    "failure.kind",
    "failure.retry_after_ms",
    "failure.status",
    "failure.code",
    "usage",
    "usage.input_tokens",
    "usage.output_tokens",
  ];
  const call = { choice: 0, ordinal: 0, id: "c", tool: "look", executor: "runtime", phase: "ready", input: "{}" };
  for (const path of paths) {
    it.effect(
      `${path}: whatever stands there, the run ends once, the layer closes and the record can be read (L11)`,
      () =>
        Effect.gen(function* () {
          for (const value of [...foreign, undefined]) {
            for (const more of [{}, { reveal: "on_complete" as const }, { discardable: false }]) {
              const base = path.startsWith("failure")
                ? { ...Observation.none, failure: { kind: "rate_limited" } }
                : path.startsWith("calls.")
                  ? { ...Observation.none, calls: [call] }
                  : Observation.text(1);
              const says = withField(base, path.split("."), value);
              // An observer without types gives this.
              const odd = { part: { name: "odd", says: says as Observation.Observation } };
              const provider = S.scripted([S.text("a"), odd, S.text("b"), S.done], [S.text("c"), S.done], [S.done]);
              yield* ends(S.options(provider, more), told(path, value));
            }
          }
        }),
    );
  }

  it.effect("a call or a word that is not understood is the caller's failure, and its cause names the field", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [unknown, string]> = [
        [{ progress: "output", shows: "text" }, "calls: expected a list of call signals, got nothing"],
        [
          { ...Observation.none, shows: "image" },
          'shows: expected "nothing" | "reasoning" | "text", got another string',
        ],
        [
          { ...Observation.none, calls: [{ ...call, ordinal: 1.5 }] },
          "calls[0].ordinal: expected a whole number, not below 0, got 1.5",
        ],
        [{ ...Observation.none, calls: [{ ...call, tool: 5 }] }, "calls[0].tool: expected a string, got 5"],
        [
          { ...Observation.terminal("stop"), closes: "soon" },
          'closes: expected "later" | "required" | "now", got another string',
        ],
        [null, "observation: expected an object, got null"],
      ];
      for (const [says, message] of cases) {
        // An observer without types gives this.
        const odd = { part: { name: "odd", says: says as Observation.Observation } };
        const error = yield* Effect.flip(
          Stream.runDrain((yield* StreamProcessor).run(S.options(S.scripted([S.text("a"), odd, S.done])))),
        );
        assert.deepStrictEqual(error.failure, { kind: "caller_failed" });
        assert.instanceOf(error.cause, ObservationError);
        assert.strictEqual((error.cause as ObservationError).message, message);
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("counts that are no natural numbers are clamped, and a finish is a label", () =>
    Effect.gen(function* () {
      const odd = (says: Partial<Observation.Observation>) => ({
        part: { name: "odd", says: { ...Observation.text(1), ...says } },
      });
      const provider = S.scripted([
        odd({ characters: Number.NaN }),
        odd({ characters: 2.9 }),
        odd({ usage: { input_tokens: -1, output_tokens: 1.5 } }),
        odd({ terminal: true, finish: long }),
      ]);
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      const record = yield* S.recordOf("r");
      readable(record, "counts");
      const counters = record.attempts[0]?.facts.counters;
      assert.deepInclude(counters, { characters: 4, input_tokens: 0, output_tokens: 1 });
      assert.strictEqual(record.end?.reason, "x".repeat(128));
    }).pipe(Effect.provide(S.processor())),
  );

  it("every field that fits stays as it is where another one does not", () => {
    const whole: Required<Observation.Observation> = {
      progress: "output",
      shows: "text",
      quiet: true,
      keep_alive: true,
      characters: 1,
      calls: [{ ...call, executor: "runtime", phase: "ready" }],
      text_before_calls: true,
      terminal: true,
      terminal_at_end: true,
      closes: "later",
      stores: true,
      finish: "stop",
      failure: { kind: "empty" },
      usage: { input_tokens: 1, output_tokens: 2 },
    };
    assert.strictEqual(read(whole), whole);
    assert.deepStrictEqual(read({ ...whole, characters: 1.5 }), whole);
  });
});

describe("What a transport reports, classify says, sizeOf weighs and a cursor is", () => {
  it.effect("whatever it is, the run ends once and the record can be read", () =>
    Effect.gen(function* () {
      for (const value of [...foreign, undefined]) {
        const reports =
          (report: "bytes" | "delivery"): Options["attempt"] =>
          (context) => {
            // A transport without types gives this.
            context[report](value as never);
            return breaking().attempt(context);
          };
        yield* ends(S.options({ attempt: reports("bytes") }), told("bytes", value));
        yield* ends(S.options({ attempt: reports("delivery") }), told("delivery", value));
        // Callers without types give these.
        yield* ends(
          S.options(breaking(), { sizeOf: () => value as number, reveal: "on_complete" }),
          told("sizeOf", value),
        );
        yield* ends(S.options(breaking(), { cursor: () => value as string }), told("cursor", value));
        yield* ends(S.options(breaking(), { classify: () => value as never }), told("classify", value));
        for (const name of [
          "kind",
          "retryable",
          "not_processed",
          "in_band",
          "retry_after_ms",
          "status",
          "code",
          "fingerprint",
        ]) {
          const classify = () => ({ kind: "server_error", [name]: value }) as never;
          yield* ends(S.options(breaking(), { classify }), told(`classify.${name}`, value));
        }
        const policy = {
          name: "mine",
          version: "1",
          rows: [],
          decide: () => value,
        } as unknown as RecoveryPolicy.RecoveryPolicy;
        yield* ends(S.options(breaking(), { policy }), told("policy", value));
      }
    }),
  );

  it.effect("sizeOf throws at a part that an end holds back: the run ends once all the same (L7)", () =>
    Effect.gen(function* () {
      for (const at of [1, 2, 3, 4]) {
        let weighed = 0;
        const sizeOf = () => {
          weighed += 1;
          if (weighed === at) throw new Error("no scale");
          return 1;
        };
        yield* ends(S.options(breaking(), { sizeOf, reveal: "on_complete" }), `sizeOf throws at ${at}`);
      }
    }),
  );

  it.effect("delivery by a word that is not known says that the request may have arrived", () =>
    Effect.gen(function* () {
      const attempt: Options["attempt"] = (context) => {
        context.delivery("not_sent");
        context.delivery("gone" as "accepted");
        return S.scripted([S.reset]).attempt(context);
      };
      yield* S.played(
        (yield* StreamProcessor).run(S.options({ attempt }, { runId: "r", budget: { max_auto_retries: 0 } })),
      );
      assert.strictEqual((yield* S.recordOf("r")).attempts[0]?.facts.delivery, "accepted");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("The terms of questions", () => {
  it.effect("an expiry that no record can hold is none", () =>
    Effect.gen(function* () {
      for (const expiryMs of [Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300]) {
        const decisions = Layer.succeed(UserDecisions, {
          ask: () => Effect.succeed("stop" as const),
          terms: { expiryMs },
        });
        const provider = S.scripted([S.text("a"), S.fail({ kind: "unknown" })]);
        const record = yield* Effect.gen(function* () {
          yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
          return yield* S.recordOf("r");
        }).pipe(
          Effect.provide(
            StreamProcessor.layer.pipe(
              Layer.provideMerge(Layer.merge(decisions, Layer.fresh(RunRecorder.layerMemory()))),
            ),
          ),
        );
        assert.strictEqual(record.questions.length, 1);
        readable(record, String(expiryMs));
      }
    }),
  );
});
