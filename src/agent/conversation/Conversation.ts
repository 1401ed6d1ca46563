/**
 * Writes how a conversation opens, in each of the protocols.
 *
 * `Continuation` writes everything behind it: the model's responses, the results of its calls, and the user's words.
 */
import type * as Json from "../../domain/Json.ts";
import { type ProtocolId, protocols } from "../../provider/Protocols.ts";
import type * as Provider from "../../provider/protocol/Opening.ts";

export type { ToolDescription } from "../../provider/protocol/Opening.ts";

/** What a conversation opens with. */
export interface Opening extends Provider.Opening {
  readonly protocol: ProtocolId;
}

/** The request before the user's first words. */
export const opened = ({ protocol, ...opening }: Opening): Json.JsonRecord => protocols.get(protocol).opened(opening);
