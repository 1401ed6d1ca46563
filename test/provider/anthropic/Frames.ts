/** Frames of Anthropic Messages, for tests of single events. */

export const start = { type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } };
export const open = (index: number, block: object) => ({ type: "content_block_start", index, content_block: block });
export const delta = (index: number, change: object) => ({ type: "content_block_delta", index, delta: change });
export const args = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json });
export const close = (index: number) => ({ type: "content_block_stop", index });
export const stop = (stop_reason: string | null, usage?: object) => ({
  type: "message_delta",
  delta: { stop_reason },
  usage,
});
export const tool = (index: number, name: string, id = `toolu_${index}`, input: object = {}) =>
  open(index, { type: "tool_use", id, name, input });
export const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
