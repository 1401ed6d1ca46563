/**
 * Holds the mutants of what the relay knows of its providers: responses that are read on, and responses with nothing in them.
 */
import type { Mutant } from "./Mutant.ts";

const takenUp = "test/gateway/proxy/TakenUp.test.ts";
const empty = "test/gateway/proxy/Empty.test.ts";

/** The mutants of provider-native knowledge in the relay. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a broken background response is not read on",
    breaks: "one post, DESIGN 4 of round 2 (break 31)",
    within: "planOf",
    find: "address.resumes?.(body, streaming) === true ? { resumes: true } : {}",
    replace: "address.resumes === undefined || streaming === true ? {} : { resumes: true }",
    proofs: [{ test: takenUp, named: "cut again and again" }],
  },
  {
    name: "a stored response is asked for by GET, which OpenAI refuses",
    breaks: "no needless request (break 31)",
    within: "resumes",
    find: "streaming && body.background === true;",
    replace: "streaming && (body.background === true || body.store === true);",
    proofs: [{ test: "test/adapters/relay/RelayPlan.test.ts", named: "background" }],
  },
  {
    name: "the request that reads on has the post's idempotency key and content type",
    breaks: "one post (break 31)",
    within: "bodiless",
    find: "headers.filter(([name]) => !ofBody.has(name.toLowerCase()));",
    replace: 'headers.filter(([name]) => ofBody.has(name.toLowerCase()) || name !== "");',
    proofs: [{ test: takenUp, named: "same credential" }],
  },
  {
    name: "events that the provider repeats reach the client twice",
    breaks: "no text twice (break 31)",
    within: "#verified",
    find: 'if (verdict.type === "repeated") return undefined;',
    replace: 'if (verdict.type === "repeated") return part;',
    proofs: [{ test: takenUp, named: "repeats" }],
  },
  {
    name: "a document where the stream should go on is asked for again and again",
    breaks: "a refused cursor is decided again without it",
    within: "#openDocument",
    find: "if (this.#resumes && isJson(head)) throw relayError(notStreamed);",
    replace: "if (!this.#resumes && head.status === 0) throw relayError(notStreamed);",
    proofs: [{ test: takenUp, named: "a document" }],
  },
  {
    name: "a BOM before the events that follow stands in the middle of the client's stream",
    breaks: "what leaves is what a client reads",
    within: "#withoutBom",
    find: "bom.every((byte, at) => bytes[at] === byte) ? bytes.subarray(bom.length) : bytes;",
    replace: "bom.some((byte, at) => bytes[at] !== byte) || this.#goesOn ? bytes.subarray(bom.length) : bytes;",
    proofs: [{ test: takenUp, named: "same credential" }],
  },
  {
    name: "the marker of a response with nothing in it leaves before its end is known",
    breaks: "an empty response is no success (break 38)",
    within: "#passOne",
    find: "observation.terminal && !this.#mayBeEmpty(observation);",
    replace: "observation.terminal && (!this.#mayBeEmpty(observation) || this.#holdsEnd);",
    proofs: [{ test: empty, named: "with nothing in it and at most" }],
  },
  {
    name: "hidden work is paid for twice: tokens say nothing of a response without content",
    breaks: "no needless request (break 38)",
    within: "isEmpty",
    find: "(counters.output_tokens ?? 0) <= outputTokensMax)",
    replace: "(counters.output_tokens ?? 0) >= 0)",
    proofs: [{ test: empty, named: "more output tokens" }],
  },
  {
    name: "a refusal without words is asked for again",
    breaks: "no needless request (break 38)",
    within: "isEmpty",
    find: '!otherEnd.test(finish ?? "");',
    replace: '!otherEnd.test("");',
    proofs: [{ test: empty, named: "a filter or a refusal" }],
  },
  {
    name: "a response that was read on to its end counts as empty, because its text came before the cut",
    breaks: "no needless request (break 38)",
    within: "saysNothing",
    find: "isEmpty(response.chain?.facts() ?? attempt.facts.snapshot(), attempt.finish);",
    replace:
      "isEmpty(response.chain === undefined ? attempt.facts.snapshot() : attempt.facts.snapshot(), attempt.finish);",
    proofs: [{ test: "test/provider/stream/ResumeSockets.test.ts", named: "is not empty" }],
  },
  {
    name: "a document with nothing in it is a success",
    breaks: "an empty response is no success (break 38)",
    within: "#endOf",
    find: 'const isRead = emptyIsFailure && body !== ""',
    replace: 'const isRead = emptyIsFailure && body === ""',
    proofs: [{ test: empty, named: "with nothing in it and at most" }],
  },
  {
    name: "a keep-alive with any number hides what is missing behind the cursor",
    breaks: "no text lost in silence (break 31)",
    within: "take",
    find: "sequence === Math.max(this.#last, this.#alive) + 1",
    replace: "sequence !== undefined",
    proofs: [{ test: takenUp, named: "do not hide what is missing" }],
  },
  {
    name: "a keep-alive that OpenAI numbers leaves a gap",
    breaks: "one whole response (break 31)",
    within: "#problem",
    find: "sequence > Math.max(this.#last, this.#alive) + 1",
    replace: "sequence > this.#last + 1",
    proofs: [{ test: takenUp, named: "leave no gap" }],
  },
  {
    name: "one key in two places is two credentials",
    breaks: "no request inside an announced wait",
    within: "credentialIn",
    find: 'if (key !== "" && !keys.includes(key))',
    replace: 'if (key !== "")',
    proofs: [{ test: "test/gateway/routing/RequestPath.test.ts", named: "wherever it stands" }],
  },
];
