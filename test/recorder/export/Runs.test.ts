/**
 * Runs whose provider plants secrets, prompts and paths in errors, tool names, ids, arguments, text and finish reasons. Searches for
 * them in exports, in the record itself, and in every log line.
 */
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Layer, Logger, References, Stream } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { encode, exportIncident, exportRun } from "../../../src/recorder/export/IncidentExport.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunBase, RunOptions } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../../runtime/Scripted.ts";
import { canaries, found, named, pathsTo } from "./Planted.ts";

/** Every form in which clients, SDKs and streams report an error, with the canary in every field. */
const errors = (canary: string): ReadonlyArray<unknown> => {
  const headers = { "retry-after": canary, authorization: canary, "x-request-id": canary, [canary]: canary };
  const body = {
    code: canary,
    type: canary,
    status: canary,
    message: canary,
    param: canary,
    details: [{ reason: canary }],
  };
  const error = (fields: object, cause: unknown = new Error(canary)) =>
    Object.assign(new Error(canary, { cause }), { stack: canary, url: canary, headers, [canary]: canary }, fields);
  return [
    canary,
    error({}),
    error({ name: canary, code: canary, _tag: canary }),
    error({ name: canary, code: "ECONNRESET", hostname: canary, address: canary, path: canary, syscall: canary }),
    error({ code: "ERR_HTTP2_STREAM_ERROR", rstCode: canary, http2_code: canary }),
    error({ name: "AbortError", reason: canary }),
    error({ status: 429, error: body, request_id: canary }),
    error({ status: 500, error: { ...body, type: "server_error" } }),
    error({ name: "AI_APICallError", statusCode: 503, responseHeaders: headers, responseBody: canary }),
    error({ status: 401, error: { code: "invalid_api_key", message: canary } }),
    error({ status: 429, error: { code: "insufficient_quota", message: canary } }),
    error({ _tag: "AiError", module: canary, method: canary, reason: { _tag: canary, description: canary } }),
    error({}, error({ code: canary }, error({ code: canary, response: { status: 529, headers, data: body } }))),
    new AggregateError([error({ code: canary }), canary, new TypeError(canary)], canary),
    { error: body, url: canary, headers },
    { type: "error", error: { type: "overloaded_error", message: canary }, [canary]: canary },
    JSON.stringify({ error: body }),
    new DOMException(canary, "TimeoutError"),
    Object.create({ message: canary, code: canary, toString: () => canary }),
  ];
};

type Options = RunOptions<S.ScriptedPart, unknown, never>;

/** A run whose attempts show a text, call a tool, and then fail with the error, with our own classifier only. */
const options = (canary: string, error: unknown, more: Partial<RunBase<S.ScriptedPart, unknown, never>>): Options => ({
  provider: { id: "scripted", model: "gpt-5" },
  tools: [],
  attempt: () => Stream.concat(Stream.fromArray([...parts(canary)]), Stream.fail(error)),
  observe: (part) => part.says,
  runId: "run",
  ...more,
});

const parts = (canary: string): ReadonlyArray<S.ScriptedPart> => [
  { name: canary, says: Observation.lifecycle },
  { name: canary, says: Observation.reasoning(canary.length) },
];

const talkative = (canary: string): ReadonlyArray<S.ScriptedPart> => {
  const call = { choice: 0, ordinal: 0, id: canary, tool: canary, input: canary, executor: "runtime" } as const;
  const hosted = { choice: 0, ordinal: 1, id: canary, tool: canary, executor: "provider" } as const;
  return [
    ...parts(canary),
    { name: canary, says: Observation.text(canary.length) },
    { name: canary, says: Observation.calls([{ ...call, phase: "input_started" }]) },
    { name: canary, says: Observation.calls([{ ...call, phase: "ready" }]) },
    { name: canary, says: Observation.calls([{ ...hosted, phase: "input_started" }]) },
  ];
};

/** Collects everything that is logged: messages, annotations, causes, and their properties. */
const logged = () => {
  const lines: Array<string> = [];
  const logger = Logger.make<unknown, void>(({ message, cause, logLevel, fiber }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations);
    lines.push(`${logLevel} ${text(message)} ${text(annotations)} ${Cause.pretty(cause)} ${text(cause.reasons)}`);
  });
  const layer = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "All"));
  return { lines, layer };
};

const text = (value: unknown): string =>
  `${JSON.stringify(value, (_, it: unknown) => (it instanceof Error ? `${it.name} ${it.message} ${it.stack}` : it))}`;

const exportsOf = (record: RunRecord): string =>
  [exportRun(record), ...record.incidents.map((incident) => exportIncident(incident))].map(encode).join("\n");

/** Places in a record that may contain a provider's own name. The export numbers it. */
const labelled = [
  "attempts.facts.tools.tool",
  "incidents.facts.tools.tool",
  "incidents.decision.calls.tool",
  "calls.id",
  "calls.tool",
  "evidence.first.detail",
  "end.reason",
];

/** The classifier accepts short numbers as codes, even several in a row; the export counts their digits. */
const passed = (canary: string, place: string): boolean =>
  /^(?:host-)?[\d.-]+$/.test(canary) && /^incidents\.failure\.(?:code|fingerprint\.(?:code|name))$/.test(place);

const finished = (canary: string) =>
  Stream.fromArray([...parts(canary), { name: canary, says: Observation.terminal(canary) }]);

/** The record, the export and the log of a run. */
const observed = (options: Options, layer = S.processor()) =>
  Effect.gen(function* () {
    const log = logged();
    const seen = yield* S.played((yield* StreamProcessor).run(options)).pipe(Effect.provide(log.layer));
    const record = yield* S.recordOf("run");
    return { record, seen, exported: exportsOf(record), log: log.lines.join("\n"), lines: log.lines.length };
  }).pipe(Effect.provide(layer));

describe("No planted secret, prompt or path of a provider leaves a run", () => {
  it.effect("the test does read the log: a line logged inside a run is found", () =>
    Effect.gen(function* () {
      const { log } = yield* observed({
        ...options("x", undefined, {}),
        attempt: () => Stream.drain(Stream.fromEffect(Effect.logTrace("hunter2", new Error("jane.doe")))),
      });
      assert.deepStrictEqual(found(log, ["hunter2", "AKIAIOSFODNN7EXAMPLE", "jane.doe"]), ["hunter2", "jane.doe"]);
    }),
  );

  for (const canary of canaries) {
    it.effect(`${JSON.stringify(canary.slice(0, 32))} in every field of an error`, () =>
      Effect.gen(function* () {
        for (const [index, error] of errors(canary).entries()) {
          const { record, exported, log } = yield* observed(options(canary, error, {}));
          assert.isAtLeast(record.incidents.length, 1);
          const places = pathsTo(record, [canary]).map(named);
          assert.deepStrictEqual(
            places.filter((place) => !passed(canary, place)),
            [],
            `record, error ${index}`,
          );
          assert.deepStrictEqual(found(exported, [canary]), [], `export, error ${index}`);
          assert.deepStrictEqual(found(log, [canary]), [], `log, error ${index}`);
        }
      }),
    );

    it.effect(`${JSON.stringify(canary.slice(0, 32))} in text, tool names, ids, arguments and the finish`, () =>
      Effect.gen(function* () {
        const reset = Object.assign(new Error(canary), { code: "ECONNRESET" });
        const broken = yield* observed({
          ...options(canary, reset, {}),
          attempt: () => Stream.concat(Stream.fromArray([...talkative(canary)]), Stream.fail(reset)),
        });
        const whole = yield* observed({ ...options(canary, reset, {}), attempt: () => finished(canary) });
        assert.strictEqual(whole.record.end?.state, "completed");
        for (const { record, exported, log } of [broken, whole]) {
          const places = [...new Set(pathsTo(record, [canary]).map(named))];
          assert.deepStrictEqual(
            places.filter((place) => !labelled.includes(place)),
            [],
          );
          assert.isAtLeast(places.length, 2, "tool names and finish reasons are labels of a record");
          assert.deepStrictEqual(found(exported, [canary]), []);
          assert.deepStrictEqual(found(log, [canary]), []);
          assert.include(exported, '"label_1"');
        }
      }),
    );
  }

  it.effect("in the error of a credential refresh and of the recorder: both are logged, neither is repeated", () =>
    Effect.gen(function* () {
      const canary = "sk-proj-4f9aXQ7b2kLmN8pR3tUv";
      const unauthorized = { status: 401, error: { code: "invalid_api_key", message: canary } };
      const refreshCredentials = Effect.fail({ _tag: "RefreshFailed", message: canary, stack: canary });
      const refused = yield* observed(options(canary, unauthorized, { refreshCredentials }));
      assert.isAtLeast(refused.lines, 1);
      assert.deepStrictEqual(found(`${refused.log}${refused.exported}`, [canary]), []);

      const memory = RunRecorder.layerMemory();
      const failing = Layer.effect(
        RunRecorder,
        Effect.map(RunRecorder, (recorder) => ({
          ...recorder,
          write: (runId: string, entries: Parameters<typeof recorder.write>[1]) =>
            entries.some((entry) => entry._tag === "IncidentOpened")
              ? Effect.fail(
                  new RecorderError({
                    reason: "unavailable",
                    run_id: runId,
                    message: canary,
                    cause: new Error(canary),
                  }),
                )
              : recorder.write(runId, entries),
        })),
      ).pipe(Layer.provide(memory));
      const log = logged();
      const processor = Layer.fresh(StreamProcessor.layer).pipe(Layer.provide(Layer.merge(S.processor(), failing)));
      yield* Effect.gen(function* () {
        yield* S.played((yield* StreamProcessor).run(options(canary, new Error(canary), {})));
      }).pipe(Effect.provide(Layer.merge(processor, log.layer)));
      assert.isAtLeast(log.lines.length, 1);
      assert.deepStrictEqual(found(log.lines.join("\n"), [canary]), []);
    }),
  );
});
