/**
 * Holds the mutants of what the gateway's clients are told, and of how their repeats are known.
 */
import type { Mutant } from "./Mutant.ts";

/** The mutants of `src/gateway/clients`, of the events of our own, and of the memory of failed requests. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a repeat whose keys are in another order is another request",
    breaks: "one budget for a request (break 39)",
    within: "sorted",
    find: "members.toSorted((a, b) => (a.key < b.key ? -1 : 1));",
    replace: "[...members];",
    proofs: [
      { test: "test/adapters/relay/CanonicalBody.test.ts", named: "every order of keys" },
      { test: "test/adapters/relay/RelayRepeats.test.ts", named: "however its JSON is spelt" },
    ],
  },
  {
    name: "of two members of one name the order is lost",
    breaks: "never two requests on one digest",
    within: "sorted",
    find: "if (inOrder.some(({ key }, index) => inOrder[index + 1]?.key === key)) throw unclear;",
    replace: "",
    proofs: [{ test: "test/adapters/relay/CanonicalBody.test.ts", named: "read in two ways" }],
  },
  {
    name: "an escaped key is another key than the one it spells",
    breaks: "never two requests on one digest",
    within: "#member",
    find: "if (bytes.length > wordBytesMax || bytes.includes(BACKSLASH)) throw unclear;",
    replace: "if (bytes.length > wordBytesMax) throw unclear;",
    proofs: [{ test: "test/adapters/relay/CanonicalBody.test.ts", named: "read in two ways" }],
  },
  {
    name: "a body is read to its end, however many steps it takes",
    breaks: "L11, bounded work",
    within: "#count",
    find: "if (this.#steps > stepsMax) throw unclear;",
    replace: "",
    proofs: [{ test: "test/adapters/relay/CanonicalBody.test.ts", named: "within its limits" }],
  },
  {
    name: "a new run leaves what the client was told before",
    breaks: "a memory is never older than the newest run",
    within: "take",
    find: "      this.#told.delete(key);\n      const found",
    replace: "      const found",
    proofs: [{ test: "test/adapters/relay/RelayRepeats.test.ts", named: "when a new run begins" }],
  },
  {
    name: "a client is told of another tenant's run",
    breaks: "what is one tenant's is told to no other",
    within: "digest",
    find: "request.tenant ?? null, request.method",
    replace: "request.method",
    proofs: [{ test: "test/adapters/relay/RelayRepeats.test.ts", named: "no tenant repeats" }],
  },
  {
    name: "a request that says nothing is told from memory for a minute",
    breaks: "a user who asks again is asked for again",
    within: "recall",
    find: "return says || ageMs <= unmarkedRepeatMs ?",
    replace: "return says || ageMs <= repeatMs ?",
    proofs: [{ test: "test/adapters/relay/RelayRepeats.test.ts", named: "at its heels" }],
  },
  {
    name: "a provider's refusal that was not retried is given up",
    breaks: "L12, the provider's own error",
    within: "isGivenUp",
    find: 'return attempts > 1 || (repeated && rule === "budget_exhausted");',
    replace: "return attempts > 0 || repeated;",
    proofs: [{ test: "test/gateway/clients/GivenUp.test.ts", named: "was not retried" }],
  },
  {
    name: "a code by which clients ask again stands in the message",
    breaks: "a given-up run costs no further request (break 40)",
    within: "messageOf",
    find: "failure.kind || saysPassing(code) ?",
    replace: "failure.kind ?",
    proofs: [{ test: "test/gateway/clients/GivenUp.test.ts", named: "by which a client asks again" }],
  },
  {
    name: "a request's own wait does not shorten the patience for its head",
    breaks: "a gateway never makes it worse",
    within: "patienceOf",
    find: "Math.min(configured ?? shipped.patienceMs, waits * row.patienceShare)",
    replace: "Math.min(configured ?? shipped.patienceMs, Math.max(45_000, waits * row.patienceShare))",
    proofs: [{ test: "test/gateway/clients/Manner.test.ts", named: "no longer than its client waits" }],
  },
];
