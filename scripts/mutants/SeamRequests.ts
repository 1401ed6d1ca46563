/**
 * Lists the mutants of requests that go on behind shown text: what they say, when they are not sent, and how their parts are joined.
 */
import type { Mutant } from "./Mutant.ts";

const request = "test/provider/continuation/Seam.test.ts";
const driver = "test/provider/seam/SplicedJoin.test.ts";
const parts = "test/provider/seam/ProtocolSeam.test.ts";
const prefills = "test/provider/seam/Prefills.test.ts";
const refusals = "test/provider/seam/Refusals.test.ts";
const step = "test/adapters/effect-ai/TextSeam.test.ts";
const agent = "test/agent/TextSeam.test.ts";

/** Mutants whose proofs stand in the tests of seams of the provider, of Effect AI and of the agent. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a request goes on with another text than the one that was kept",
    breaks: "L2: nothing twice or missing",
    within: "misfit",
    find: 'bare(text).endsWith(bare(seam?.quote ?? ""))',
    replace: 'bare(text) !== "" || seam === undefined',
    proofs: [{ test: request, named: "another text than the one that was kept" }],
  },
  {
    name: "a request goes on in words while a call stands open",
    breaks: "no dangling call",
    within: "misfit",
    find: 'said.some(({ type }) => type === "call")',
    replace: "said.length === 0",
    proofs: [{ test: request, named: "a call stands beside the text" }],
  },
  {
    name: "the quote closes its own mark",
    breaks: "the model reads the whole anchor",
    within: "markFor",
    find: "for (let number = 2; quote.includes(",
    replace: "for (let number = 2; number < 2 && quote.includes(",
    proofs: [{ test: request, named: "other marks where the quote closes them" }],
  },
  {
    name: "half a character is sent to the provider",
    breaks: "the next request is legal",
    within: "withoutHalf",
    find: "isHalf(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;",
    replace: "text;",
    proofs: [{ test: request, named: "does not send half a character" }],
  },
  {
    name: "the rest of a response has the budget of the whole",
    breaks: "what was asked for",
    within: "restOf",
    find: "Math.max(least, whole - ofCharacters(shown) + ofCharacters(quoted))",
    replace: "Math.max(least, whole + 0 * (shown + quoted + ofCharacters(0)))",
    proofs: [{ test: request, named: "what is left of the budget" }],
  },
  {
    name: "an estimate cuts the rest of a response at once",
    breaks: "no character missing",
    within: "restOf",
    find: "const least = thought + Math.min(restTokensMin, whole - thought);",
    replace: "const least = Math.min(1, thought + restTokensMin);",
    proofs: [{ test: request, named: "no less than a floor" }],
  },
  {
    name: "a server goes on with the user's words",
    breaks: "the next request is legal",
    within: "finalMessage",
    find: 'if (request.continue_final_message !== true || last?.role === "assistant") return request;',
    replace: "if (last !== undefined || messages.length === 0) return request;",
    proofs: [{ test: request, named: "go on with the user's words" }],
  },
  {
    name: "Anthropic is sent white space at the end of a prefill",
    breaks: "the next request is legal",
    within: "shownIn",
    find: "text: isLast ? text.trimEnd() : text",
    replace: "text: isLast && text === undefined ? text : text",
    proofs: [{ test: request, named: "keeps white space at the end of a prefill but for Anthropic" }],
  },
  {
    name: "a body that forbids to go on is gone on with where its plan was of another",
    breaks: "what cannot go on is not asked for",
    within: "buildIn",
    find: "const refused = prepared.seam === undefined ? undefined : seamRefusal(prepared.body);",
    replace:
      "const refused = prepared.seam === undefined ? seamRefusal({ ...prepared.body, n: 1 }) && undefined : undefined;",
    proofs: [{ test: request, named: "a request that forbids it" }],
  },
  {
    name: "a tool that is demanded by its name is no demand",
    breaks: "what cannot go on is not asked for",
    within: "demandsCall",
    find: 'if (named.type !== "allowed_tools") return named.type !== "auto" && named.type !== "none";',
    replace: 'if (named.type !== "allowed_tools") return false;',
    proofs: [{ test: refusals }],
  },
  {
    name: "a response is gone on with that its provider may have stored",
    breaks: "what cannot go on is not asked for",
    within: "rows",
    find: "store !== false ||",
    replace: "store === true ||",
    proofs: [{ test: refusals }],
  },
  {
    name: "a model that thinks is given a prefill",
    breaks: "a prefill is given where it is declared",
    within: "thinks",
    find: 'if (words.some((word) => word === "on")) return true;',
    replace: "if (words.length > 99) return true;",
    proofs: [{ test: prefills }],
  },
  {
    name: "a path passes for a host",
    breaks: "a prefill is given where it is declared",
    within: "isBelow",
    find: 'return depth <= parts.length && fits(origin, parts.slice(0, depth).join("/"));',
    replace: "return depth <= parts.length && fits([origin, '*'].join(''), address);",
    proofs: [{ test: prefills, named: "no path passes for a host" }],
  },
  {
    name: "a prefill that was refused is given again",
    breaks: "a refusal is remembered",
    within: "#prefillFor",
    find: "if (request === undefined || this.#refused.has(request)) return undefined;",
    replace: "if (request === undefined) return undefined;",
    proofs: [{ test: parts, named: "an anchor once it was refused" }, { test: "test/runtime/recovery/Seams.test.ts" }],
  },
  {
    name: "a splice that never closes its gate loses text in silence",
    breaks: "no character missing",
    within: "#demandsAll",
    find: 'else if (this.#passed(this.#verifier.stop()) !== "") this.#fault = "unwritable";',
    replace: 'else this.#passed({ type: "wait" });',
    proofs: [{ test: driver, named: "left text behind" }],
  },
  {
    name: "an end inside the anchor is an end of the response",
    breaks: "L5: a seam that is not proven",
    within: "#demandsAll",
    find: 'if (!this.#joined) this.#fault = "stopped";',
    replace: "if (!this.#joined) this.#characters = 0;",
    proofs: [{ test: driver, named: "its splice does not ask" }],
  },
  {
    name: "a continuation goes on behind its first fault",
    breaks: "nothing of an unproven seam is shown",
    within: "#given",
    find: "#given(events: ReadonlyArray<SplicedEvent>): Spliced {\n    if (this.#fault !== undefined) return",
    replace: '#given(events: ReadonlyArray<SplicedEvent>): Spliced {\n    if (this.#fault === "unwritable") return',
    proofs: [{ test: driver, named: "nothing further behind the first fault" }],
  },
  {
    name: "a plan of another text joins what has left",
    breaks: "nothing twice or missing",
    within: "joins",
    find: 'if (characters !== at || typeof anchor === "string") return undefined;',
    replace: 'if (at < 0 || typeof anchor === "string") return undefined;',
    proofs: [{ test: parts, named: "text that has not left here" }],
  },
  {
    name: "an attempt has cost what its client reads of the whole response",
    breaks: "what was paid stands on the record",
    within: "#own",
    find: "const { usage: _usage, ...rest } = observation;",
    replace:
      "if (isLast && observation.usage !== undefined) return observation;\n    const { usage: _usage, ...rest } = observation;",
    proofs: [{ test: parts }],
  },
  {
    name: "the parts of a continuation are read as those of a response of its own",
    breaks: "one response for the client",
    within: "joins",
    find: "new PartJoin(this.#protocol, this.#client, join)",
    replace: "new PartJoin(this.#protocol, this.#start, join)",
    proofs: [{ test: parts, named: "calls behind the seam count on" }],
  },
  {
    name: "text behind a seam stands in a block that the caller never saw begin",
    breaks: "one message in the history",
    within: "#blocks",
    find: 'const begins = part?.type === "text-delta" && !this.#begun.has(part.id) && !this.#goesOn(part.id);',
    replace: 'const begins = part?.type === "text-delta" && part.id === "" && !this.#goesOn(part.id);',
    proofs: [{ test: step, named: "a block of its own" }],
  },
  {
    name: "a request holds what was decoded and not shown",
    breaks: "nothing twice or missing",
    within: "#hasLeft",
    find: "if (this.#seams.has(sent.attempt)) this.#transcript.add(sent.attempt, part);",
    replace: "if (this.#seams.has(-1)) this.#transcript.add(sent.attempt, part);",
    proofs: [{ test: step, named: "goes on twice" }],
  },
  {
    name: "the parts of a seam are a message of their own in the history",
    breaks: "one message in the history",
    within: "take",
    find: 'else if (event._tag === "Continued") this.join(event.attempt);',
    replace: 'else if (event._tag === "Continued") this.join(-1);',
    proofs: [{ test: step, named: "writes one message" }],
  },
  {
    name: "the agent's journal holds a continuation as a response of its own",
    breaks: "one message in the history",
    within: "begin",
    find: "if (seam !== undefined && open !== undefined) {",
    replace: "if (seam !== undefined && open === undefined) {",
    proofs: [{ test: agent }],
  },
  {
    name: "a seam does not know what an earlier process has shown",
    breaks: "no needless question",
    within: "seam",
    find: "for (const part of this.#unfollowed ?? []) seam.left(part, part.observation);",
    replace: "",
    proofs: [{ test: agent, named: "an earlier process has shown" }],
  },
];
