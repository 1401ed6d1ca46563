/**
 * Judges the logs of several processes against the final state of their store. It uses no recorder, only the meaning of an
 * acknowledgement.
 */
import type { Final, Operation } from "./History.ts";

/** The name of a rule that every history must follow. */
export type Rule = keyof typeof rules;

/** A history: every operation of every process, and the final state of each run. */
export interface Judged {
  readonly operations: ReadonlyArray<Operation>;
  readonly finals: ReadonlyArray<Final>;
}

interface OneRun {
  readonly all: ReadonlyArray<Operation>;
  readonly final: Final;
}

/** Finds the violations of a history, each with its rule. */
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

const describeOperation = ({ actor, id, kind }: Operation): string => `${kind} ${id} of ${actor}`;
const isAcknowledged = (it: Operation): boolean => it.outcome === "ok";
const mayHaveHappened = (it: Operation): boolean => it.outcome !== "refused";
/** True if the first operation was over before the second began. */
const isBefore = (first: Operation, second: Operation): boolean => first.to !== undefined && first.to < second.from;
const of = (all: ReadonlyArray<Operation>, ...kinds: ReadonlyArray<Operation["kind"]>) =>
  all.filter(({ kind }) => kinds.includes(kind));

/** True if the store holds what the operation writes; undefined for an operation that leaves no trace. */
const isThere = ({ end, notes, questions }: Final, { id, kind }: Operation): boolean | undefined => {
  if (kind === "note") return notes.includes(id);
  if (kind === "ask") return questions.some((it) => it.id === id);
  return kind === "end" ? end === id : undefined;
};

/**
 * True if a note was in flight when its own process gave the run back. Such a late fact (L1) is recorded while the run has no owner, so
 * the process that had claimed it meanwhile must have given it back too.
 */
const isLateFact = (all: OneRun["all"], note: Operation, drivers: ReadonlyArray<Operation>): boolean => {
  const over = note.to ?? Number.POSITIVE_INFINITY;
  const gaveBack = of(all, "park", "release", "end").filter((it) => mayHaveHappened(it) && it.from < over);
  const isUnderWay = (it: Operation) => it.actor === note.actor && note.from < (it.to ?? Number.POSITIVE_INFINITY);
  const isFree = (driver: Operation) => gaveBack.some((it) => it.actor === driver.actor && it.from > driver.from);
  return gaveBack.some(isUnderWay) && drivers.some(isFree);
};

/** True if an owner's operation was accepted. A park leaves no trace, so only its acknowledgement proves it. */
const isTaken = (final: Final, it: Operation): boolean =>
  it.kind === "park" ? isAcknowledged(it) : mayHaveHappened(it) && isThere(final, it) === true;

/**
 * True if another process claimed the run before an operation was accepted. If they overlapped, the record decides: a claim returns
 * every earlier question, and an ended run cannot be claimed.
 */
const isBehind = (it: Operation, claim: Operation): boolean => {
  if (isBefore(claim, it) || isBefore(it, claim)) return isBefore(claim, it);
  return it.kind === "end" || (it.kind === "ask" && claim.asked !== undefined && !claim.asked.includes(it.id));
};

/** True if the process may have owned the run again after another's claim, or if that other may have given it back by then. */
const mayWrite = (all: OneRun["all"], it: Operation, claim: Operation): boolean => {
  const over = it.to ?? Number.POSITIVE_INFINITY;
  const since = all.filter((other) => mayHaveHappened(other) && other.from < over && !isBefore(other, claim));
  const taking = of(since, "claim", "start").filter(({ actor }) => actor === it.actor);
  const givingBack = of(since, "park", "release", "end").filter(({ actor }) => actor !== it.actor);
  return taking.length > 0 || givingBack.length > 0;
};

/** Questions, parks and ends of an old owner that were accepted after another process's claim or start. */
const findOvertaken = ({ all, final }: OneRun): ReadonlyArray<string> => {
  const claims = of(all, "claim", "start").filter(isAcknowledged);
  return of(all, "ask", "park", "end").flatMap((it) => {
    if (!isTaken(final, it)) return [];
    const others = claims.filter((claim) => claim.actor !== it.actor && isBehind(it, claim));
    const last = others.find((claim) => !mayWrite(all, it, claim));
    return last === undefined ? [] : [`${describeOperation(it)} comes after ${describeOperation(last)}`];
  });
};

/** Notes of a process that did not own the run, judged by the order of its record. */
const strayNotes = ({ all, final }: OneRun): ReadonlyArray<string> => {
  const claims = of(all, "claim").filter((it) => isAcknowledged(it) && it.saw !== undefined);
  const starts = of(all, "start").filter(mayHaveHappened);
  const begun = starts.some(isAcknowledged) ? starts.filter(isAcknowledged) : starts;
  return final.notes.flatMap((id, at) => {
    const note = of(all, "note").find((it) => it.id === id);
    if (note === undefined) return [`note ${id} has no author`];
    const earlier = claims.filter((it) => (it.saw?.length ?? 0) <= at);
    const last = Math.max(-1, ...earlier.map((it) => it.saw?.length ?? 0));
    const latest = earlier.filter((it) => it.saw?.length === last);
    // Of claims that returned the same notes, only those that overlap or follow all others can be the last.
    const drivers = latest.length === 0 ? begun : latest.filter((it) => !latest.some((other) => isBefore(it, other)));
    if (drivers.some(({ actor }) => actor === note.actor)) return [];
    if (isLateFact(all, note, drivers)) return [];
    const silent = of(all, "claim").some(
      (it) => it.actor === note.actor && it.outcome === "unknown" && it.from < (note.to ?? Infinity),
    );
    return silent ? [] : [`${describeOperation(note)} comes after ${drivers.map(describeOperation).join(" and ")}`];
  });
};

const rules = {
  /** Acknowledged operations are on record. */
  missing: ({ all, final, isKnown }: OneRun & { readonly isKnown: boolean }) => [
    ...all
      .filter((it) => isAcknowledged(it) && it.kind !== "end" && isThere(final, it) === false)
      .map(describeOperation),
    ...of(all, "start")
      .filter((it) => isAcknowledged(it) && !isKnown)
      .map(describeOperation),
  ],

  /** Refused operations are not on record. */
  refused: ({ all, final }: OneRun) =>
    all.filter((it) => it.outcome === "refused" && isThere(final, it) === true).map(describeOperation),

  /** A run is started once. */
  started: ({ all }: OneRun) => {
    const starts = of(all, "start").filter(isAcknowledged);
    return starts.length > 1 ? [`started by ${starts.map(describeOperation).join(" and ")}`] : [];
  },

  /** A question has at most one answer: the acknowledged one, or one with an unknown outcome. */
  answers: ({ all, final }: OneRun) =>
    final.questions.flatMap(({ answer, revision }) => {
      const given = of(all, "answer").filter((it) => it.revision === revision);
      const taken = given.filter(isAcknowledged);
      if (taken.length > 1)
        return [`question ${revision} is answered by ${taken.map(describeOperation).join(" and ")}`];
      const [only] = taken;
      if (only !== undefined)
        return only.choice === answer ? [] : [`question ${revision}: ${describeOperation(only)} is not on record`];
      const possible = given.filter(mayHaveHappened).map(({ choice }) => choice);
      return answer === undefined || possible.includes(answer)
        ? []
        : [`question ${revision}: no process answered ${answer}`];
    }),

  /** A run has at most one end: the acknowledged one, or one with an unknown outcome. It cannot be claimed after its end. */
  end: ({ all, final }: OneRun) => {
    const ends = of(all, "end").filter(isAcknowledged);
    const [only] = ends;
    if (ends.length > 1) return [`ended by ${ends.map(describeOperation).join(" and ")}`];
    if (only === undefined) return [];
    if (final.end !== only.id) return [`${describeOperation(only)} is not its end`];
    const late = of(all, "claim").filter((it) => isAcknowledged(it) && isBefore(only, it));
    return late.map((it) => `${describeOperation(it)} after its end`);
  },

  /** A claim or a read returns everything acknowledged before it, in the order of the record. */
  seen: ({ all, final }: OneRun) =>
    all.flatMap((it) => {
      const { asked, saw } = it;
      if (saw === undefined || !isAcknowledged(it)) return [];
      const unheard = of(all, "ask").filter(
        (ask) => isAcknowledged(ask) && isBefore(ask, it) && asked !== undefined && !asked.includes(ask.id),
      );
      const due = of(all, "note").filter(
        (note) => isAcknowledged(note) && isBefore(note, it) && !saw.includes(note.id),
      );
      const isPrefix = saw.every((id, at) => final.notes[at] === id);
      return [
        ...[...due, ...unheard].map((missed) => `${describeOperation(it)} did not return ${describeOperation(missed)}`),
        ...(isPrefix || due.length > 0 || saw.some((id) => !final.notes.includes(id))
          ? []
          : [`${describeOperation(it)} returned another order`]),
        ...saw
          .filter((id) => !final.notes.includes(id))
          .map((id) => `${describeOperation(it)} returned note ${id}, which is gone`),
      ];
    }),

  /** Only the owner at the time writes: no earlier owner writes after a claim. */
  owner: ({ all, final }: OneRun) => [...findOvertaken({ all, final }), ...strayNotes({ all, final })],

  /** A process that has parked a run writes to it only after claiming it again. */
  parked: ({ all }: OneRun) =>
    of(all, "park")
      .filter(isAcknowledged)
      .flatMap((park) => {
        const again = of(all, "claim").filter(
          (it) => it.actor === park.actor && mayHaveHappened(it) && !isBefore(it, park),
        );
        return of(all, "note", "ask", "end")
          .filter((it) => it.actor === park.actor && isAcknowledged(it) && isBefore(park, it))
          .filter((it) => !again.some((claim) => claim.from < (it.to ?? Infinity)))
          .map((it) => `${describeOperation(it)} after ${describeOperation(park)}`);
      }),
} as const;

const names = Object.keys(rules) as ReadonlyArray<Rule>;
