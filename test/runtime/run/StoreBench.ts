/**
 * Plays a run over a store with faults, and collects what its caller sees.
 */
import { Context, Effect, Exit, Layer, Random, Scope, Stream } from "effect";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { type Fault, faulty } from "./FaultyStore.ts";

/** Refuses a write with a reason. */
export const failing =
  (reason: RecorderError["reason"]): Fault =>
  () =>
    Effect.fail(new RecorderError({ reason, run_id: "r", message: reason }));

/** A write without a store. */
export const away = failing("unavailable");

interface Given {
  readonly script: ReadonlyArray<S.Step>;
  readonly fault: Parameters<typeof faulty>[1];
  readonly more?: S.More;
  /** True if the guard makes the tool. */
  readonly guarded?: boolean;
  /** Time that the caller spends on an event and its tool on a call, in milliseconds. */
  readonly busyMs?: (line: string) => number;
}

/** A run over a store with faults, and what its caller sees. */
export const bench = ({ busyMs = () => 0, fault, guarded = true, more, script }: Given) =>
  Effect.gen(function* () {
    const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
    const store = faulty(memory, fault);
    const scope = Scope.makeUnsafe();
    const services = yield* Layer.buildWithScope(
      StreamProcessor.layer.pipe(
        Layer.provide(Layer.succeed(RunRecorder, store.recorder)),
        Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed("parked" as const) })),
        Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })),
      ),
      scope,
    );
    const lines: Array<string> = [];
    const ran: Array<string> = [];
    const rules: Array<string> = [];
    const made = Effect.sync(() => void ran.push("bash"));
    const bash = Context.get(services, ToolGuard).mutating("bash", () => Effect.delay(made, busyMs("bash")));
    const tool = guarded ? bash : ({ name: "bash", executor: "runtime", effect: "mutating" } as const);
    const provider = S.scripted(script, [S.start, S.text("b"), S.done]);
    const options = S.options(provider, { runId: "r", transcript: "t", tools: [tool], ...more });
    const consumed = Stream.runForEach(Context.get(services, StreamProcessor).run(options), (event) => {
      lines.push(S.line(event));
      const busy = Effect.sleep(busyMs(S.line(event)));
      if (!guarded || event._tag !== "Part") return busy;
      const run = Effect.forEach(event.calls ?? [], (call) =>
        Effect.forkDetach(
          Effect.map(Effect.exit(bash.run(call, undefined)), (exit) => {
            if (Exit.isFailure(exit)) ran.push("refused");
          }),
        ),
      );
      return Effect.andThen(run, busy);
    });
    const fiber = yield* Effect.forkDetach(
      Effect.map(Effect.exit(consumed), (exit) => {
        const error = S.errorOf(exit);
        if (error === undefined) return;
        lines.push(`end ${error.reason}`);
        rules.push(error.rule);
      }),
      { startImmediately: true },
    );
    const close = Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true });
    return { lines, rules, ran, store, fiber, close, record: memory.run("r"), attempts: provider.attempts };
  });

/** The fault of every write between two virtual times, in milliseconds. */
export const between =
  (from: number, to: number, fault = away) =>
  (_write: number, now: number) =>
    now >= from && now < to ? fault : undefined;

/** Returns true if a write contains an entry of a kind. */
export const has = (entries: ReadonlyArray<Entry>, tag: Entry["_tag"]): boolean =>
  entries.some(({ _tag }) => _tag === tag);
