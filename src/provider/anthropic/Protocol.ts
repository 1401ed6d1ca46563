/**
 * Puts together what the package knows of Anthropic Messages.
 */
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { opened } from "./Opening.ts";
import { document, ending, noOp } from "./OwnEvents.ts";

/** Anthropic Messages. */
export const anthropicMessages = wireProtocol(protocol, {
  name: "Anthropic Messages",
  address,
  opened,
  continuation: { build, turn },
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: true, reasoningApart: false },
});
