/**
 * Puts together what the package knows of OpenAI Chat Completions.
 */
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { document, ending, noOp } from "./OwnEvents.ts";
import { seamRefusal } from "./Seam.ts";
import { splice } from "./Splice.ts";

/** OpenAI Chat Completions. */
export const openAiChat = wireProtocol(protocol, {
  name: "OpenAI Chat Completions",
  address,
  continuation: { build, turn },
  seamRefusal,
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  // A document has the form of a chunk.
  eventsOf: (document) => [document],
  splice,
});
