/**
 * Judges what several processes have written down of their operations against what their store holds in the end. It knows no
 * recorder, only what an acknowledgement means.
 */
import type { Final, Operation } from "./History.ts";

/** What must hold of every history, by its rule's name. */
export type Rule = keyof typeof rules;

/** A history: every operation of every process, and how each run stands in the end. */
export interface Judged {
  readonly operations: ReadonlyArray<Operation>;
  readonly finals: ReadonlyArray<Final>;
}

/** One run of it. */
interface OneRun {
  readonly all: ReadonlyArray<Operation>;
  readonly final: Final;
}

/** What is wrong with a history, each with its rule; empty where nothing is. */
export const problems = ({
  finals,
  operations,
}: Judged): ReadonlyArray<{ readonly rule: Rule; readonly told: string }> => {
  const byRun = Map.groupBy(operations, ({ run }) => run);
  const known = new Map(finals.map((it) => [it.run, it]));
  return [...byRun].flatMap(([run, all]) => {
    const final = known.get(run) ?? { run, notes: [], questions: [] };
    return names.flatMap((rule) =>
      rules[rule]({ all, final, isKnown: known.has(run) }).map((told) => ({ rule, told: `${run}: ${told}` })),
    );
  });
};

const named = ({ actor, id, kind }: Operation): string => `${kind} ${id} of ${actor}`;
const acknowledged = (it: Operation): boolean => it.outcome === "ok";
const maybe = (it: Operation): boolean => it.outcome !== "refused";
/** The first was over before the second began. */
const before = (first: Operation, second: Operation): boolean => first.to !== undefined && first.to < second.from;
const of = (all: ReadonlyArray<Operation>, ...kinds: ReadonlyArray<Operation["kind"]>) =>
  all.filter(({ kind }) => kinds.includes(kind));

/** Whether the store holds what an operation would write; undefined for one that leaves no trace of its own. */
const isThere = ({ end, notes, questions }: Final, { id, kind }: Operation): boolean | undefined => {
  if (kind === "note") return notes.includes(id);
  if (kind === "ask") return questions.some((it) => it.id === id);
  return kind === "end" ? end === id : undefined;
};

/**
 * A note that was under way when its own process gave the run back is a late fact (L1), which the record takes while nobody drives
 * the run: whoever claimed it meanwhile has given it back too.
 */
const isLateFact = (all: OneRun["all"], note: Operation, drivers: ReadonlyArray<Operation>): boolean => {
  const over = note.to ?? Number.POSITIVE_INFINITY;
  const gaveBack = of(all, "park", "release", "end").filter((it) => maybe(it) && it.from < over);
  const isUnderWay = (it: Operation) => it.actor === note.actor && note.from < (it.to ?? Number.POSITIVE_INFINITY);
  const isFree = (driver: Operation) => gaveBack.some((it) => it.actor === driver.actor && it.from > driver.from);
  return gaveBack.some(isUnderWay) && drivers.some(isFree);
};

/** Whether an operation of the run's driver was taken. A park leaves no trace: only its acknowledgement says so. */
const isTaken = (final: Final, it: Operation): boolean =>
  it.kind === "park" ? acknowledged(it) : maybe(it) && isThere(final, it) === true;

/**
 * Whether another process has taken a run before an operation was taken, whichever was over first: a claim finds every question that
 * was asked before it, and no run that has ended is claimed.
 */
const isBehind = (it: Operation, claim: Operation): boolean => {
  if (before(claim, it) || before(it, claim)) return before(claim, it);
  return it.kind === "end" || (it.kind === "ask" && claim.asked !== undefined && !claim.asked.includes(it.id));
};

/** Whether a process may have driven the run again behind another one's claim, or that one may have given it back by then. */
const mayWrite = (all: OneRun["all"], it: Operation, claim: Operation): boolean => {
  const over = it.to ?? Number.POSITIVE_INFINITY;
  const since = all.filter((other) => maybe(other) && other.from < over && !before(other, claim));
  const taking = of(since, "claim", "start").filter(({ actor }) => actor === it.actor);
  const givingBack = of(since, "park", "release", "end").filter(({ actor }) => actor !== it.actor);
  return taking.length > 0 || givingBack.length > 0;
};

/** The claim, or the start, of another process behind which an old owner has asked, parked or ended a run. */
const overtaken = ({ all, final }: OneRun): ReadonlyArray<string> => {
  const claims = of(all, "claim", "start").filter(acknowledged);
  return of(all, "ask", "park", "end").flatMap((it) => {
    if (!isTaken(final, it)) return [];
    const others = claims.filter((claim) => claim.actor !== it.actor && isBehind(it, claim));
    const last = others.find((claim) => !mayWrite(all, it, claim));
    return last === undefined ? [] : [`${named(it)} stands behind ${named(last)}`];
  });
};

/** Notes of who did not drive the run, by the order of its record. */
const strayNotes = ({ all, final }: OneRun): ReadonlyArray<string> => {
  const claims = of(all, "claim").filter((it) => acknowledged(it) && it.saw !== undefined);
  const starts = of(all, "start").filter(maybe);
  const begun = starts.some(acknowledged) ? starts.filter(acknowledged) : starts;
  return final.notes.flatMap((id, at) => {
    const note = of(all, "note").find((it) => it.id === id);
    if (note === undefined) return [`note ${id} is nobody's`];
    const earlier = claims.filter((it) => (it.saw?.length ?? 0) <= at);
    const last = Math.max(-1, ...earlier.map((it) => it.saw?.length ?? 0));
    const latest = earlier.filter((it) => it.saw?.length === last);
    // Of claims that found the same notes the one that was over first is not the last.
    const drivers = latest.length === 0 ? begun : latest.filter((it) => !latest.some((other) => before(it, other)));
    if (drivers.some(({ actor }) => actor === note.actor)) return [];
    if (isLateFact(all, note, drivers)) return [];
    const silent = of(all, "claim").some(
      (it) => it.actor === note.actor && it.outcome === "unknown" && it.from < (note.to ?? Infinity),
    );
    return silent ? [] : [`${named(note)} stands behind ${drivers.map(named).join(" and ")}`];
  });
};

const rules = {
  /** What was acknowledged is on record. */
  missing: ({ all, final, isKnown }: OneRun & { readonly isKnown: boolean }) => [
    ...all.filter((it) => acknowledged(it) && it.kind !== "end" && isThere(final, it) === false).map(named),
    ...of(all, "start")
      .filter((it) => acknowledged(it) && !isKnown)
      .map(named),
  ],

  /** What was refused is not. */
  refused: ({ all, final }: OneRun) =>
    all.filter((it) => it.outcome === "refused" && isThere(final, it) === true).map(named),

  /** A run is begun once. */
  started: ({ all }: OneRun) => {
    const starts = of(all, "start").filter(acknowledged);
    return starts.length > 1 ? [`begun by ${starts.map(named).join(" and ")}`] : [];
  },

  /** A question has one answer: the one that was acknowledged, or one of which nobody knows. */
  answers: ({ all, final }: OneRun) =>
    final.questions.flatMap(({ answer, revision }) => {
      const given = of(all, "answer").filter((it) => it.revision === revision);
      const taken = given.filter(acknowledged);
      if (taken.length > 1) return [`question ${revision} is answered by ${taken.map(named).join(" and ")}`];
      const [only] = taken;
      if (only !== undefined)
        return only.choice === answer ? [] : [`question ${revision}: ${named(only)} is not there`];
      const possible = given.filter(maybe).map(({ choice }) => choice);
      return answer === undefined || possible.includes(answer)
        ? []
        : [`question ${revision}: nobody answered ${answer}`];
    }),

  /** A run has one end: the one that was acknowledged, or one of which nobody knows; and nobody takes it up behind that. */
  end: ({ all, final }: OneRun) => {
    const ends = of(all, "end").filter(acknowledged);
    const [only] = ends;
    if (ends.length > 1) return [`ended by ${ends.map(named).join(" and ")}`];
    if (only === undefined) return [];
    if (final.end !== only.id) return [`${named(only)} is not its end`];
    const late = of(all, "claim").filter((it) => acknowledged(it) && before(only, it));
    return late.map((it) => `${named(it)} behind its end`);
  },

  /** Who claims or reads finds all that was acknowledged before, in the order of the record. */
  seen: ({ all, final }: OneRun) =>
    all.flatMap((it) => {
      const { asked, saw } = it;
      if (saw === undefined || !acknowledged(it)) return [];
      const unheard = of(all, "ask").filter(
        (ask) => acknowledged(ask) && before(ask, it) && asked !== undefined && !asked.includes(ask.id),
      );
      const due = of(all, "note").filter((note) => acknowledged(note) && before(note, it) && !saw.includes(note.id));
      const isPrefix = saw.every((id, at) => final.notes[at] === id);
      return [
        ...[...due, ...unheard].map((missed) => `${named(it)} has not found ${named(missed)}`),
        ...(isPrefix || due.length > 0 || saw.some((id) => !final.notes.includes(id))
          ? []
          : [`${named(it)} has found another order`]),
        ...saw
          .filter((id) => !final.notes.includes(id))
          .map((id) => `${named(it)} has found note ${id}, which is gone`),
      ];
    }),

  /** What is written belongs to the process that drove the run when it was written: behind a claim no earlier owner writes. */
  owner: ({ all, final }: OneRun) => [...overtaken({ all, final }), ...strayNotes({ all, final })],

  /** Who has parked a run writes it only after another claim. */
  parked: ({ all }: OneRun) =>
    of(all, "park")
      .filter(acknowledged)
      .flatMap((park) => {
        const again = of(all, "claim").filter((it) => it.actor === park.actor && maybe(it) && !before(it, park));
        return of(all, "note", "ask", "end")
          .filter((it) => it.actor === park.actor && acknowledged(it) && before(park, it))
          .filter((it) => !again.some((claim) => claim.from < (it.to ?? Infinity)))
          .map((it) => `${named(it)} behind ${named(park)}`);
      }),
} as const;

const names = Object.keys(rules) as ReadonlyArray<Rule>;
