/**
 * Holds the mutants of the wire: decoders, the classifier's tables, continuations, and what the relay makes of them.
 */
import type { Mutant } from "./Mutant.ts";

/** The mutants of `src/provider` and of the relay. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a request that is larger than its limit is taken for a rate limit",
    breaks: "no retry that cannot succeed (break 37)",
    within: "refinement",
    find: 'if (status === 429) return reason === "quota" ? code : permanent(body, status);',
    replace: 'if (status === 429) return reason === "quota" ? code : undefined;',
    proofs: [{ test: "test/provider/FailureClassifierProviders.test.ts", named: "larger than its limit" }],
  },
  {
    name: "a server that can never serve the request is asked again, because it says 500",
    breaks: "no retry that cannot succeed",
    within: "refinement",
    find: 'const told = body.form === "text" ? undefined : permanent(body, status);',
    replace: "const told = undefined;",
    proofs: [{ test: "test/provider/FailureClassifierProviders.test.ts", named: "llama.cpp" }],
  },
  {
    name: "a broken body in the words of a runtime is a bug of the caller's",
    breaks: "what breaks is recovered on every runtime",
    within: "read",
    find: 'className === "TypeError" ? fetchRows : allRows;',
    replace: 'className === "TypeError" ? fetchRows.slice(0, 4) : allRows;',
    proofs: [{ test: "test/provider/FailureClassifierRuntimes.test.ts" }],
  },
  {
    name: "every piece of a call's arguments is parsed with all before it",
    breaks: "L11, bounded work (break 27)",
    within: "grown",
    find: 'if (scan.phase === before.scan.phase && scan.phase !== "word") return { input, scan, whole: before.whole };',
    replace: "wholeOf(input);",
    proofs: [{ test: "test/provider/ArgumentsCost.test.ts", named: "openai-chat" }],
  },
  {
    name: "pieces of Gemini's arguments are held without a limit",
    breaks: "L11, bounded work",
    within: "gather",
    find: "if (piece === undefined || gathered.length > piecesMax) continue;",
    replace: "if (piece === undefined) continue;",
    proofs: [{ test: "test/provider/Gemini.test.ts", named: "past their limit" }],
  },
  {
    name: "a call that a limit cut is malformed where the gateway calls its finish tool_calls",
    breaks: "no retry that cannot succeed (break 33)",
    within: "ending",
    find: 'if ((known ?? "whole") === "whole" && endings.get(native.toLowerCase()) === "cut") return "cut";',
    replace: "",
    proofs: [{ test: "test/provider/OpenAiChat.test.ts", named: "a limit that the server behind a gateway names" }],
  },
  {
    name: "a whole audio answer is truncated, because no choice has a finish",
    breaks: "L5, a marker is a marker (break 34)",
    within: "onDone",
    find: "|| open.every((choice) => choice.audioOver);",
    replace: ";",
    proofs: [{ test: "test/provider/OpenAiChat.test.ts", named: "audio-done.sse" }],
  },
  {
    name: "a whole answer is truncated, because one of its choices has no finish of its own",
    breaks: "L5, a marker is a marker (break 35)",
    within: "onDone",
    find: "const finished = open.length < state.choices.length ||",
    replace: "const finished =",
    proofs: [{ test: "test/provider/OpenAiChat.test.ts", named: "one-finish-of-two.sse" }],
  },
  {
    name: "what serve is told of its upstreams' healthy streams reaches no decoder",
    breaks: "a declared tolerance is kept",
    within: "make",
    find: "...(options.tolerance === undefined ? {} : { tolerance: options.tolerance }),\n      ...(options.budget",
    replace: "...(options.budget",
    proofs: [{ test: "test/gateway/Serve.test.ts", named: "[DONE]" }],
  },
];
