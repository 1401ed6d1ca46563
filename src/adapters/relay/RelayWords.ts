/**
 * Computes a digest of the text in a broken response, to detect that two attempts broke after exactly the same text.
 *
 * Ids, times and chunk boundaries differ between attempts, so only text, reasoning and arguments are digested. The digest is computed after
 * an attempt has broken, so that healthy responses cost nothing. It stays in memory and is never recorded.
 */
import * as Json from "../../domain/Json.ts";
import type { Framing } from "../../provider/stream/Framing.ts";
import * as Sse from "../../provider/stream/Sse.ts";
import type { RelayPart } from "./RelayFrames.ts";

/** Maximum number of bytes of a response that are digested. Of the bytes after that, only the number counts. */
export const digestBytesMax = 256 * 1024;

/** Minimum length of text that distinguishes responses, in UTF-16 code units. */
const charactersMin = 4;

/** Maximum depth to which an event is searched. */
const levelsMax = 12;

/**
 * Returns a digest of the text in the events of a response.
 *
 * @returns undefined if the text is shorter than `charactersMin`, because two healthy responses may start with the same word
 */
export const digestOf = (parts: ReadonlyArray<RelayPart>, framing: Framing = Sse.framing): string | undefined => {
  const words = new Words();
  const framer = framing.makeFramer();
  let bytes = 0;
  for (const part of parts) {
    bytes += part.bytes.byteLength;
    if (bytes > digestBytesMax) continue;
    for (const frame of framer.feed(part.bytes)) {
      if (!Sse.isComment(frame)) read(eventIn(Json.parse(frame.data)?.json), words, levelsMax);
    }
  }
  const { digest } = words;
  return digest === undefined || bytes <= digestBytesMax ? digest : `${digest}.${bytes}`;
};

/** Returns the event inside an envelope of Code Assist, and any other event itself. */
const eventIn = (json: unknown): unknown => {
  const inner = Json.record(Json.record(json)?.response);
  return inner !== undefined && "candidates" in inner ? inner : json;
};

/** Members that contain text of the model, in any of the protocols. */
const said: ReadonlySet<string> = new Set([
  "text",
  "content",
  "delta",
  "refusal",
  "reasoning",
  "reasoning_content",
  "thinking",
  "arguments",
  "partial_json",
  "input",
  "response",
]);

/** Members that contain the arguments of a call as an object or a list. */
const objects: ReadonlySet<string> = new Set(["args", "partialArgs", "arguments"]);

const read = (value: unknown, words: Words, levels: number): void => {
  if (levels === 0 || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const it of value) read(it, words, levels - 1);
    return;
  }
  for (const [name, it] of Object.entries(value)) {
    // Gemini sends arguments as an object, or in pieces, and Ollama as an object.
    if (objects.has(name) && typeof it === "object") words.add(JSON.stringify(it));
    else if (typeof it === "string" && said.has(name)) words.add(it);
    // In a lifecycle event, the object `response` repeats parts of the request and not text of the model.
    else if (name !== "response" && name !== "metadata") read(it, words, levels - 1);
  }
};

/** Two 32-bit hashes (FNV-1a with different initial values) over all text, and its length. */
class Words {
  #one = 0x811c9dc5;
  #two = 0x9747b28c;
  #length = 0;

  add(text: string): void {
    this.#length += text.length;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      this.#one = Math.imul(this.#one ^ code, 0x01000193);
      this.#two = Math.imul(this.#two ^ code, 0x85ebca6b);
    }
  }

  get digest(): string | undefined {
    return this.#length < charactersMin ? undefined : [this.#one >>> 0, this.#two >>> 0, this.#length].join(".");
  }
}
