/**
 * Holds the mutants of runs whose readers come and go: what is held, kept, shown and ended while nobody reads.
 */
import type { Mutant } from "./Mutant.ts";

const readers = "test/runtime/attach/Attach.test.ts";
const anywhere = "test/runtime/attach/LeaveAnywhere.test.ts";
const bounds = "test/runtime/attach/Bounds.test.ts";
const away = "test/adapters/relay/Away.test.ts";

/** What must not go wrong while nobody reads. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "what comes while nobody reads is handed over",
    breaks: "L4",
    within: "#given",
    find: "if (waiting === undefined) return batch;",
    replace: "if (waiting === undefined || true) return batch;",
    proofs: [{ test: away, named: "gets nothing, and then exactly" }],
  },
  {
    name: "an attempt that waits for its reader goes on waiting once the reader is away",
    breaks: "L7: a parked attempt reads on, its clocks too",
    within: "reader",
    find: 'if (word === "left") this.#unpark?.();',
    replace: "",
    proofs: [{ test: readers, named: "a slow reader's attempt reads on" }],
  },
  {
    name: "an attempt that starts does not hear that nobody reads any more, or again",
    breaks: "L4",
    within: "start",
    find: 'if (this.taps?.presence !== undefined) attempt.reader(this.isAway ? "left" : "back");',
    replace: 'if (this.taps?.presence !== undefined) attempt.reader("left");',
    proofs: [{ test: readers }, { test: anywhere }],
  },
  {
    name: "a run that nobody can read any more is asked for again when it breaks",
    breaks: "an evicted run is never replayed for nothing",
    within: "settled",
    find: 'if (run.taps?.presence?.isEvicted === true && run.stopper === undefined) run.stop("user");',
    replace: "",
    proofs: [{ test: bounds, named: "is asked for again by nobody" }],
  },
  {
    name: "what was thrown away is kept for the end all the same",
    breaks: "L11",
    within: "pass",
    find: "if (this.#host.taps?.presence?.isEvicted !== true) return this.#reveal.pass(batch);",
    replace: "return this.#reveal.pass(batch);",
    proofs: [
      { test: bounds, named: "goes on to its own end without a reader" },
      { test: away, named: "is evicted" },
    ],
  },
  {
    name: "what is held and what was kept have a limit each",
    breaks: "8 MiB a run for both together",
    within: "#given",
    find: "!this.#hasRoom(size, this.#presence?.keptBytes)",
    replace: "!this.#hasRoom(size)",
    proofs: [{ test: bounds, named: "has one limit for what has left" }],
  },
  {
    name: "a client that left Effect's HTTP server has cancelled its lingering run",
    breaks: "L10: with linger a departure is unsigned",
    within: "departs",
    find: 'return !signatures.has("user") && !signatures.has("lifecycle");',
    replace: 'return !signatures.has("user") && !signatures.has("lifecycle") && !signatures.has("client_gone");',
    proofs: [{ test: readers, named: "left Effect's HTTP server departs" }],
  },
  {
    name: "a run whose reader does not come back goes on without end",
    breaks: "L10, L11",
    within: "#startTimer",
    find: 'if (!run.ledger.ended) run.stop("user");\n      this.over();',
    replace: "this.over();",
    proofs: [{ test: readers, named: "stays away for as long as it may" }],
  },
  {
    name: "a reader that was replaced reads on",
    breaks: "one reader at a time",
    within: "take",
    find: "if (reader.isReplaced) return Effect.fail(this.#replaced);",
    replace: "",
    proofs: [{ test: readers, named: "takes the place of the one before" }],
  },
  {
    name: "a reader gets what it has once more",
    breaks: "exactly what comes behind an ordinal",
    within: "positionAfter",
    find: "this.#first + at + 1;",
    replace: "this.#first + at;",
    proofs: [{ test: anywhere, named: "comes back at once" }],
  },
  {
    name: "a closed processor leaves its lingering runs to be attached to",
    breaks: "close ends lingering runs at once",
    within: "close",
    find: "      register.lingering.close();\n",
    replace: "",
    proofs: [{ test: readers, named: "lets nobody attach" }],
  },
  {
    name: "keep-alives go to a client that is away",
    breaks: "a byte that nobody reads is written for nobody",
    within: "pulseOf",
    find: "presence.isAway || !reader.holding",
    replace: "!reader.holding",
    proofs: [{ test: away, named: "is kept waiting by nothing" }],
  },
];
