/**
 * Drives any runtime through broken provider streams on real sockets and keeps the score.
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
import { type ConformanceFaultId, conformanceFaults } from "./ConformanceFault.ts";
import type { ConformanceRuntime } from "./ConformanceRuntime.ts";
import { type ConformanceCell, type ConformanceScoreboard, scoreboard } from "./ConformanceScoreboard.ts";
import { playTurn } from "./Turn.ts";

/** The options of a conformance run; each has a default. */
export interface ConformanceOptions {
  /** Only these faults; left out: all. */
  readonly faults?: ReadonlyArray<ConformanceFaultId>;
  /** Only these of the runtime's protocols; left out: all that it speaks. */
  readonly protocols?: ConformanceRuntime["protocols"];
  /** How long the fault `silence` is silent before the response comes, in milliseconds. Default 10,000. */
  readonly silenceMs?: number;
  /** How long a turn may take before it counts as hung, in milliseconds. Default three times the silence, at least 10,000. */
  readonly limitMs?: number;
  /** Turns that are played at the same time, each on a server of its own. Default 8. */
  readonly concurrency?: number;
  /** Called with each cell once it is judged; an Effect that it returns is run. */
  readonly onCell?: (cell: ConformanceCell) => Effect.Effect<void> | void;
}

/** How long the fault `silence` is silent by default, in milliseconds: longer than any response takes to begin. */
export const silenceMsDefault = 10_000;

/** The least time that a turn gets, in milliseconds: SDKs wait up to 8 s between two of their own retries. */
const limitMsMin = 10_000;

/**
 * Judges a runtime from Effect.
 *
 * @param runtime the runtime; its turns may need services
 * @param options which faults and protocols, and how long
 */
export const runConformance = Effect.fn("Conformance.run")(function* <R>(
  runtime: ConformanceRuntime<R>,
  options: ConformanceOptions = {},
) {
  const silenceMs = options.silenceMs ?? silenceMsDefault;
  const limitMs = options.limitMs ?? Math.max(3 * silenceMs, limitMsMin);
  const faults = conformanceFaults.filter(({ id }) => options.faults?.includes(id) ?? true);
  const protocols = runtime.protocols.filter((protocol) => options.protocols?.includes(protocol) ?? true);
  const turns = protocols.flatMap((protocol) => faults.map((fault) => ({ fault, protocol })));
  const cells = yield* Effect.forEach(
    turns,
    ({ fault, protocol }) =>
      playTurn(runtime, fault, protocol, { silenceMs, limitMs }).pipe(
        Effect.tap((cell) => {
          const reaction = options.onCell?.(cell);
          return Effect.isEffect(reaction) ? reaction : Effect.void;
        }),
      ),
    { concurrency: options.concurrency ?? 8 },
  );
  return scoreboard({ runtime: runtime.name, versions: runtime.versions ?? {}, silence_ms: silenceMs }, cells);
});

/**
 * Judges a runtime from JavaScript or TypeScript without Effect.
 *
 * @param runtime the runtime, whose turns are promises (or Effects that need nothing)
 * @param options which faults and protocols, and how long
 * @returns the scoreboard: data for an assertion, or for `conformanceTable`
 */
export const conformance = (
  runtime: ConformanceRuntime,
  options: ConformanceOptions = {},
): Promise<ConformanceScoreboard> => Effect.runPromise(runConformance(runtime, options));
