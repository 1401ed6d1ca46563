/**
 * Holds the mutants of a relayed response that is copied to a sink: what leaves, and when.
 */
import type { Mutant } from "./Mutant.ts";

const copy = "test/adapters/relay/Copy.test.ts";
const limits = "test/gateway/proxy/Limits.test.ts";

/** The mutants of `src/adapters/relay/RelayCopy.ts` of the room of `src/runtime/attempt/Handoff.ts`, and of the client's end. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "parts are written to a socket that must drain",
    breaks: "L11",
    within: "Handoff",
    find: "return this.#waiting !== undefined && this.#queue === undefined && this.#room?.isFree() !== false;",
    replace: "return this.#waiting !== undefined && this.#queue === undefined;",
    proofs: [{ test: copy, named: "schedules of drains" }],
  },
  {
    name: "what waits in the slot is taken before the socket has drained",
    breaks: "L4",
    within: "Handoff",
    find: "if (room?.isFree() === false) return Effect.andThen(room.freed, this.take);",
    replace: "",
    proofs: [{ test: copy, named: "what waits for its drain" }],
  },
  {
    name: "a keep-alive is written to a socket that must drain",
    breaks: "L11",
    within: "Copying",
    find: "const bytes = this.#sink.isReady() ? this.#pulse() : undefined;",
    replace: "const bytes = this.#pulse();",
    proofs: [{ test: copy, named: "none while it drains" }],
  },
  {
    name: "a defect of the socket is dropped, and its client waits for ever",
    breaks: "no silence behind a defect",
    within: "Copying",
    find: "this.#resume?.(Effect.die(defect));",
    replace: "void defect;",
    proofs: [{ test: copy, named: "fails as a defect" }],
  },
  {
    name: "a response that broke is not given up",
    breaks: "L11",
    within: "RelaySource",
    find: 'this.#exchange.abort();\n      return { _tag: "error", error };',
    replace: 'return { _tag: "error", error };',
    proofs: [{ test: copy, named: "up that broke" }],
  },
  {
    name: "what leaves in one step leaves in as many arrays as it came in",
    breaks: "a burst costs one write",
    within: "together",
    find: "return [joined(views)];",
    replace: "return views;",
    proofs: [{ test: copy, named: "leaves as one array" }],
  },
  {
    name: "a response has ended while its bytes wait for its client",
    breaks: "a client that reads nothing is given up",
    within: "ClientResponse",
    find: "const sent = this.#response.writableLength === 0 ? Effect.void : this.#drained;",
    replace: "const sent = Effect.void;",
    proofs: [{ test: limits, named: "and no sooner" }],
  },
  {
    name: "a head waits for the end of its response",
    breaks: "the head leaves with the first content",
    within: "ClientResponse",
    find: "this.#response.write(empty);",
    replace: "void empty;",
    proofs: [{ test: limits, named: "sends a head before anything else" }],
  },
  {
    name: "an event that ended before its line ends stays open",
    breaks: "what counts as shown can be read",
    within: "end",
    find: "if (cut !== undefined) last[last.length - 1] =",
    replace: "if (cut !== undefined && end.complete) last[last.length - 1] =",
    proofs: [
      { test: "test/adapters/relay/RelayFrames.test.ts", named: "before its line ends" },
      { test: "test/adapters/relay/seam/LineEnds.test.ts", named: "behind that event, and not inside of it" },
    ],
  },
];
