/**
 * Assembles the Google Gemini protocol from the modules of this folder.
 */
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { document, ending, noOp } from "./OwnEvents.ts";
import { seamRefusal } from "./Seam.ts";
import { splice } from "./Splice.ts";

/** The Google Gemini wire protocol. */
export const googleGemini = wireProtocol(protocol, {
  name: "Google Gemini",
  address,
  continuation: { build, turn },
  seamRefusal,
  noOp,
  givenUp: { document, ending },
  takesComments: false,
  usage: { cachedApart: false, reasoningApart: true },
  // A document has the same shape as a chunk.
  eventsOf: (document) => [document],
  splice,
});
