/**
 * Puts a gateway before the provider of every turn of a conformance run. Only the client's base URL changes.
 */
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { runConformance } from "../../../src/testing/conformance/Conformance.ts";
import { type ConformanceCell, type ConformanceRuntime, conformanceFaults } from "../../../src/testing/index.ts";
import { front } from "../GatewayCases.ts";

/** The results of all turns. */
export interface Judged {
  readonly cells: ReadonlyArray<ConformanceCell>;
  /** Prompts of the turns in which the client repeated a request by itself; they name fault and protocol. */
  readonly repeated: ReadonlyArray<string>;
}

/** Duration of the healthy silence, in milliseconds, longer than any answer takes to begin. */
const silenceMs = 1_500;

/** Maximum duration of a turn, in milliseconds. SDKs wait up to 8 s between two of their own retries. */
const limitMs = 30_000;

/** All faults except an endless silence, which a watchdog only detects after minutes and which has its own tests. */
const faults = conformanceFaults.map(({ id }) => id).filter((id) => id !== "stall");

/** Judges a runtime with a gateway between it and each provider. */
export const through = (reveal: NonNullable<GatewayProgram["reveal"]>, runtime: ConformanceRuntime) =>
  Effect.gen(function* () {
    const repeated: Array<string> = [];
    const board = yield* runConformance(behind(runtime, reveal, repeated), {
      faults,
      silenceMs,
      limitMs,
      concurrency: 4,
    });
    const judged: Judged = { cells: board.cells, repeated };
    return judged;
  });

const behind = (
  runtime: ConformanceRuntime,
  reveal: NonNullable<GatewayProgram["reveal"]>,
  repeated: Array<string>,
): ConformanceRuntime => ({
  ...runtime,
  turn: (task) =>
    Effect.gen(function* () {
      const { runs, url } = yield* front(task.origin, { reveal });
      const moved = (address: string) => address.replace(task.origin, url);
      const turn = runtime.turn({
        ...task,
        origin: url,
        base_url: moved(task.base_url),
        endpoint: moved(task.endpoint),
      });
      // Like the kit, reads the rejection of a turn whether it is an error or a defect.
      const told = Effect.isEffect(turn) ? turn : Effect.promise(() => turn);
      return yield* Effect.ensuring(
        told,
        Effect.map(runs, (all) => {
          if (all.some(({ retry_of }) => retry_of !== undefined)) repeated.push(task.prompt);
        }),
      );
    }).pipe(Effect.scoped),
});

/** A cell in one line, for messages. */
export const line = (cell: ConformanceCell): string =>
  `${cell.protocol} ${cell.fault}: ${cell.letter}${cell.requests}${cell.false_abort ? "!" : ""} ${cell.error ?? ""}`;
