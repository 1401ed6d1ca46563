/**
 * Judges a run in its world: ids used again, a store that fails or is away, edge values, a frozen process, and the calm after which
 * everything must end (I17 to I24).
 */
import { isDeepStrictEqual } from "node:util";
import { Exit, Schema } from "effect";
import { toMs } from "../../../src/domain/Durations.ts";
import { Entry as WrittenSchema } from "../../../src/recorder/RunRecord.ts";
import type { Entry, HandlerCall, Trace } from "../Journal.ts";
import { interruptedOf } from "./Events.ts";
import { against, type Violation } from "./Invariants.ts";
import { isLeft } from "./Record.ts";

/** I17: the first request is sent once, even if a second run uses the id. If the record is whole, the second run is told so. */
export const idsOnce = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I17");
  if (trace.scenario.world.again === null) return violations;
  const lost = trace.journal.some((it) => it.what === "written" && !it.ok);
  const firsts = trace.journal.filter((it) => it.what === "opened" && it.context.attempt === 1);
  if (!lost) holds(firsts.length <= 1, () => `attempt 1 was opened ${firsts.length} times`);
  const began = trace.journal.findIndex((it) => it.what === "writing");
  const starts = trace.journal.findIndex((it) => it.what === "again" && it.phase === "starts");
  const ends = trace.journal.findIndex((it) => it.what === "again" && it.phase === "ends");
  if (!lost && began >= 0 && began < starts) holds(ends < 0, () => "the id was used again and not refused");
  return violations;
};

/** I18: every written entry can be read. */
export const everyEntryDecodes = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I18");
  for (const entry of trace.journal) {
    if (entry.what !== "written" || !entry.ok) continue;
    for (const it of entry.entries) {
      const read = decoded(JSON.parse(JSON.stringify(it)));
      holds(Exit.isSuccess(read), () => `${it._tag} cannot be read back: ${JSON.stringify(it).slice(0, 300)}`);
    }
  }
  return violations;
};

const decoded = Schema.decodeUnknownExit(WrittenSchema);

/** I19: the record says what the caller was told. The store has been back for hours at this time. */
export const recordAgrees = (trace: Trace): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I19");
  const { journal, record } = trace;
  const tried = journal.flatMap((it) =>
    it.what === "writing" ? it.entries.filter(({ _tag }) => _tag === "RunEnded") : [],
  );
  holds(
    trace.scenario.world.again !== null || tried.every((it) => isDeepStrictEqual(it, tried[0])),
    () => `ends that differ were written: ${tried.map((it) => JSON.stringify(it)).join(" ")}`,
  );
  if (!trace.ended || record === undefined || trace.scenario.world.again !== null) return violations;
  const told = journal.some((it) => it.what === "seen" && it.event._tag === "RunCompleted")
    ? "completed"
    : interruptedOf(trace) === undefined
      ? undefined
      : "stopped";
  if (interruptedOf(trace)?.reason === "refused") return violations;
  // A processor that is closed while the store is away writes on for a while and then gives up.
  const closed = journal.some((it) => it.what === "outside" && it.kind === "close");
  const { away, faults } = trace.scenario.world;
  if (closed && (away.length > 0 || faults.some(({ how }) => how !== "throw"))) return violations;
  if (isLeft(trace)) return violations;
  const state = () => `the caller was told ${told}, on record is ${record.state} ${record.end?.state ?? ""}`;
  if (told !== undefined) holds(record.end?.state === told, state);
  else holds(record.state === "ended", state);
  return violations;
};

/** Maximum wait for one write, and the slack for its retry or its consequence, in milliseconds. */
const writeMsMax = 5_000;
const slackMs = 1_000;

/** I20: a write that does not return is abandoned: the first attempt opens, and the stream ends, without it. */
export const noWriteHolds = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I20");
  const { scenario } = trace;
  const hangs = scenario.world.faults.some(({ how }) => how !== "throw");
  const digests = scenario.world.digest === "hangs";
  if (!hangs && !digests) return violations;
  const slow = Math.max(...scenario.recorder.delays);
  const most = (digests ? 2 : 1) * (writeMsMax + slackMs) + slow;
  const first = trace.journal.find((it) => it.what === "opened");
  if (first !== undefined) holds(first.at <= most, () => `the first attempt opens after ${first.at} ms`);
  const ended = trace.journal.find((it) => it.what === "ended");
  const write = trace.journal.find((it) => it.what === "writing" && it.entries.some(({ _tag }) => _tag === "RunEnded"));
  if (ended === undefined || write === undefined || scenario.consumer.kind !== "drain") return violations;
  const { delay, when } = scenario.toolUse;
  if (when === "inline" && (delay > 0 || scenario.tools.length > 0)) return violations;
  holds(ended.at - write.at <= most, () => `the stream ends ${ended.at - write.at} ms after its end was written`);
  return violations;
};

/** I21: a watchdog only cuts a source that was silent for its whole limit while the process ran. The journal counts that time. */
export const frozenTimeIsNoSilence = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I21");
  const { edges, freezes } = trace.scenario.world;
  if (freezes.length === 0 || edges.some(({ field }) => field.startsWith("clocks."))) return violations;
  const { clocks } = trace.scenario.options;
  const limits: Readonly<Record<string, number>> = {
    first_progress: clocks.first_progress === false ? Number.POSITIVE_INFINITY : toMs(clocks.first_progress ?? 180_000),
    attempt: clocks.attempt === false ? Number.POSITIVE_INFINITY : toMs(clocks.attempt ?? Number.POSITIVE_INFINITY),
    idle: clocks.idle === false ? Number.POSITIVE_INFINITY : Math.min(toMs(clocks.idle ?? 300_000), 10_000),
  };
  const opened = new Map<number, number>();
  const complete = new Set<number>();
  for (const entry of trace.journal) {
    if (entry.what === "opened") opened.set(entry.context.attempt, entry.at);
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) {
      if (it._tag !== "EvidenceNoted") continue;
      const { attempt, detail = "", event } = it.evidence;
      if (event === "terminal_candidate") complete.add(attempt);
      if (event !== "watchdog") continue;
      const ran = entry.at - (opened.get(attempt) ?? entry.at);
      const limit = limits[detail] ?? 0;
      // After its terminal marker a source has at most ten seconds to end, even if its idle watchdog is off.
      const least = detail === "idle" && complete.has(attempt) ? Math.min(limit, 10_000) : limit;
      holds(ran >= least, () => `${detail} cut attempt ${attempt} after ${ran} ms in which the process ran`);
    }
  }
  return violations;
};

/** Maximum time from the calm to the end of a run, in virtual milliseconds: a stall of five minutes, its wait, and some slack. */
export const livenessMsMax = 900_000;

/** I22 */
export const endsInTheCalm = (trace: Trace): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I22");
  const { calmAt } = trace.scenario.world;
  if (calmAt === null) return violations;
  const ended = trace.journal.find((it) => it.what === "ended");
  holds(ended !== undefined, () => "everything was well for hours, and the run has not ended");
  if (ended === undefined) return violations;
  const took = ended.at - calmAt;
  holds(took <= livenessMsMax, () => `the run ended ${took} ms after everything was well`);
  return violations;
};

/** I23: a part that counts as shown has a hand-over on record. */
export const shownMeansHandedOver = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I23");
  const shown = new Map<number, Set<string>>();
  for (const entry of trace.journal) {
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) {
      if (it._tag === "EvidenceNoted" && it.evidence.event === "shown") {
        const { attempt, detail = "" } = it.evidence;
        shown.set(attempt, (shown.get(attempt) ?? new Set()).add(detail));
      }
      if (it._tag !== "IncidentOpened") continue;
      const { facts } = it.incident;
      if (facts.shown === "nothing") continue;
      const told = [...shown.values()].some((details) => details.has(facts.shown));
      holds(told, () => `${it.incident.id} was decided on ${facts.shown} that was not handed over`);
    }
  }
  return violations;
};

/** I24: a call whose handler runs is not settled as one that did not run. */
export const runsAndDidNotRun = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I24");
  const running = new Set<HandlerCall>();
  const judge = (entry: Extract<Entry, { readonly what: "writing" }>) => {
    for (const it of entry.entries) {
      if (it._tag !== "CallJudged" || it.verdict !== "it_did_not_run") continue;
      const beside = [...running].find((call) => !call.vague && call.attempt === it.attempt && call.call === it.call);
      holds(beside === undefined, () => `${it.attempt}/${it.call} was said not to run while its handler ran`);
    }
  };
  for (const entry of trace.journal) {
    if (entry.what === "handler_started") running.add(entry.call);
    if (entry.what === "tool_returned") running.delete(entry.call);
    if (entry.what === "writing") judge(entry);
  }
  return violations;
};
