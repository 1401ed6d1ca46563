/**
 * Runs any runtime against broken provider streams on real sockets, and scores it.
 *
 * ```ts
 * const board = await conformance({
 *   name: "my agent",
 *   protocols: ["openai-chat"],
 *   turn: async ({ base_url, api_key, prompt, tools, screen, signal }) => {
 *     for await (const text of myAgent({ base_url, api_key, prompt, tools, signal })) screen.write(text)
 *   },
 * })
 * console.log(conformanceTable([board]))
 * ```
 */
import { Effect } from "effect";
import { answerProtocol } from "../answers/Answers.ts";
import { type ConformanceFaultId, conformanceFaults } from "./ConformanceFault.ts";
import type { ConformanceRuntime, ConformanceThrough } from "./ConformanceRuntime.ts";
import { type ConformanceCell, type ConformanceScoreboard, scoreboard } from "./ConformanceScoreboard.ts";
import { playTurn } from "./Turn.ts";

/** Options of a conformance run. */
export interface ConformanceOptions {
  /** Faults to play. Default: all. Those of tool calls are left out for a protocol without calls. */
  readonly faults?: ReadonlyArray<ConformanceFaultId>;
  /** Protocols to play, among those that the runtime speaks. Default: all of them. */
  readonly protocols?: ConformanceRuntime["protocols"];
  /** Length of the silence in the fault `silence`, in milliseconds. Default 10,000. */
  readonly silenceMs?: number;
  /** Maximum duration of a turn before it counts as hung, in milliseconds. Default three times the silence, at least 10,000. */
  readonly limitMs?: number;
  /** Number of turns played at the same time, each on its own server. Default 8; 1 with `through`. */
  readonly concurrency?: number;
  /** A gateway or proxy that is already running between the runtime and the kit's server. Default: none. */
  readonly through?: ConformanceThrough;
  /** Called after each cell is judged. If it returns an Effect, that Effect is run. */
  readonly onCell?: (cell: ConformanceCell) => Effect.Effect<void> | void;
}

/** Default length of the fault `silence`, in milliseconds. It exceeds the time that any response takes to begin. */
export const silenceMsDefault = 10_000;

/** Minimum time limit of a turn, in milliseconds. It exceeds the pause of up to 8 s between two retries of an SDK. */
const limitMsMin = 10_000;

/**
 * Judges a runtime, for programs that use Effect.
 *
 * @param runtime the runtime; its turns may need services
 * @param options faults, protocols and time limits
 * @throws FaultListenError if the port of `through` cannot be listened on
 */
export const runConformance = Effect.fn("Conformance.run")(function* <R>(
  runtime: ConformanceRuntime<R>,
  options: ConformanceOptions = {},
) {
  const silenceMs = options.silenceMs ?? silenceMsDefault;
  const limitMs = options.limitMs ?? Math.max(3 * silenceMs, limitMsMin);
  const faults = conformanceFaults.filter(({ id }) => options.faults?.includes(id) ?? true);
  const protocols = runtime.protocols.filter((protocol) => options.protocols?.includes(protocol) ?? true);
  const turns = protocols.flatMap((protocol) => {
    const { hasCalls = true } = answerProtocol(protocol);
    return faults.filter(({ calls }) => hasCalls || !calls).map((fault) => ({ fault, protocol }));
  });
  const cells = yield* Effect.forEach(
    turns,
    ({ fault, protocol }) =>
      playTurn(runtime, fault, protocol, { silenceMs, limitMs, through: options.through }).pipe(
        Effect.tap((cell) => {
          const reaction = options.onCell?.(cell);
          return Effect.isEffect(reaction) ? reaction : Effect.void;
        }),
      ),
    // Turns through a gateway share the port of the kit's server.
    { concurrency: options.through === undefined ? (options.concurrency ?? 8) : 1 },
  );
  return scoreboard({ runtime: runtime.name, versions: runtime.versions ?? {}, silence_ms: silenceMs }, cells);
});

/**
 * Judges a runtime, for programs in JavaScript or TypeScript that do not use Effect.
 *
 * @param runtime the runtime, whose turns are promises (or Effects that need nothing)
 * @param options faults, protocols and time limits
 * @returns the scoreboard: data for an assertion, or for `conformanceTable`
 */
export const conformance = (
  runtime: ConformanceRuntime,
  options: ConformanceOptions = {},
): Promise<ConformanceScoreboard> => Effect.runPromise(runConformance(runtime, options));
