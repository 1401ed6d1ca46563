/**
 * Assembles the OpenAI Chat Completions protocol from the modules of this folder.
 */
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { document, ending, noOp } from "./OwnEvents.ts";
import { seamRefusal } from "./Seam.ts";
import { splice } from "./Splice.ts";

/** The OpenAI Chat Completions wire protocol. */
export const openAiChat = wireProtocol(protocol, {
  name: "OpenAI Chat Completions",
  address,
  continuation: { build, turn },
  seamRefusal,
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  // A document has the same shape as a chunk.
  eventsOf: (document) => [document],
  splice,
});
