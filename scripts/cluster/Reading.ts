/**
 * Parses a response as the protocol's SDK does, without any code of the library: text, the tool calls that the program receives, and
 * errors among the events.
 */
import { StringDecoder } from "node:string_decoder";
import type { Protocol } from "./Drawn.ts";

/** Untyped JSON: any field may be absent or of any type. */
interface Json {
  readonly [field: string]: Json | undefined;
}

const tryParse = (text: string): Json | undefined => {
  try {
    // Written by a provider or a gateway: every field is checked before use.
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A response in progress. */
export class Reading {
  text = "";
  /** Arguments of the tool calls so far, as JSON. */
  readonly calls: Array<string> = [];
  /** True once the protocol's own end has arrived. The SDK then returns what it has and stops reading. */
  isWhole = false;
  /** The message of an error event. */
  error: string | undefined;
  readonly #protocol: Protocol;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  push(bytes: Buffer): void {
    this.#rest += this.#decoder.write(bytes);
    for (let at = this.#rest.indexOf("\n\n"); at >= 0; at = this.#rest.indexOf("\n\n")) {
      const event = this.#rest.slice(0, at);
      this.#rest = this.#rest.slice(at + 2);
      for (const line of event.split("\n")) if (line.startsWith("data:")) this.#event(line.slice(5).trim());
    }
  }

  #event(line: string): void {
    if (line === "[DONE]") {
      this.isWhole = true;
      return;
    }
    const event = tryParse(line);
    if (event === undefined) return;
    if (event.error !== undefined && event.error !== null) this.error = text(event.error.message);
    else if (this.#protocol === "chat") this.#chat(event);
    else if (this.#protocol === "responses") this.#responses(event);
    else if (this.#protocol === "anthropic") this.#anthropic(event);
    else this.#gemini(event);
  }

  #call(value: unknown): void {
    if (text(value) !== "") this.calls.push(text(value));
  }

  #chat(event: Json): void {
    const delta = event.choices?.[0]?.delta;
    this.text += text(delta?.content);
    this.#call(delta?.tool_calls?.[0]?.function?.arguments);
  }

  #responses(event: Json): void {
    const type = text(event.type);
    if (type === "response.output_text.delta") this.text += text(event.delta);
    if (type === "response.function_call_arguments.done") this.#call(event.arguments);
    if (type === "response.completed") this.isWhole = true;
    if (type === "response.failed") this.error = text(event.response?.error?.message);
  }

  #anthropic(event: Json): void {
    const type = text(event.type);
    this.text += text(event.delta?.text);
    this.#call(event.delta?.partial_json);
    if (type === "message_stop") this.isWhole = true;
  }

  #gemini(event: Json): void {
    const candidate = event.candidates?.[0];
    const part = candidate?.content?.parts?.[0];
    this.text += text(part?.text);
    if (part?.functionCall !== undefined) this.#call(JSON.stringify(part.functionCall.args));
    if (text(candidate?.finishReason) !== "") this.isWhole = true;
  }
}
