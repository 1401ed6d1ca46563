/** Classifies an output item of the Responses protocol: its role, the side that runs it, and its input. */

import { mcpName } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { Executor } from "../../domain/SideEffects.ts";
import { isBlank } from "../stream/Payload.ts";

/** The role of an output item. */
export type Item =
  | { readonly role: "message" }
  | { readonly role: "reasoning" }
  | Call
  /** The result of a call that the provider executed. */
  | { readonly role: "result" }
  | { readonly role: "other" };

/** An item that is a call. */
export interface Call {
  readonly role: "call";
  readonly executor: Executor;
  /** Empty if the server did not name the tool. */
  readonly tool: string;
  /** `item`: the call's own item contains the result of the provider. `result`: the result is a separate item. */
  readonly settledBy: "item" | "result";
  readonly picture: boolean;
}

/** Types of items that always wait for the caller: calls that it runs, and approvals that it gives. */
const runtimeTypes = ["function_call", "local_shell_call", "apply_patch_call", "computer_call", "mcp_approval_request"];

/** Tools of xAI's x_search family. xAI sends their calls as custom calls, although it has already run them. */
const xSearchTools = ["x_user_search", "x_keyword_search", "x_semantic_search", "x_thread_fetch"];

/**
 * Classifies an item.
 *
 * An unknown item that resembles a call counts as run by the provider. No table lists its name, so its effect is unknown.
 *
 * @param item the item as parsed JSON
 * @param hostsXSearch true if the response lists `x_search` among its tools
 */
export const read = (item: Json.JsonRecord, hostsXSearch: boolean): Item => {
  const type = Json.string(item.type);
  if (type === "message") return { role: "message" };
  if (type === "reasoning") return { role: "reasoning" };
  if (type.endsWith("_call_output") || type === "tool_search_output" || type === "program_output")
    return { role: "result" };
  if (runtimeTypes.includes(type)) return runtimeCall(type, item);
  switch (type) {
    case "custom_tool_call": {
      const name = Json.string(item.name);
      const hosted = xSearchTools.includes(name) && (hostsXSearch || Json.string(item.call_id).startsWith("xs_"));
      return hosted ? providerCall(name) : runtimeCall(type, item);
    }
    case "shell_call": {
      // A local environment is the caller's own machine; every other one is a container of the provider.
      const environment = Json.record(item.environment);
      const local = environment === undefined || environment.type === "local";
      return local ? runtimeCall(type, item) : providerCall("shell", "result");
    }
    case "tool_search_call":
      return item.execution === "client" ? runtimeCall(type, item) : providerCall("tool_search", "result");
    case "mcp_call":
      return providerCall(mcpName(Json.string(item.server_label), Json.string(item.name)));
    case "program":
      return providerCall("program", "result");
    case "image_generation_call":
      return { ...providerCall("image_generation"), picture: Json.string(item.result) !== "" };
    case "code_interpreter_call":
      return { ...providerCall("code_interpreter"), picture: Json.list(item.outputs).some(isImage) };
  }
  // Vendors mark their own hosted tools with a prefix (`openrouter:web_search`).
  if (type.endsWith("_call") || type.includes(":")) return providerCall(type.replace(/_call$/, ""));
  return { role: "other" };
};

/**
 * Returns the input of a runtime call as a string.
 *
 * @param item the finished item
 * @param told the input that arrived before the item, if any
 * @returns `broken` for invalid JSON; undefined if the input is missing or was cut
 */
export const inputOf = (item: Json.JsonRecord, told: string | undefined): string | "broken" | undefined => {
  if (["incomplete", "failed", "cancelled"].includes(Json.string(item.status))) return undefined;
  // A custom tool accepts any string, even an empty one.
  if (item.type === "custom_tool_call") return typeof item.input === "string" ? item.input : told;
  // Servers that streamed the arguments may leave them empty here.
  const said = typeof item.arguments === "string" && isBlank(item.arguments) ? told || item.arguments : item.arguments;
  const given = said ?? told ?? item.action ?? item.actions ?? item.operation;
  if (typeof given === "string") return jsonInput(given);
  return typeof given === "object" && given !== null ? JSON.stringify(given) : undefined;
};

/** Parses arguments sent as a string. A blank string means a call without arguments. */
export const jsonInput = (given: string): string | "broken" => {
  if (isBlank(given)) return "{}";
  return Json.parse(given) === undefined ? "broken" : given;
};

/** Returns the text of a content part: text, refusal or audio transcript. */
export const partText = (part: Json.JsonRecord): string =>
  Json.string(part.text) || Json.string(part.refusal) || Json.string(part.transcript);

const runtimeCall = (type: string, item: Json.JsonRecord): Call => ({
  role: "call",
  executor: "runtime",
  // Functions and custom tools have names; other calls are named after their type.
  tool: label(hasOwnName(type) ? Json.string(item.name) : type.replace(/_call$/, "")),
  settledBy: "item",
  picture: false,
});

const hasOwnName = (type: string): boolean => type === "function_call" || type === "custom_tool_call";

const providerCall = (tool: string, settledBy: Call["settledBy"] = "item"): Call => ({
  role: "call",
  executor: "provider",
  tool: label(tool),
  settledBy,
  picture: false,
});

const isImage = (output: unknown): boolean => Json.record(output)?.type === "image";
