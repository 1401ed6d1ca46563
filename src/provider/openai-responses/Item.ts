/**
 * Reads one output item of the Responses protocol: what it is, which side runs it, and whether its input is whole.
 */

import { mcpName } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { Executor } from "../../domain/SideEffects.ts";
import { isBlank } from "../stream/Payload.ts";

/** What an output item is. */
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
  /** Empty where the server did not say. */
  readonly tool: string;
  /** A provider-executed call has its result with its own item, or in an item of its own. */
  readonly settledBy: "item" | "result";
  /** Its result is a picture. */
  readonly picture: boolean;
}

/** Items that the caller runs, whatever else they say. */
const runtimeTypes = ["function_call", "local_shell_call", "apply_patch_call", "computer_call", "mcp_approval_request"];

/** The families of x_search at xAI come as custom calls, which the provider has run already. */
const xSearchTools = ["x_user_search", "x_keyword_search", "x_semantic_search", "x_thread_fetch"];

/**
 * Reads an item.
 *
 * Whatever looks like a call and is not known is taken to run at the provider, under a name that no table holds: its effect
 * is then unknown.
 *
 * @param item the item as parsed JSON
 * @param hostsXSearch whether the response says that it exposes `x_search`
 */
export const read = (item: Json.JsonRecord, hostsXSearch: boolean): Item => {
  const type = Json.string(item.type);
  if (type === "message") return { role: "message" };
  if (type === "reasoning") return { role: "reasoning" };
  if (type.endsWith("_call_output") || type === "tool_search_output" || type === "program_output")
    return { role: "result" };
  if (runtimeTypes.includes(type)) return runtime(type, item);
  switch (type) {
    case "custom_tool_call": {
      const name = Json.string(item.name);
      const hosted = xSearchTools.includes(name) && (hostsXSearch || Json.string(item.call_id).startsWith("xs_"));
      return hosted ? provider(name) : runtime(type, item);
    }
    case "shell_call": {
      // A local environment is the caller's own machine; every other one is a container of the provider.
      const environment = Json.record(item.environment);
      const local = environment === undefined || environment.type === "local";
      return local ? runtime(type, item) : provider("shell", "result");
    }
    case "tool_search_call":
      return item.execution === "client" ? runtime(type, item) : provider("tool_search", "result");
    case "mcp_call":
      return provider(mcpName(Json.string(item.server_label), Json.string(item.name)));
    case "program":
      return provider("program", "result");
    case "image_generation_call":
      return { ...provider("image_generation"), picture: Json.string(item.result) !== "" };
    case "code_interpreter_call":
      return { ...provider("code_interpreter"), picture: Json.list(item.outputs).some(isImage) };
  }
  // Vendors mark their own hosted tools with a prefix (`openrouter:web_search`).
  if (type.endsWith("_call") || type.includes(":")) return provider(type.replace(/_call$/, ""));
  return { role: "other" };
};

/**
 * The input of a runtime call, as text.
 *
 * @param item the finished item
 * @param told the input that came before the item, where one came
 * @returns `broken` for arguments that are no JSON; undefined where the input is not there or was cut
 */
export const inputOf = (item: Json.JsonRecord, told: string | undefined): string | "broken" | undefined => {
  if (["incomplete", "failed", "cancelled"].includes(Json.string(item.status))) return undefined;
  // A custom tool takes any text, also none.
  if (item.type === "custom_tool_call") return typeof item.input === "string" ? item.input : told;
  // Servers that streamed the arguments leave them empty here.
  const said = typeof item.arguments === "string" && isBlank(item.arguments) ? told || item.arguments : item.arguments;
  const given = said ?? told ?? item.action ?? item.actions ?? item.operation;
  if (typeof given === "string") return jsonInput(given);
  return typeof given === "object" && given !== null ? JSON.stringify(given) : undefined;
};

/** Arguments as text: none at all is a call without arguments. */
export const jsonInput = (given: string): string | "broken" => {
  if (isBlank(given)) return "{}";
  return Json.parse(given) === undefined ? "broken" : given;
};

/** The text of a content part: text, refusal or the transcript of audio. */
export const partText = (part: Json.JsonRecord): string =>
  Json.string(part.text) || Json.string(part.refusal) || Json.string(part.transcript);

const runtime = (type: string, item: Json.JsonRecord): Call => ({
  role: "call",
  executor: "runtime",
  // Functions and custom tools have names; the others are named by what they are.
  tool: label(namesItself(type) ? Json.string(item.name) : type.replace(/_call$/, "")),
  settledBy: "item",
  picture: false,
});

const namesItself = (type: string): boolean => type === "function_call" || type === "custom_tool_call";

const provider = (tool: string, settledBy: Call["settledBy"] = "item"): Call => ({
  role: "call",
  executor: "provider",
  tool: label(tool),
  settledBy,
  picture: false,
});

const isImage = (output: unknown): boolean => Json.record(output)?.type === "image";
