/**
 * Writes how a conversation opens in the toy protocol.
 */
import type * as Json from "../../../src/domain/Json.ts";
import type { Opening } from "../../../src/provider/protocol/Opening.ts";

export const opened = ({ model, system, tools }: Opening): Json.JsonRecord => ({
  model,
  stream: true,
  tools,
  turns: [{ role: "system", say: system }],
});
