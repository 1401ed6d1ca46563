/**
 * Holds the mutants of the adapters, and of what runs without Node.
 */
import type { Mutant } from "./Mutant.ts";

/** The mutants of `src/adapters`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "the adapter of Effect AI brings the client of Node along",
    breaks: "./effect-ai bundles for browsers and edge",
    within: "CurrentAttempt",
    find: `"effect-stream-recovery/effect-ai/CurrentAttempt",`,
    replace: `(void import("../client/index.ts"), "effect-stream-recovery/effect-ai/CurrentAttempt"),`,
    proofs: [{ test: "test/portable/Portable.test.ts", named: "./effect-ai" }],
  },
  {
    name: "an answer that does not fit its schema is asked for again as a damaged stream",
    breaks: "no retry that cannot succeed (break 36)",
    within: "aiReasons",
    find: `["StructuredOutputError", caller],`,
    replace: `["StructuredOutputError", damaged],`,
    proofs: [{ test: "test/adapters/effect-ai/Misfit.test.ts", named: "costs one request: another type" }],
  },
  {
    name: "a part that misfits the caller's schemas is asked for again as a damaged stream",
    breaks: "no retry that cannot succeed (break 36)",
    within: "recognise",
    find: "isMisfit(error, reason) ? caller : aiReason(reason)",
    replace: "aiReason(reason)",
    proofs: [{ test: "test/adapters/effect-ai/Misfit.test.ts", named: "another shape than its type" }],
  },
  {
    name: "a call of an unknown tool is asked for again",
    breaks: "no retry that cannot succeed (break 36)",
    within: "PartFold",
    find: `{ kind: "invalid_tool_input", in_band: true, retryable: false }`,
    replace: `{ kind: "invalid_tool_input", in_band: true }`,
    proofs: [{ test: "test/adapters/effect-ai/Misfit.test.ts", named: "an undeclared tool" }],
  },
  {
    name: "the cause of a run of Effect AI is a part instead of the provider's error",
    breaks: "L12",
    within: "withOriginal",
    find: "const cause = errorIn(interrupted.cause);",
    replace: "const cause = interrupted.cause;",
    proofs: [{ test: "test/adapters/effect-ai/Misfit.test.ts", named: "EffectAi.run" }],
  },
  {
    name: "a request of Effect AI does not hear the user's Stop",
    breaks: "L10",
    within: "Call",
    find: "return this.#signal === undefined ? {} : { signal: this.#signal };",
    replace: "return {};",
    proofs: [
      { test: "test/adapters/effect-ai/StopSignal.test.ts", named: "sends nothing once it was pressed: streamText" },
    ],
  },
  {
    name: "the user's Stop leaves the tool of a whole answer running",
    breaks: "L10",
    within: "untilStopped",
    find: "signal.aborted ? stop : Effect.raceFirst(work, stop)",
    replace: "signal.aborted ? stop : work",
    proofs: [{ test: "test/adapters/effect-ai/StopSignal.test.ts", named: "runs behind a whole answer: streamText" }],
  },
  {
    name: "a request of fetch does not hear its own signal",
    breaks: "L10",
    within: "runOptions",
    find: "if (options.signal !== undefined) made.signal = options.signal;",
    replace: "",
    proofs: [{ test: "test/adapters/fetch/Abort.test.ts", named: "is on record as its user's cancel" }],
  },
  {
    name: "a repeat of fetch has the credentials of the first request",
    breaks: "a repeat carries fresh credentials",
    within: "fetchTransport",
    find: "renew: isRepeat ? renew : undefined",
    replace: "renew: undefined",
    proofs: [{ test: "test/adapters/fetch/Credentials.test.ts", named: "gives every repeat its credentials" }],
  },
  {
    name: "a fetch that spreads its headers loses them",
    breaks: "the host's fetch gets the headers in the form of its client",
    within: "recoveringFetch",
    find: "headers: asked.formed(new Headers(sent?.headers))",
    replace: "headers: new Headers(sent?.headers)",
    proofs: [{ test: "test/adapters/fetch/Credentials.test.ts", named: "gets a record with its names" }],
  },
  {
    name: "a caller that leaves early is told of its run in place of its own reason",
    breaks: "an aborted fetch rejects with its signal's reason",
    within: "recoveringFetch",
    find: "signal?.throwIfAborted();",
    replace: "",
    proofs: [{ test: "test/adapters/fetch/Abort.test.ts", named: "before the request is on its way" }],
  },
  {
    name: "a run that no process can resume is offered for ever",
    breaks: "what is on record can be ended",
    within: "isResumable",
    find: "({ transcript }: RunRecord): boolean => transcript !== undefined;",
    replace: "(_: RunRecord): boolean => true;",
    proofs: [{ test: "test/runtime/recovery/Unresumable.test.ts", named: "is not offered" }],
  },
  {
    name: "a run that no process can resume is kept where its caller left it",
    breaks: "what is on record can be ended",
    within: "act",
    find: `runAfter(decision.rule) === "left" && run.shared.recorder.durable && run.canBeTakenUp`,
    replace: `runAfter(decision.rule) === "left" && run.shared.recorder.durable`,
    proofs: [{ test: "test/runtime/recovery/Unresumable.test.ts", named: "of an adapter on a durable recorder" }],
  },
];
