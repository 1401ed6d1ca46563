/**
 * Holds the mutants of text that goes on where its run is another process's: what may not go on with it, and who hears of it.
 */
import type { Mutant } from "./Mutant.ts";

const runs = "test/runtime/run/FlowsOn.test.ts";
const zombies = "test/recorder/sql/SqlZombies.test.ts";
const copies = "test/adapters/relay/CopyStore.test.ts";
const sockets = "test/gateway/proxy/TakenOver.test.ts";

/** What would let more go on than text, or less. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a call goes on with the text of a lost run",
    breaks: "L6",
    within: "goesOn",
    find: "if (calls.length === 0 && handsNoCallOver(facts.snapshot())) return true;",
    replace: "if (calls.length >= 0) return true;",
    proofs: [{ test: runs, named: "hands no call over" }],
  },
  {
    name: "the beginning of a call goes on with the text of a lost run",
    breaks: "L6",
    within: "goesOn",
    find: "if (calls.length === 0 && handsNoCallOver(facts.snapshot())) return true;",
    replace: "if (calls.length === 0) return true;",
    proofs: [{ test: runs, named: "hands no call over" }],
  },
  {
    name: "a call goes on with the text of a lost run where its response is whole behind it",
    breaks: "L6",
    within: "goesOn",
    find: "run.flowsNoMore();",
    replace: "",
    proofs: [{ test: runs, named: "hands no call over" }],
  },
  {
    name: "a run whose id is another's goes on with its text",
    breaks: "L8",
    within: "lost",
    find: 'const flows = why === "taken_over" && Losses.isFlowing(this);',
    replace: "const flows = Losses.isFlowing(this);",
    proofs: [{ test: runs, named: "its id is another run's" }],
  },
  {
    name: "a lost run of which its caller has nothing begins to show itself",
    breaks: "a run that another process has is shown there",
    within: "isFlowing",
    find: 'facts.terminal_seen || (facts.shown !== "nothing" && handsNoCallOver(facts));',
    replace: "facts.terminal_seen || handsNoCallOver(facts);",
    proofs: [{ test: runs, named: "stops at once where its caller has nothing" }],
  },
  {
    name: "a lost run goes on for a reader that has gone",
    breaks: "a provider is paid for nobody",
    within: "isFlowing",
    find: "if (options.flowsOn !== true || stopper !== undefined || isAway) return false;",
    replace: "if (options.flowsOn !== true || stopper !== undefined) return false;",
    proofs: [{ test: runs, named: "stops where its reader goes away" }],
  },
  {
    name: "a lost run goes on when its reader goes",
    breaks: "a provider is paid for nobody",
    within: "reader",
    find: 'if (this.flows && word !== "back") this.stop("lifecycle");',
    replace: "",
    proofs: [{ test: runs, named: "stops where its reader goes away" }],
  },
  {
    name: "a lost run whose text breaks is decided as one's own",
    breaks: "L7: a fenced process puts no question and asks for nothing",
    within: "settled",
    find: 'if (run.flows) run.stop("lifecycle");',
    replace: "",
    proofs: [{ test: runs, named: "asks for nothing again" }],
  },
  {
    name: "a whole response whose end alone finds the loss is broken",
    breaks: "a gateway's response that flows goes on to its end",
    within: "isFlowing",
    find: "if (live === undefined) return ledger.ended;",
    replace: "if (live === undefined) return false;",
    proofs: [{ test: runs, named: "only its end finds the loss" }],
  },
  {
    name: "a process that has lost a run writes on its record what it likes, once that has ended",
    breaks: "a fenced process writes nothing of a run",
    within: "apply",
    find: 'if (run.isLost === true && !RunRecord.isLastWord(run.record, entries)) return refused("fenced", runId);',
    replace: "",
    proofs: [{ test: zombies, named: "may say nothing else" }],
  },
  {
    name: "a process that has lost a run writes on its record while another one has it",
    breaks: "a fenced process writes nothing of a run",
    within: "isLastWord",
    find: 'record?.state === "ended" &&',
    replace: "record !== undefined &&",
    proofs: [{ test: zombies, named: "may say nothing else" }],
  },
  {
    name: "the word of a lost run takes other entries with it",
    breaks: "a fenced process writes nothing of a run",
    within: "isLastWord",
    find: 'entries.every((entry) => entry._tag === "EvidenceNoted"',
    replace: 'entries.some((entry) => entry._tag === "EvidenceNoted"',
    proofs: [{ test: zombies, named: "may say nothing else" }],
  },
  {
    name: "the client of a response that went on to its end sees it break",
    breaks: "a gateway's response that flows goes on to its end",
    within: "breaks",
    find: "this.#broken = { error, last: none, endsCleanly: this.begun };",
    replace: "this.#broken = { error, last: none, endsCleanly: false };",
    proofs: [{ test: copies, named: "goes on to its clean end" }],
  },
  {
    name: "every response that is lost ends cleanly",
    breaks: "L5",
    within: "isWhole",
    find: 'reason === "taken_over" && rule === "already_complete"',
    replace: 'reason === "taken_over"',
    proofs: [{ test: copies, named: "breaks where another process may show it" }],
  },
  {
    name: "a gateway's text breaks with the loss of its run",
    breaks: "a gateway's response that flows goes on to its end",
    within: "relayed",
    find: "flowsOn: true,",
    replace: "flowsOn: false,",
    proofs: [{ test: sockets, named: "goes on to its clean end" }],
  },
];
