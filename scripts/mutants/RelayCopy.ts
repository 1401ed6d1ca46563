/**
 * Holds the mutants of a relayed response that is copied to a sink: what leaves, and when.
 */
import type { Mutant } from "./Mutant.ts";

const copy = "test/adapters/relay/Copy.test.ts";

/** The mutants of `src/adapters/relay/RelayCopy.ts` and of the room of `src/runtime/attempt/Handoff.ts`. */
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
];
