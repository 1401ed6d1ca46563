/**
 * Puts together what the package knows of OpenAI Responses.
 */
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { opened } from "./Opening.ts";
import { document, ending, noOp } from "./OwnEvents.ts";

/** OpenAI Responses. */
export const openAiResponses = wireProtocol(protocol, {
  name: "OpenAI Responses",
  address,
  opened,
  continuation: { build, turn },
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
});
