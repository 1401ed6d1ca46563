/**
 * Writes the calls of a response and what closes them, each kind in its own form.
 */
import * as Json from "../../domain/Json.ts";
import type { Closing } from "../continuation/Input.ts";
import { textOf } from "../continuation/Words.ts";

/**
 * The call as an input item.
 *
 * @param json what is known of it: its item, and its whole input
 * @param id the id that its output names
 */
export const callItem = (json: Json.JsonRecord, id: string): Json.JsonRecord => {
  const { id: own, status: _status, ...native } = Json.record(json.item) ?? {};
  const type = Json.string(native.type) || "function_call";
  const name = Json.string(native.name) || Json.string(json.name);
  const input = Json.string(json.input);
  switch (type) {
    case "function_call":
      return { ...native, type, call_id: id, name, arguments: input };
    case "custom_tool_call":
      return { ...native, type, call_id: id, name, input };
    case "mcp_approval_request":
      return { ...native, type, id: own };
    default:
      return { ...native, type, call_id: id, status: "completed" };
  }
};

/**
 * The item that closes a call.
 *
 * @returns undefined for a call that no words can close (a computer call wants a picture): it is left out
 */
export const closingItem = (call: Json.JsonRecord, { failed, output }: Closing): Json.JsonRecord | undefined => {
  const { call_id, type } = call;
  const native = Json.record(output);
  // A whole output item of the runtime's own.
  if (native !== undefined && /_(output|response)$/.test(Json.string(native.type)))
    return type === "mcp_approval_request" ? native : { ...native, call_id };
  const text = textOf(output);
  switch (type) {
    case "function_call":
    case "custom_tool_call":
      return { type: `${type}_output`, call_id, output: isContent(output) ? output : text };
    case "local_shell_call":
      return { type: "local_shell_call_output", call_id, output: text };
    case "shell_call": {
      const outcome = { type: "exit", exit_code: failed ? 1 : 0 };
      return { type: "shell_call_output", call_id, output: [{ stdout: "", stderr: text, outcome }] };
    }
    case "apply_patch_call":
      return { type: "apply_patch_call_output", call_id, status: failed ? "failed" : "completed", output: text };
    case "mcp_approval_request":
      return { type: "mcp_approval_response", approval_request_id: call.id, approve: false, reason: text };
    default:
      return undefined;
  }
};

const isContent = (output: unknown): boolean =>
  Array.isArray(output) &&
  output.length > 0 &&
  output.every((part) => Json.string(Json.record(part)?.type).startsWith("input_"));
