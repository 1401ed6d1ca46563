/** Judges the logs of the provider and the tools: attempts, effects and the marker (I3, I4, I5, I11). */
import { resolve } from "../../../src/domain/Failure.ts";
import type { RunIncident } from "../../../src/domain/RunIncident.ts";
import { closeGraceMs, lingerMs } from "../../../src/runtime/contract/Clocks.ts";
import type { Entry, Part, Trace } from "../Journal.ts";
import { runFailureIsMalformed } from "../world/Malformed.ts";
import { against, type Violation } from "./Invariants.ts";

type Opened = Extract<Entry, { readonly what: "opened" }>["context"];

/** The abandoned attempts, each with its place in the journal and whether the policy abandoned it without a person. */
export const supersessions = (journal: ReadonlyArray<Entry>) => {
  const superseded = new Map<number, { readonly at: number; readonly by: number; readonly automatic: boolean }>();
  let live: Array<number> = [];
  let automatic = true;
  for (const [at, entry] of journal.entries()) {
    if (entry.what === "writing") {
      for (const it of entry.entries) {
        if (it._tag === "QuestionAnswered") automatic = false;
        // Incidents that are recorded late decide nothing.
        if (it._tag === "IncidentOpened" && it.incident.status !== "late")
          automatic ||= it.incident.decision.action === "auto_retry_once";
      }
    }
    if (entry.what !== "opened") continue;
    const gone = givenUp(entry.context, live);
    for (const attempt of gone) superseded.set(attempt, { at, by: entry.context.attempt, automatic });
    live = [...live.filter((attempt) => !gone.includes(attempt)), entry.context.attempt];
  }
  return superseded;
};

/** The attempts that a new one replaces. A resume replaces none, the repeat of a resume only the broken resume, anything else the response. */
const givenUp = (next: Opened, live: ReadonlyArray<number>): ReadonlyArray<number> => {
  if (next.mode === "resume") return [];
  return next.request === "resume" ? live.slice(-1) : live;
};

/** I3 */
export const effectsOnce = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I3");
  const superseded = supersessions(trace.journal);
  const modes = new Map(
    trace.journal.flatMap((it) => (it.what === "opened" ? [[it.context.attempt, it.context.mode] as const] : [])),
  );
  const ran = new Map<string, number>();
  for (const [at, entry] of trace.journal.entries()) {
    if (entry.what !== "handler_started" || entry.call.vague) continue;
    const { attempt, call, effect, guarded, tool } = entry.call;
    const key = `${attempt}/${call} ${tool}`;
    const gone = superseded.get(attempt);
    if (guarded) {
      ran.set(key, (ran.get(key) ?? 0) + 1);
      holds(ran.get(key) === 1, () => `${key} started ${ran.get(key)} times`);
      holds(gone === undefined || at < gone.at, () => `${key} started after attempt ${gone?.by} took over`);
    }
    const repeated = gone?.automatic === true && modes.get(gone.by) === "replay" && effect !== "read_only";
    holds(!repeated, () => `${key} ran, and attempt ${gone?.by} repeated its request without asking`);
  }
  return [...violations, ...providerEffects(trace, superseded, modes)];
};

/** Changes made by hosted tools must not be repeated without a question either. */
const providerEffects = (
  trace: Pick<Trace, "journal" | "scenario">,
  superseded: ReturnType<typeof supersessions>,
  modes: ReadonlyMap<number, string>,
) => {
  const { holds, violations } = against("I3");
  const hosted = trace.scenario.tools.some(({ effect, executor }) => executor === "provider" && effect !== "read_only");
  for (const failure of hosted ? unseenRest(trace.journal, superseded, modes) : []) {
    holds(false, () => `the provider may have run a hosted tool unseen (${failure}), and its request was repeated`);
  }
  const decided = new Set<number>();
  for (const entry of trace.journal) {
    if (entry.what === "writing") {
      for (const it of entry.entries) if (it._tag === "IncidentOpened") decided.add(it.incident.attempt);
    }
    if (entry.what !== "emitted" || decided.has(entry.attempt)) continue;
    const gone = superseded.get(entry.attempt);
    if (gone?.automatic !== true || modes.get(gone.by) !== "replay") continue;
    for (const part of beforeError(entry.parts)) {
      for (const { executor, tool } of part.says.calls) {
        const effect = trace.scenario.tools.find(({ name }) => name === tool)?.effect;
        holds(
          executor === "runtime" || effect === "read_only",
          () => `the provider ran ${tool} in attempt ${entry.attempt}, and ${gone.by} repeats it`,
        );
      }
    }
  }
  return violations;
};

/**
 * Failures after which an automatic replay cannot know what the provider still did: the stream was cut before its end, and nothing
 * says that the request was not processed.
 */
const unseenRest = (
  journal: ReadonlyArray<Entry>,
  superseded: ReturnType<typeof supersessions>,
  modes: ReadonlyMap<number, string>,
): ReadonlyArray<string> => {
  const incidents = new Map<number, RunIncident>();
  for (const entry of journal) {
    if (entry.what !== "writing") continue;
    for (const it of entry.entries) if (it._tag === "IncidentOpened") incidents.set(it.incident.attempt, it.incident);
  }
  // The same cursor again reads an existing response and causes no new request.
  const resumes = journal.flatMap((it) =>
    it.what === "opened" && it.context.request === "resume" ? [it.context.attempt] : [],
  );
  return [...superseded].flatMap(([attempt, gone]) => {
    if (resumes.includes(gone.by)) return [];
    const failure = incidents.get(attempt)?.failure;
    const accepted = journal.some((it) => it.what === "emitted" && it.attempt === attempt);
    if (!gone.automatic || modes.get(gone.by) !== "replay" || !accepted || failure === undefined) return [];
    const { in_band, not_processed } = resolve(failure);
    return in_band || not_processed ? [] : [`attempt ${attempt}, ${failure.kind}`];
  });
};

const beforeError = (parts: ReadonlyArray<Part>): ReadonlyArray<Part> => {
  const at = parts.findIndex((part) => part.says.failure !== undefined);
  return at < 0 ? parts : parts.slice(0, at);
};

/** I4 */
export const oneAtATime = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I4");
  // During a freeze the grace period passes, too.
  const graceMs = trace.scenario.world.freezes.length > 0 ? 0 : closeGraceMs;
  const open = new Set<number>();
  const abandoned = new Set<number>();
  const decidedAt = new Map<number, number>();
  const note = ({ at, entries }: Extract<Entry, { readonly what: "writing" }>): void => {
    for (const it of entries) {
      if (it._tag !== "EvidenceNoted") continue;
      const { at_ms, attempt, event } = it.evidence;
      if (event === "abandoned") abandoned.add(attempt);
      if ((event === "failure" || event === "source_ended") && !decidedAt.has(attempt))
        // The run's own time may have jumped during a freeze.
        decidedAt.set(attempt, Math.min(at_ms, at));
    }
  };
  // A volatile run writes after it acts, so its decisions are known from the rest of the journal.
  if (trace.scenario.world.record === "behind")
    for (const entry of trace.journal) if (entry.what === "writing") note(entry);
  for (const entry of trace.journal) {
    switch (entry.what) {
      case "writing":
        note(entry);
        break;
      case "opened": {
        const { attempt } = entry.context;
        for (const earlier of open) {
          const waited = entry.at - (decidedAt.get(earlier) ?? entry.at);
          holds(abandoned.has(earlier), () => `attempt ${attempt} opens while ${earlier} is open`);
          holds(waited >= graceMs - 1, () => `attempt ${earlier} had ${waited} ms to close before ${attempt} opened`);
        }
        open.add(attempt);
        break;
      }
      case "closed":
        open.delete(entry.attempt);
    }
  }
  return violations;
};

/** I5 */
export const noFalseSuccess = (trace: Pick<Trace, "journal" | "record" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I5");
  const completed = trace.journal.some((it) => it.what === "seen" && it.event._tag === "RunCompleted");
  if (!completed && trace.record?.end?.state !== "completed") return [];
  const last = trace.journal.findLast((it) => it.what === "opened")?.context.attempt;
  const parts = trace.journal.flatMap((it) => (it.what === "emitted" && it.attempt === last ? it.parts : []));
  const clean = trace.journal.some((it) => it.what === "source_ended" && it.attempt === last && it.end.how === "clean");
  let marked = false;
  for (const { says } of parts) {
    if (says.failure !== undefined && !runFailureIsMalformed(says.failure)) break;
    if (says.terminal) marked = true;
  }
  const failed = parts.some(({ says }) => says.failure !== undefined);
  const atEnd = clean && !failed && parts.at(-1)?.says.terminal_at_end === true;
  // A finish on a connection that stays open is proven by enough silence after it.
  const saidAt = trace.journal.findLast((it) => it.what === "emitted" && it.attempt === last)?.at ?? 0;
  // Plain parts have no event for the end.
  const end = trace.scenario.surface === "parts" ? "ended" : "seen";
  const endedAt = trace.journal.findLast((it) => it.what === end)?.at ?? 0;
  const { idle } = trace.scenario.options.clocks;
  const silentMs = typeof idle === "number" ? Math.min(idle, lingerMs) : lingerMs;
  // A source whose close hangs reports no end, so the runtime sees silence.
  const broke = trace.journal.some((it) => it.what === "closed" && it.attempt === last && it.at < saidAt + silentMs);
  const lingered = !failed && !broke && parts.at(-1)?.says.terminal_at_end === true && endedAt - saidAt >= silentMs;
  holds(marked || atEnd || lingered, () => `completed, but attempt ${last} never reached its marker`);
  return violations;
};

/** I11 */
export const nothingStartsAfterTheStop = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I11");
  let stopped: string | undefined;
  for (const entry of trace.journal) {
    if (entry.what === "writing") {
      for (const it of entry.entries) {
        if (it._tag === "RunEnded" && it.end.state === "stopped" && it.end.reason !== "consumer_finished")
          stopped = it.end.reason;
      }
    }
    if (entry.what !== "handler_started" || !entry.call.guarded) continue;
    const { attempt, call, tool } = entry.call;
    holds(stopped === undefined, () => `${tool} ${attempt}/${call} started after the run was stopped (${stopped})`);
  }
  return violations;
};
