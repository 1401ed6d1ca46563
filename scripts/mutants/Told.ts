/**
 * Lists the mutants of what is said of a seam: on record, in an export, to a person, and at the end of a response that was joined.
 */
import type { Mutant } from "./Mutant.ts";

/** Mutants whose proofs stand in the tests of the record, the story, the page and the laws. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a break of the attempt that completed the run counts as recovered",
    breaks: "no run with one attempt was recovered (issue 36)",
    within: "statusAt",
    find: 'if (attempt < end.attempts) return "recovered";',
    replace: 'return "recovered";',
    proofs: [{ test: "test/story/Headlines.test.ts" }],
  },
  {
    name: "a decision that stops says nothing of a tool whose outcome is unknown",
    breaks: "an explanation never contradicts its facts (issue 36)",
    within: "explain",
    find: 'entry.action !== "auto_retry_once" && hasUnknownOutcome(known)',
    replace: 'entry.action === "auto_retry_once" && hasUnknownOutcome(known)',
    proofs: [{ test: "test/policy/ExplanationFacts.test.ts", named: "a cancel behind the end" }],
  },
  {
    name: "a seam that is told again moves the one on record",
    breaks: "what was proven stays (issue 13)",
    within: "joinedAt",
    find: "it.attempt === attempt && it.seam?.proven !== true ?",
    replace: "it.attempt === attempt ?",
    proofs: [{ test: "test/recorder/RunRecorderMemory.test.ts", named: "the first word stays" }],
  },
  {
    name: "a seam that was only asked for is told as a joined text",
    breaks: "no seam is told that was not proven (issue 13)",
    within: "joinedTexts",
    find: "if (seam?.proven === true && text !== undefined",
    replace: "if (seam !== undefined && text !== undefined",
    proofs: [{ test: "test/story/SeamWords.test.ts" }],
  },
  {
    name: "a word of a fault that came from outside is looked up among the words of every object",
    breaks: "no text from outside in a message (issue 13)",
    within: "fault",
    find: "code !== undefined && Object.hasOwn(known, code) ?",
    replace: "code !== undefined && code in known ?",
    proofs: [{ test: "test/policy/Explanation.test.ts", named: "why new text was not joined" }],
  },
  {
    name: "an attempt that was not joined has no end",
    breaks: "a person sees what was wrong with it (issue 13)",
    within: "attemptStory",
    find: "const notJoined = first === undefined && seam?.fault !== undefined;",
    replace: "const notJoined = false;",
    proofs: [{ test: "test/story/SeamWords.test.ts", named: "what was wrong with it" }],
  },
  {
    name: "a finish that was kept back for the clean end does not count with it",
    breaks: "L5 (issue 13)",
    within: "#endedBy",
    find: "this.#terminalAtEnd = last.terminal_at_end === true;",
    replace: "this.#terminalAtEnd = false;",
    proofs: [{ test: "test/laws/SplicedEnd.test.ts", named: "google-gemini: a joined text is complete" }],
  },
];
