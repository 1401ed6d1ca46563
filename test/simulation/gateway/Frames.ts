/** Reads the frames of a streamed body, as a client that knows only the form of its protocol. */
import type { Frame } from "../../gateway/clients/StandIn.ts";

/** Reads frames as the bytes arrive. */
export class FrameReader {
  readonly frames: Array<Frame> = [];
  #rest = "";
  #data: Array<string> = [];
  readonly #decoder = new TextDecoder();

  push(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split(/\r?\n/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    if (line.startsWith(":")) this.frames.push({ kind: "comment", json: undefined, data: line });
    else if (line.startsWith("data:")) this.#data.push(line.slice("data:".length).trim());
    else if (line.startsWith("{")) this.frames.push({ kind: "bare", json: parse(line), data: line });
    else if (line === "" && this.#data.length > 0) {
      const data = this.#data.join("\n");
      this.#data = [];
      this.frames.push({ kind: "event", json: parse(data), data });
    }
  }
}

/** The frames of a whole text. */
export const framesIn = (text: string): ReadonlyArray<Frame> => {
  const reader = new FrameReader();
  reader.push(Buffer.from(text));
  return reader.frames;
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // `[DONE]`, or a page for people
  }
};

/** True for frames that only keep a client waiting: comments, pings and events without content of the gateway. */
export const isNoOp = ({ data, kind }: Frame): boolean =>
  kind === "comment" || noOps.some((pattern) => pattern.test(data));

const noOps = [
  /^\{"type":"ping"\}$/,
  /^\{"type":"keepalive","sequence_number":\d+\}$/,
  /^\{(?:"response":\{)?"candidates":\[\{"content":\{"parts":\[\{"text":""\}\][^\]]*\]/,
  /^\{"type":"tool-plan-delta","delta":\{"message":\{"tool_plan":""\}\}\}$/,
  /"created_at":"1970-01-01T00:00:00Z"/,
  /"event_type":"interaction\.status_update"/,
];
