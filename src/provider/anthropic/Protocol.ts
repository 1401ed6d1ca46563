/**
 * Assembles the Anthropic Messages protocol from the modules of this folder.
 */
import * as Json from "../../domain/Json.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { document, ending, noOp } from "./OwnEvents.ts";
import { seamRefusal } from "./Seam.ts";
import { splice } from "./Splice.ts";

const eventsOf = (message: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> => [
  { type: "message_start", message: { ...message, content: [] } },
  ...Json.list(message.content).flatMap((content_block, index) => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_stop", index },
  ]),
  { type: "message_delta", delta: { stop_reason: message.stop_reason }, usage: message.usage },
  { type: "message_stop" },
];

/** The Anthropic Messages wire protocol. */
export const anthropicMessages = wireProtocol(protocol, {
  name: "Anthropic Messages",
  address,
  continuation: { build, turn },
  seamRefusal,
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  eventsOf,
  usage: { cachedApart: true, reasoningApart: false },
  splice,
});
