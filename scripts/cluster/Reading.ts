/**
 * Reads a response as its SDK does, with no code of the library: the text, the calls that are handed to the program once the
 * response has ended, and an error that it is told.
 */
import { StringDecoder } from "node:string_decoder";
import type { Protocol } from "./Drawn.ts";

/** JSON of which nothing is known: a field may be there or not, and be anything. */
interface Json {
  readonly [field: string]: Json | undefined;
}

const parsed = (text: string): Json | undefined => {
  try {
    // What a provider or a gateway wrote: every field of it is looked at before it is used.
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A response under way. */
export class Reading {
  /** The text so far. */
  text = "";
  /** Arguments of the calls so far. */
  readonly calls: Array<string> = [];
  /** The protocol's own end has come: the SDK hands over what there is, and reads no more. */
  isWhole = false;
  /** An error that stands among the events. */
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
    const event = parsed(line);
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
