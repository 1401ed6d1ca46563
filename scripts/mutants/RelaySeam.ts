/**
 * Holds the mutants of relayed responses that go on behind shown text, and of who says whether they do.
 */
import type { Mutant } from "./Mutant.ts";

const seams = "test/adapters/relay/seam/RelaySeam.test.ts";
const requests = "test/adapters/relay/seam/SeamRequest.test.ts";
const lineEnds = "test/adapters/relay/seam/LineEnds.test.ts";
const numbers = "test/adapters/relay/seam/WideNumbers.test.ts";
const routes = "test/adapters/relay/seam/SeamRoutes.test.ts";
const gateway = "test/gateway/proxy/ContinueText.test.ts";

/** What must not go wrong with them. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "the error event of a continuation leaves behind the text that it was to go on with",
    breaks: "an event of another response is none of the client's (L5)",
    within: "endsWith",
    find: "if (failed?.continues === true) return false;",
    replace: "",
    proofs: [{ test: requests, named: "error event breaks the response" }],
  },
  {
    name: "the client's idempotency key goes with the request for the rest",
    breaks: "a continuation is another request: its provider must not give the first response again",
    within: "ofBody",
    find: '  "digest",\n  "idempotency-key",\n  "x-idempotency-key",\n',
    replace: '  "digest",\n',
    proofs: [{ test: requests, named: "without the first request's idempotency key" }],
  },
  {
    name: "a request is made anew whose headers sign the body",
    breaks: "what a provider would refuse is not sent",
    within: "built",
    find: "if (sent === undefined || isSigned(plan.request)) return undefined;",
    replace: "if (sent === undefined) return undefined;",
    proofs: [{ test: requests, named: "signed by its headers" }],
  },
  {
    name: "a continuation that cannot be built is planned all the same",
    breaks: "a refusal comes before anything is sent",
    within: "plan",
    find: 'if (body === undefined) return "unbuildable";',
    replace: "if (body === undefined) return plan;",
    proofs: [{ test: requests, named: "whose body cannot be read here" }, { test: requests }],
  },
  {
    name: "what was shown is not kept for the request of the rest",
    breaks: "the model reads what it has said",
    within: "follow",
    find: "collector.take(1, followed.ordinal, decoded);",
    replace: "",
    proofs: [{ test: seams, named: "openai-chat: broken at every event" }],
  },
  {
    name: "the events of a continuation leave as they came",
    breaks: "the client reads one response: no character twice",
    within: "relayed",
    find: "bytes: bytesOf(decoded.event, owed && at === 0),",
    replace: "bytes: new Uint8Array(0),",
    proofs: [{ test: seams, named: "openai-chat: broken at every event" }],
  },
  {
    name: "an upstream's own word about shown text is not heard",
    breaks: "header, then upstream, then flag",
    within: "routeOf",
    find: "asked.continueText ?? server.continueText ?? settings.continueText",
    replace: "asked.continueText ?? settings.continueText",
    proofs: [{ test: gateway, named: "the upstream" }],
  },
  {
    name: "the flag wins over a request's header about shown text",
    breaks: "header, then upstream, then flag",
    within: "routeOf",
    find: "asked.continueText ?? server.continueText ?? settings.continueText",
    replace: "server.continueText ?? settings.continueText",
    proofs: [{ test: gateway, named: "the header" }],
  },
  {
    name: "an upstream is sent the gateway's word about shown text",
    breaks: "headers that speak to the gateway end at it",
    within: "own",
    find: "attachHeader, continueTextHeader],",
    replace: "attachHeader],",
    proofs: [{ test: gateway, named: "the header" }],
  },
  {
    name: "the plain copy of a compressed body is let go before its run is over",
    breaks: "a request that came compressed goes on too",
    within: "recognised",
    find: "keeps && plain !== sent ? { ...plan, plain } : plan",
    replace: "plan",
    proofs: [{ test: gateway, named: "came compressed" }],
  },
  {
    name: "a continuation follows the half of a line end",
    breaks: "every official client reads the next event, also one that wants a whole line end",
    within: "joins",
    find: "let owed = this.#lastByte === CR;",
    replace: "let owed = false;",
    proofs: [{ test: lineEnds, named: "google-gemini: is gone on with behind the half" }],
  },
  {
    name: "a line feed stands in front of every event of a continuation",
    breaks: "the line feed of one line end is owed once",
    within: "joins",
    find: 'if (out.type === "passed" && out.parts.length > 0) owed = false;',
    replace: "",
    proofs: [{ test: lineEnds, named: "behind the half of one" }],
  },
  {
    name: "a continuation is built for the way of another route",
    breaks: "no continuation crosses routes",
    within: "requestOf",
    find: "followed.plan !== way",
    replace: "followed.plan.request.url !== way.request.url",
    proofs: [{ test: routes, named: "builds no request for the way of another" }],
  },
  {
    name: "a number that no double holds is sent as another",
    breaks: "a client's numbers reach the model digit for digit",
    within: "isHeld",
    find: "sameAs(digits) === sameAs(String(Number(digits)))",
    replace: "true",
    proofs: [
      { test: numbers, named: "keep their digits" },
      { test: numbers, named: "go with the request" },
    ],
  },
  {
    name: "digits inside a text are taken for a number",
    breaks: "a text stays what it is",
    within: "stringEnd",
    find: "if ((at - slashes) % 2 === 0) return at + 1;",
    replace: "return at + 1;",
    proofs: [{ test: numbers, named: "no numbers inside a text" }],
  },
  {
    name: "the mark of a number may stand in a text",
    breaks: "a text that says the mark stays a text",
    within: "markFor",
    find: "text.includes(mark)",
    replace: "text.includes(mark) && count < 0",
    proofs: [{ test: numbers, named: "no numbers inside a text" }],
  },
];
