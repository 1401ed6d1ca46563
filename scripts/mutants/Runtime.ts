/**
 * Holds the mutants of the runtime: hand-over, tools, questions, revival and interrupts.
 */
import type { Mutant } from "./Mutant.ts";

/** What went wrong in the runtime once. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "the SDKs' own word for their caller's abort is taken for the provider's cancel, and replayed",
    breaks: "L10, break 15",
    within: "aborted",
    find: 'const aborted: Shape = { strength: "cancelled", by: "caller" };',
    replace: 'const aborted: Shape = { strength: "cancelled", by: "provider" };',
    proofs: [{ test: "test/runtime/WhoseCancel.test.ts", named: "is the caller's, and is not replayed" }],
  },
  {
    name: "a run does not hear its caller's own signal",
    breaks: "L10, break 15",
    within: "heed",
    find: 'this.options.signal?.addEventListener("abort", this.#heard, { once: true });\n    this.#heard();',
    replace: "",
    proofs: [{ test: "test/runtime/WhoseCancel.test.ts", named: "stops the run in the user's name" }],
  },
  {
    name: "the error that an abort makes is decided before the abort is looked at",
    breaks: "L10, break 15",
    within: "ended",
    find: 'if (outcome._tag === "failed" && this.stopper === undefined) this.#heard();',
    replace: "",
    proofs: [{ test: "test/runtime/WhoseCancel.test.ts", named: "is known when its error is seen before it" }],
  },
  {
    name: "a signal keeps the listeners of runs that have ended",
    breaks: "L11, break 15",
    within: "unheed",
    find: 'this.options.signal?.removeEventListener("abort", this.#heard);',
    replace: "",
    proofs: [{ test: "test/runtime/WhoseCancel.test.ts", named: "keeps no listener of those that have ended" }],
  },
  {
    name: "a signed interrupt loses its signature below a timeout, a race or a toolkit",
    breaks: "L10, break 16",
    within: "makeProcessor",
    find: "yield* Effect.withFiber((fiber) => Effect.sync(() => passSignaturesOn(fiber)));",
    replace: "",
    proofs: [{ test: "test/runtime/WhoseCancel.test.ts", named: "is the signer's below" }],
  },
  {
    name: "a second pull does not wait for the write that the first one has begun",
    breaks: "L8, break 04",
    within: "#slot",
    find: "if (transit.record !== undefined) return Deferred.await(transit.record);",
    replace: "",
    proofs: [{ test: "test/runtime/PullTimeout.test.ts", named: "once its write has ended" }],
  },
  {
    name: "a run is decided, and ended, before the write that a pull has left behind",
    breaks: "L8, break 04",
    within: "settled",
    find: "yield* attempt.flow.written;",
    replace: "",
    proofs: [{ test: "test/runtime/PullTimeout.test.ts", named: "ends behind the write" }],
  },
  {
    name: "what was frozen is handed over while its write is under way",
    breaks: "L8, break 04",
    within: "#recorded",
    find: "Effect.forEach(writes, (write) => Deferred.await(write)),",
    replace: "Effect.succeed([true]),",
    proofs: [
      { test: "test/runtime/PullTimeout.test.ts", named: "hands over behind its write what an error came with" },
    ],
  },
];
