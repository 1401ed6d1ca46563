/**
 * Holds the mutants of runs that move from store to store.
 */
import type { Mutant } from "./Mutant.ts";

const transfer = "test/recorder/transfer/RunTransfer.test.ts";

/** The mutants of `src/recorder/transfer` and of what the SQL store gives and takes. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a run that a living process drives is moved without being asked for",
    breaks: "one owner of a run",
    within: "fileOf",
    find: "const taken = options.takesDriven ? runs : runs.filter((run) => !isDriven(run));",
    replace: "const taken = options.takesDriven ? runs : runs.filter((run) => !isDriven(run) || run.isDriven);",
    proofs: [{ test: transfer, named: "are left out and counted" }],
  },
  {
    name: "a lease that is over counts as held for ever",
    breaks: "a run is lost",
    within: "page",
    find: "WHERE l.id = r.owner AND l.fenced = 0",
    replace: "WHERE l.id = r.owner AND l.fenced >= 0",
    proofs: [{ test: transfer, named: "are left out and counted" }],
  },
  {
    name: "a file that was cut off behind a line is taken for a whole one",
    breaks: "a run is lost",
    within: "end",
    find: "if (this.#isOver) return Effect.succeed(this.#read);",
    replace: "if (this.#isOver || this.#head !== undefined) return Effect.succeed(this.#read);",
    proofs: [{ test: transfer, named: "without its last line" }],
  },
  {
    name: "a file that has lost a line is taken for a whole one",
    breaks: "a run is lost",
    within: "line",
    find: "if (runs !== this.#runs) {",
    replace: "if (runs < this.#runs) {",
    proofs: [{ test: transfer, named: "that has lost a line on its way" }],
  },
  {
    name: "what a newer version has added to a record is lost without a word",
    breaks: "a move keeps what it moves",
    within: "strict",
    find: 'const strict = { onExcessProperty: "error" } as const;',
    replace: 'const strict = { onExcessProperty: "ignore" } as const;',
    proofs: [{ test: transfer, named: "with a field that a newer version has added" }],
  },
  {
    name: "a record that differs counts as the one that is there",
    breaks: "a move keeps what it moves",
    within: "sorted",
    find: '"message" in there || !isSameRecord(there, record) ? "differs" : "same"',
    replace: '"message" in there ? "differs" : "same"',
    proofs: [{ test: transfer, named: "keeps a record of its own that differs" }],
  },
  {
    name: "the key of the digests stays behind",
    breaks: "a moved run can be taken up",
    within: "put",
    find: "if (isNewKey && added.length > 0)",
    replace: "if (isNewKey && added.length < 0)",
    proofs: [{ test: transfer, named: "the key moves along" }],
  },
  {
    name: "a process goes on with the key that its store had before",
    breaks: "a moved run can be taken up",
    within: "make",
    find: "Effect.as(isNewKey ? database.ready : Effect.void, taken)",
    replace: "Effect.as(isNewKey ? Effect.void : Effect.void, taken)",
    proofs: [{ test: transfer, named: "the key moves along" }],
  },
  {
    name: "an open run comes into a store under whose key its transcript can never be compared",
    breaks: "a moved run can be taken up",
    within: "sorted",
    find: 'record.state !== "ended" && record.transcript !== undefined',
    replace: 'record.state === "live" && record.transcript !== undefined',
    proofs: [{ test: transfer, named: "with a key of its own" }],
  },
  {
    name: "a store with runs takes another key for its digests",
    breaks: "a moved run can be taken up",
    within: "sorted",
    find: "const isNewKey = isOtherKey && (yield*",
    replace: "const isNewKey = isOtherKey || (yield*",
    proofs: [{ test: transfer, named: "with a key of its own" }],
  },
];
