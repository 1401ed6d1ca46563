/**
 * A separate process with a recorder over a file or a database that executes its parent's requests. It may run the previous
 * version of the program.
 */
import { Clock, Effect, Layer, ManagedRuntime } from "effect";
import { type RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import type { ChildMessage } from "./SqlProcess.ts";

const [file = "", leaseMs = "", aheadMs = "0", version = "now"] = process.argv.slice(2);

const { PostgresRunRecorder, SqlRunRecorder } =
  version === "previous"
    ? await import("../../fixtures/schema-2/recorder.mjs")
    : {
        ...(await import("../../../src/recorder/postgres/PostgresRunRecorder.ts")),
        ...(await import("../../../src/recorder/sql/SqlRunRecorder.ts")),
      };

/** This process's wall clock, which may be wrong. */
const clock: Clock.Clock = Object.create(Clock.Clock.defaultValue(), {
  currentTimeMillisUnsafe: { value: () => Date.now() + Number(aheadMs) },
});

const options = { leaseMs: Number(leaseMs), retention: false } as const;

const layer = file.startsWith("postgres:")
  ? PostgresRunRecorder.layer({ ...options, address: file })
  : SqlRunRecorder.layerFile({ ...options, file, synchronous: "normal" });

const runtime = ManagedRuntime.make(Layer.provide(layer, Layer.succeed(Clock.Clock, clock)));

const tell = (told: ChildMessage): void => void process.send?.(told);

/** Repeats a write that wrote nothing because the other process's storm blocked it for longer than the lock timeout. */
const written = (write: Effect.Effect<void, RecorderError>): Effect.Effect<void, RecorderError> =>
  Effect.catchIf(
    write,
    ({ reason }) => reason === "locked",
    () => written(write),
  );

/** Writes one run after the other, each entry separately, and reports each commit, until it is killed. */
const storm = (recorder: Recorder, name: string): Effect.Effect<never, unknown> =>
  Effect.gen(function* () {
    for (let run = 0; ; run += 1) {
      const runId = `${name}${run}`;
      for (const [index, entry] of E.life(runId).entries()) {
        yield* written(recorder.write(runId, [entry]));
        tell({ committed: index + 1, run: runId });
      }
    }
  });

const asked = (recorder: Recorder, method: string, args: ReadonlyArray<never>): Effect.Effect<unknown, unknown> => {
  if (method === "storm") return storm(recorder, String(args[0]));
  // The parent names methods of the service with their own arguments, as `SqlProcess.call` ensures.
  const methods = recorder as unknown as Readonly<
    Record<string, (...all: ReadonlyArray<never>) => Effect.Effect<unknown>>
  >;
  return methods[method]?.(...args) ?? Effect.die(new Error(`no method ${method}`));
};

process.on("message", ({ args, id, method }: { id: number; method: string; args: ReadonlyArray<never> }) => {
  const effect = Effect.flatMap(RunRecorder, (recorder) => asked(recorder, method, args));
  runtime.runPromise(effect).then(
    (value) => tell({ id, value }),
    (error: { readonly reason?: string; readonly message?: string }) =>
      tell({ id, failed: error.reason ?? error.message ?? "unknown" }),
  );
});

process.on("disconnect", () => process.exit(0));
await runtime.runPromise(Effect.asVoid(RunRecorder)).then(
  () => tell({ id: 0, value: "ready" }),
  (error: { readonly reason?: string }) => tell({ id: 0, failed: error.reason ?? "unknown" }),
);
