/**
 * Holds the mutants of large bodies: what is JSON, what an outline has, and whose turn it is.
 */
import type { Mutant } from "./Mutant.ts";

const scan = "test/adapters/relay/form/JsonScan.test.ts";
const outline = "test/gateway/body/BodyOutline.test.ts";
const bound = "test/gateway/routes/BoundLarge.test.ts";
const large = "test/gateway/proxy/LargeBody.test.ts";
const spans = "test/adapters/relay/form/CanonicalSpans.test.ts";
const held = "L11, docs/gateway-operation.md: a large body does not hold the others up";
const known = "a large request is recovered as a small one";

/** The mutants of `src/gateway/body`, `src/adapters/relay/form` and of who asks them. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a large body is read in one turn",
    breaks: held,
    within: "scanned",
    find: "const end = scan.read(count);",
    replace: "const end = scan.read(bytes.length);",
    proofs: [{ test: scan, named: "lets others have their turn" }],
  },
  {
    name: "a cold process reads as much of a large body in a turn as a warm one",
    breaks: held,
    within: "firstSliceBytes",
    find: "export const firstSliceBytes = 4 * 1_024;",
    replace: "export const firstSliceBytes = 64 * 1_024;",
    proofs: [{ test: scan, named: "reads little in its first turn" }],
  },
  {
    name: "what came of a body before its place was there is copied in one turn",
    breaks: held,
    within: "GatheredBody",
    find: "this.#settle(this.#place, chunk.byteLength / takenAlong);",
    replace: "this.#settle(this.#place, this.#waiting);",
    proofs: [{ test: "test/gateway/proxy/GatheredBody.test.ts", named: "copies at most a quarter more" }],
  },
  {
    name: "a large body is sent on in as few turns as its socket takes",
    breaks: held,
    within: "slices",
    find: "if (at > 0) await nextTurn();",
    replace: "",
    proofs: [{ test: "test/gateway/upstream/SlicedBody.test.ts", named: "leaves the others a turn" }],
  },
  {
    name: "a large body is parsed whole",
    breaks: held,
    within: "wholeBytesMax",
    find: "export const wholeBytesMax = 256 * 1_024;",
    replace: "export const wholeBytesMax = 64 * 1_024 * 1_024;",
    proofs: [{ test: large, named: "leaves the others a turn" }],
  },
  {
    name: "the digest of a large body is made in one turn",
    breaks: held,
    within: "formHash",
    find: 'if (typeof body === "object" && body.byteLength > wholeBytesMax)',
    replace: 'if (typeof body === "object" && body.byteLength > 1_000 * wholeBytesMax)',
    proofs: [{ test: "test/gateway/body/FormHash.test.ts", named: "is there at once" }],
  },
  {
    name: "an escape is no JSON where a slice ends within it",
    breaks: known,
    within: "escapeLength",
    find: "for (let digit = at + 2; digit < at + 6; digit += 1)",
    replace: "for (let digit = at + 2; digit < at + 5; digit += 1)",
    proofs: [{ test: scan, named: "edges of the grammar" }],
  },
  {
    name: "a number may end behind its point",
    breaks: known,
    within: "isWhole",
    find: 'return read === "zero" || read === "digits" || read === "fraction" || read === "exponent";',
    replace: 'return read !== "minus" && read !== "e" && read !== "sign" && read !== "damage";',
    proofs: [{ test: scan, named: "edges of the grammar" }],
  },
  {
    name: "a list may be closed as an object",
    breaks: known,
    within: "#close",
    find: "if (byte - 2 !== this.#levels[this.#depth - 1]) {",
    replace: "if (byte - 2 !== OPEN_LIST && byte - 2 !== OPEN_OBJECT) {",
    proofs: [{ test: scan, named: "edges of the grammar" }],
  },
  {
    name: "a byte order mark makes a large body none",
    breaks: known,
    within: "constructor",
    find: "bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;",
    replace: "bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbe ? 3 : 0;",
    proofs: [{ test: scan, named: "edges of the grammar" }],
  },
  {
    name: "levels are read without end",
    breaks: "L11",
    within: "#open",
    find: "if (this.#depth === levelsMax) {",
    replace: "if (this.#depth === -levelsMax) {",
    proofs: [{ test: scan, named: "as many levels" }],
  },
  {
    name: "the conversation is left out at every level",
    breaks: "a tool that is not known is none that proves anything",
    within: "leavesOut",
    find: "(level === 1 && conversation.has(name)) || schemas.has(name)",
    replace: "(level >= 1 && conversation.has(name)) || schemas.has(name)",
    proofs: [{ test: outline, named: "is JSON.parse's value" }],
  },
  {
    name: "an outline that is too long is taken as it is",
    breaks: "a tool that is not known is none that proves anything",
    within: "outlined",
    find: 'if (end === "done" || end === "deep" || outline.isFull) return "unread";',
    replace: 'if (end === "deep") return "unread";',
    proofs: [{ test: outline, named: "more stands beside the conversation" }],
  },
  {
    name: "a text that is too long is left out as if there were none",
    breaks: known,
    within: "scalar",
    find: "else if (to - from > this.#terms.textMax(this.#name)) this.#take(standInBytes);",
    replace: "else if (to - from > this.#terms.textMax(this.#name)) this.#take(noText);",
    proofs: [{ test: outline, named: "stand-in" }],
  },
  {
    name: "an item that cannot be searched binds nothing",
    breaks: "what must not cross, docs/routes.md",
    within: "searched",
    find: "found(searcher, json, whole && !items.isMissed)",
    replace: "found(searcher, json, whole || items.isMissed)",
    proofs: [{ test: bound, named: "cannot search all" }],
  },
  {
    name: "marks are cut as other texts are",
    breaks: "a conversation stays where its history comes from, docs/routes.md",
    within: "searched",
    find: "(markKeys.has(name) ? markBytesMax : otherBytesMax)",
    replace: "(markKeys.has(name) ? otherBytesMax : markBytesMax)",
    proofs: [{ test: bound, named: "reads a long mark whole" }],
  },
  {
    name: "two members of one name have a form",
    breaks: "two requests that a provider may read differently stay two",
    within: "#sorted",
    find: "if (inOrder.some(({ key }, index) => inOrder[index + 1]?.key === key)) this.#unclear = true;",
    replace:
      "if (inOrder.some(({ key }, index) => inOrder[index + 1] === undefined && key === '')) this.#unclear = true;",
    proofs: [{ test: spans, named: "byte for byte" }],
  },
  {
    name: "what has a blank in it is taken for its own form",
    breaks: "a repeat is known however it is spelt",
    within: "#begins",
    find: "if (at !== it.end + (isFirst ? 0 : 1)) it.same = false;",
    replace: "if (at !== it.end + (isFirst ? 0 : 1)) it.same = it.same && isFirst;",
    proofs: [{ test: spans, named: "byte for byte" }],
  },
  {
    name: "a claimed length takes its memory before anything has come",
    breaks: "L11",
    within: "take",
    find: "this.#length * claimedMost >= this.#claimed",
    replace: "this.#length * claimedMost >= claimedMost",
    proofs: [{ test: "test/gateway/proxy/RequestBody.test.ts", named: "claims" }],
  },
  {
    name: "a large body is written in one piece",
    breaks: held,
    within: "slicedBody",
    find: "body.byteLength <= sentBytes",
    replace: "body.byteLength <= 1_000 * sentBytes",
    proofs: [{ test: large, named: "in slices" }],
  },
  {
    name: "a condensed body is one hole",
    breaks: "a route changes no part of what is asked, docs/routes.md",
    within: "close",
    find: "if (this.#within === 0 || this.#within !== this.#level) return;",
    replace: "if (this.#within !== this.#level) return;",
    proofs: [{ test: "test/gateway/body/CondensedBody.test.ts", named: "byte for byte" }],
  },
  {
    name: "a body that is too large to be changed goes as it is",
    breaks: "what would have to be guessed is not sent, docs/routes.md",
    within: "targetOf",
    find: "if (changesBody && body.isOutline && condensed === undefined)",
    replace: "if (changesBody && body.isOutline && condensed === null)",
    proofs: [{ test: "test/gateway/routes/Moving.test.ts", named: "with a large body" }],
  },
  {
    name: "a body of millions of objects is parsed to go on with its response",
    breaks: "L11",
    within: "followed",
    find: '(mayBeParsed ? way : { ...way, continueText: "ask" });',
    replace: "(mayBeParsed ? way : { ...way });",
    proofs: [{ test: large, named: "gone on with" }],
  },
];
