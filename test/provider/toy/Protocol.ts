/**
 * Puts together what is known of the toy protocol.
 */
import { endingOf } from "../../../src/provider/protocol/StreamEvent.ts";
import { wireProtocol } from "../../../src/provider/protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";

export const toy = wireProtocol(protocol, {
  name: "Toy",
  address,
  continuation: { build, turn },
  seamRefusal: () => undefined,
  noOp: () => ({ data: { t: "wait" } }),
  givenUp: {
    document: (message, code) => ({ error: message, ...(code === undefined ? {} : { code }) }),
    ending: (message) => endingOf({ data: { t: "error", message } }),
  },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  eventsOf: ({ text }) => [{ t: "say", text }, { t: "end" }],
});
