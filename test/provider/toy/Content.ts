/**
 * Reads what an event of a toy stream says.
 */
import type { Content } from "../../../src/provider/stream/Content.ts";

export const said = (text: string): ReadonlyArray<Content> => [
  { kind: "text", choice: 0, key: "text", text, item: { type: "text", field: "say" } },
];

export const thought = (text: string): ReadonlyArray<Content> => [
  { kind: "reasoning", choice: 0, key: "thought", text },
];
