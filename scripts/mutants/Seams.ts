/**
 * Breaks what a run does with text that was shown: each mutant lets something pass that no seam has proven, or asks where it need not.
 */
import type { Mutant } from "./Mutant.ts";

const seams = "test/runtime/recovery/Seams.test.ts";
const revived = "test/runtime/recovery/RevivedSeams.test.ts";

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "what comes in front of a seam is handed over",
    breaks: "nothing twice, DESIGN 16",
    within: "#passed",
    find: "if (this.#joined && passed.parts.length > 0) fill(out, passed);",
    replace:
      "if (passed.parts.length > 0) fill(out, passed);\n    else if (!this.#joined && observation !== undefined) fill(out, { parts: [], observations: [] });",
    proofs: [{ test: "test/runtime/attempt/SeamStage.test.ts", named: "in front of the seam" }],
  },
  {
    name: "the marker of what cannot be proven is that of the response",
    breaks: "L5, a marker is a marker",
    within: "#passed",
    find: "this.#owner.facts.decoded({ ...observation, terminal: false });",
    replace: "this.#owner.facts.decoded(observation);",
    proofs: [{ test: "test/runtime/attempt/SeamStage.test.ts", named: "is no marker of the response" }],
  },
  {
    name: "a run has as many seams as it likes",
    breaks: "at most two seams, DESIGN 16",
    within: "plan",
    find: 'if (this.#count >= this.#max) return "seams_spent";',
    replace: "",
    proofs: [{ test: seams, named: "asks the third time" }],
  },
  {
    name: "a continuation that breaks before its seam is repeated as often as the budget allows",
    breaks: "a persistent break costs at most four requests",
    within: "launch",
    find: 'else if (setup.seam !== undefined && setup.mode === "replay") run.seams?.repeats();',
    replace: "",
    proofs: [{ test: seams, named: "is told after two continuations that broke before their seam" }],
  },
  {
    name: "a continuation that was refused unprocessed counts as one that broke",
    breaks: "no needless question",
    within: "seamBroken",
    find: 'if (delivery === "not_sent" || isUnprocessed) seams?.gaveBack();',
    replace: 'if (delivery === "not_sent") seams?.gaveBack();',
    proofs: [{ test: seams, named: "counts no continuation that was refused" }],
  },
  {
    name: "a seam that could not be proven is tried again",
    breaks: "M3",
    within: "giveUp",
    find: 'this.#closed ??= "unproven";',
    replace: "",
    proofs: [{ test: seams, named: "in the caller's own way" }],
  },
  {
    name: "a repeat of a continuation forgets its seam",
    breaks: "nothing twice, L3",
    within: "prepared",
    find: 'if (mode === "replay" && seam !== undefined) {',
    replace: 'if (mode === "replay" && seam !== undefined && calls.length > 1_000) {',
    proofs: [{ test: seams, named: "breaks before its seam" }],
  },
  {
    name: "text goes on by itself where no seam can be proven",
    breaks: "nothing goes on unproven, DESIGN 16",
    within: "continueTextOf",
    find: 'options.continueText === "auto" && !facts.snapshot().terminal_seen && typeof seams?.plan() === "object"',
    replace: 'options.continueText === "auto" && !facts.snapshot().terminal_seen && seams !== undefined',
    proofs: [{ test: seams, named: "the seam refuses it" }],
  },
  {
    name: "text behind the provider's own marker is gone on with",
    breaks: "L5",
    within: "continueTextOf",
    find: "!facts.snapshot().terminal_seen &&",
    replace: "",
    proofs: [{ test: seams, named: "behind the provider's own marker" }],
  },
  {
    name: "a refused prefill costs a retry",
    breaks: "one clean attempt, DESIGN 16",
    within: "seamBroken",
    find: "run.spending.gaveBack();",
    replace: "",
    proofs: [{ test: seams, named: "falls back to the anchor" }],
  },
  {
    name: "every refusal of a prefill is one of its form",
    breaks: "one clean attempt, DESIGN 16",
    within: "seamBroken",
    find: "refusesForm.has(failure.status) && ",
    replace: "",
    proofs: [{ test: seams, named: "no word about prefills" }],
  },
  {
    name: "a caller that cannot discard is offered to pay for the same again",
    breaks: "no retry that cannot succeed",
    within: "seamBroken",
    find: "return { ...again, attempt, failure, cause: cause ?? before.cause };",
    replace:
      "return { ...again, attempt, failure, cause: cause ?? before.cause, facts: () => attempt.facts.snapshot() };",
    proofs: [{ test: seams, named: "without end" }],
  },
  {
    name: "the caller does not hear why the response broke",
    breaks: "L12",
    within: "seamBroken",
    find: "cause: cause ?? before.cause",
    replace: "cause",
    proofs: [{ test: seams, named: "hears why the response broke" }],
  },
  {
    name: "a process that takes a run up goes on with a text that it does not know",
    breaks: "nothing twice over processes",
    within: "lastResponse",
    find: 'request !== "resume" && seam === undefined',
    replace: 'request !== "resume"',
    proofs: [{ test: revived, named: "is asked about" }],
  },
  {
    name: "text behind a held call is shown, and the continuation says it again",
    breaks: "what cannot be taken back is gone on with only where the seam is proven, DESIGN 16",
    within: "continued",
    find: "if (!isOpen && !run.discardable) for (const link of chain.links) link.flow.dropOpen();",
    replace: "",
    proofs: [{ test: "test/runtime/recovery/SeamsHeldCall.test.ts", named: "between two calls" }],
  },
  {
    name: "text behind a call that has run is shown, and the continuation says it again",
    breaks: "what cannot be taken back is gone on with only where the seam is proven, DESIGN 16",
    within: "dropOpen",
    find: "this.#frozen = firstCall < 0 ? noParts : firstOf(this.#frozen, firstCall);",
    replace: "if (firstCall >= 0) this.#frozen = firstOf(this.#frozen, firstCall);",
    proofs: [{ test: "test/runtime/recovery/SeamsHeldCall.test.ts", named: "has run" }],
  },
];
