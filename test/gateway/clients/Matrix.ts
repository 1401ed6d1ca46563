/**
 * Puts a gateway in front of the provider of every turn of a conformance run: the client gets another base URL, nothing else.
 */
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { runConformance } from "../../../src/testing/conformance/Conformance.ts";
import { type ConformanceCell, type ConformanceRuntime, conformanceFaults } from "../../../src/testing/index.ts";
import { front } from "../GatewayCases.ts";

/** What became of every turn. */
export interface Judged {
  readonly cells: ReadonlyArray<ConformanceCell>;
  /** Prompts of the turns in which the client repeated a request by itself: they name fault and protocol. */
  readonly repeated: ReadonlyArray<string>;
}

/** How long the healthy silence is, in milliseconds: longer than any answer takes to begin. */
const silenceMs = 1_500;

/** How long a turn may take, in milliseconds: SDKs wait up to 8 s between two of their own retries. */
const limitMs = 30_000;

/** A silence for ever is found by the clocks after minutes; the tests of the clocks have it. */
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
      // As in the kit: what a turn rejects with is read whether it is an error or a defect.
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
