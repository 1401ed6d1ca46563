/**
 * Plays a volatile run again with a store that accepts everything at once, and compares what its consumer and its provider saw (I30).
 */
import { isDeepStrictEqual } from "node:util";
import type { Entry, Trace } from "./Journal.ts";
import { against, type Violation } from "./judge/Invariants.ts";
import type { Scenario } from "./Scenario.ts";
import { simulate } from "./Simulation.ts";

/** Finds violations of I30. A run that may wait for its store has none. */
export const besideWell = async (trace: Trace): Promise<ReadonlyArray<Violation>> => {
  const { holds, violations } = against("I30");
  const { scenario } = trace;
  if (!isTroubled(scenario) || mayWait(trace)) return violations;
  const well = await simulate({
    ...scenario,
    recorder: { fails: [], dies: [], delays: [0] },
    world: { ...scenario.world, faults: [], away: [] },
  });
  if (mayWait(well)) return violations;
  const [found, expected] = [shown(trace), shown(well)];
  const at = found.findIndex((it, index) => !isDeepStrictEqual(it, expected[index]));
  holds(
    at < 0 && found.length === expected.length,
    () => `over a store that works ${JSON.stringify(expected[at])}, here ${JSON.stringify(found[at])}`,
  );
  return violations;
};

/** Returns true if a volatile run's store fails or is slow. A run whose surroundings count writes differs over another store. */
const isTroubled = ({ outside, recorder, world }: Scenario): boolean => {
  const { delays, dies, fails } = recorder;
  const isSlow = delays.some((ms) => ms > 0);
  const moments = [...outside, ...world.freezes].map(({ when }) => ("on" in when ? when.on : ""));
  return (
    world.record === "behind" &&
    world.again === null &&
    !moments.includes("write") &&
    (isSlow || fails.length + dies.length + world.faults.length + world.away.length > 0)
  );
};

/** A guarded tool and a question wait for the store (L8). */
const mayWait = ({ journal }: Trace): boolean =>
  journal.some(
    (it) =>
      (it.what === "seen" && it.event._tag === "QuestionAsked") ||
      (it.what === "writing" && it.entries.some(({ _tag }) => _tag === "QuestionAsked")) ||
      ((it.what === "handler_started" || it.what === "tool_returned") && it.call.guarded),
  );

/** Everything that reaches the consumer and the provider, with its time. */
const shown = ({ journal }: Trace): ReadonlyArray<readonly [number, string, string]> =>
  journal.flatMap((it) => {
    const words = wordsOf(it);
    return words === undefined ? [] : [[it.at, it.what, words] as const];
  });

const wordsOf = (entry: Entry): string | undefined => {
  switch (entry.what) {
    case "opened":
      return JSON.stringify(entry.context);
    case "got":
      return JSON.stringify(entry.part);
    case "seen":
      return JSON.stringify(entry.event);
    case "ended":
      return entry.exit._tag;
    default:
      return undefined;
  }
};
