/** Frames of OpenAI Responses, for tests of single events. */

export const created = { type: "response.created", response: { status: "in_progress", tools: [] } };
export const added = (output_index: number, item: object) => ({
  type: "response.output_item.added",
  output_index,
  item,
});
export const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item });
export const fn = (call_id: string, args?: string, more: object = {}) => ({
  type: "function_call",
  call_id,
  name: "read",
  ...(args === undefined ? {} : { arguments: args }),
  ...more,
});
export const args = (output_index: number, delta: string) => ({
  type: "response.function_call_arguments.delta",
  output_index,
  delta,
});
export const argsDone = (output_index: number, text: string) => ({
  type: "response.function_call_arguments.done",
  output_index,
  arguments: text,
});
export const text = (output_index: number, delta: string) => ({
  type: "response.output_text.delta",
  output_index,
  delta,
});
export const completed = (response: object = {}) => ({
  type: "response.completed",
  response: { status: "completed", ...response },
});
export const incomplete = (reason: string, response: object = {}) => ({
  type: "response.incomplete",
  response: { status: "incomplete", incomplete_details: { reason }, ...response },
});
export const error = { type: "error", code: "server_error", message: "x" };
export const message = (words: string) => ({ type: "message", content: [{ type: "output_text", text: words }] });
