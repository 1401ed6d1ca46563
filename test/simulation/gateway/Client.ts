/** Clients that send the turns of a world to the gateway and keep the raw response. */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { conversation, samples } from "../../samples/index.ts";
import { fields } from "../../samples/Json.ts";
import { FrameReader } from "./Frames.ts";
import type { Call, Read } from "./History.ts";
import { HttpReader } from "./HttpReader.ts";
import { markOf } from "./Provider.ts";
import type { End } from "./VirtualNet.ts";
import type { VirtualTime } from "./VirtualTime.ts";
import type { Turn } from "./World.ts";

/** The parts of the world that a client needs. */
export interface Surroundings {
  readonly time: VirtualTime;
  /** Opens a connection to the gateway; undefined if nothing listens. */
  readonly connect: () => End | undefined;
  readonly log: (line: string) => void;
}

/** Plays one turn: its first request, and its repeats. */
export class Client {
  readonly calls: Array<Call> = [];
  /** True after the last response of the turn. */
  isDone = false;
  readonly #turn: Turn;
  readonly #number: number;
  readonly #in: Surroundings;

  constructor(turn: Turn, number: number, surroundings: Surroundings) {
    this.#turn = turn;
    this.#number = number;
    this.#in = surroundings;
    surroundings.time.after(turn.at, () => this.#call(), "world");
  }

  #call(): void {
    const { connect, time } = this.#in;
    const call: Call = {
      ...{ turn: this.#number, number: this.calls.length, at: time.now },
      ...{ status: undefined, headAt: undefined, headers: new Map(), body: "", end: undefined },
    };
    this.calls.push(call);
    const end = connect();
    if (end === undefined) return void this.#over(call, "reset");
    const { bytesPerSecond, closesAtFinish, leavesMs } = this.#turn.client;
    const { take } = samples[this.#turn.protocol];
    const events = new FrameReader();
    let read = 0;
    /** True if a finish has come. */
    const isFinished = (bytes: Buffer): boolean => {
      events.push(bytes);
      const fresh = events.frames.slice(read);
      read = events.frames.length;
      return fresh.some((frame) => take(frame, []).whole === true);
    };
    const reader = new HttpReader(false, {
      head: ({ headers, line }) => {
        call.status = Number(line.split(" ")[1]);
        call.headAt = time.now;
        call.headers = headers;
      },
      data: (bytes) => {
        call.body += bytes.toString("latin1");
        if (!closesAtFinish || !isFinished(bytes)) return;
        this.#over(call, "closed");
        end.close();
      },
      whole: () => {
        this.#over(call, "whole");
        end.close();
      },
    });
    end.onData = (bytes) => {
      reader.push(bytes);
      if (bytesPerSecond === null) return;
      end.pause();
      time.after((bytes.byteLength * 1_000) / bytesPerSecond, () => end.resume(), "world");
    };
    end.onEnd = () => {
      if (!reader.end()) this.#over(call, "ended");
      end.close();
    };
    end.onReset = () => this.#over(call, "reset");
    if (leavesMs !== null)
      time.after(
        leavesMs,
        () => {
          this.#over(call, "left");
          end.close();
        },
        "world",
      );
    end.write(this.#request());
  }

  #request(): Buffer {
    const { client, host, isDocument, protocol, tools } = this.#turn;
    const { key } = samples[protocol];
    const path = isDocument ? "/v1/embeddings" : samples[protocol].path;
    const question = `Please tell me about ${markOf(this.#number)}`;
    const offered = tools.length === 0 ? {} : toolsOf(protocol, tools);
    const body = JSON.stringify(
      isDocument
        ? { model: "m", input: question }
        : { ...conversation(protocol, question), ...offered, ...this.#limit() },
    );
    const headers = {
      host: "127.0.0.1:8787",
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": client.agent,
      ...key("sk-simulated"),
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return Buffer.from(`POST ${prefixOf(host)}${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
  }

  /** After a failure, claude-code asks for fewer tokens. */
  #limit(): object {
    const { client, protocol } = this.#turn;
    const isClaude = protocol === "anthropic-messages" && client.agent.startsWith("claude-cli");
    return isClaude ? { max_tokens: this.calls.length > 1 ? 21_333 : 32_000 } : {};
  }

  #over(call: Call, how: "whole" | "ended" | "reset" | "left" | "closed"): void {
    if (call.end !== undefined) return;
    const { log, time } = this.#in;
    call.end = { at: time.now, how };
    log(`call ${call.turn}.${call.number}: ${call.status} ${how} ${call.body.length}`);
    const isGood = how === "left" || how === "closed" || (how === "whole" && call.status === 200);
    if (isGood || this.calls.length > this.#turn.client.repeats) {
      this.isDone = true;
      return;
    }
    time.after(1_000, () => this.#call(), "world");
  }
}

/** Maximum runs of a read, fewer than most worlds have. */
const readMax = 2;

/** Reads the newest runs through the API again and again, for a minute. */
export const poll = ({ connect, time }: Surroundings, everyMs: number, reads: Array<Read>): void => {
  const read = (): void => {
    const end = connect();
    if (end === undefined) return;
    let body = "";
    const reader = new HttpReader(false, {
      head: () => undefined,
      data: (bytes) => {
        body += bytes.toString("utf8");
      },
      whole: () => {
        end.close();
        const { runs } = fields(JSON.parse(body));
        if (Array.isArray(runs)) reads.push({ at: time.now, runs });
      },
    });
    end.onData = (bytes) => reader.push(bytes);
    end.onEnd = () => end.close();
    end.write(Buffer.from(`GET /recovery/api/runs?limit=${readMax} HTTP/1.1\r\nhost: 127.0.0.1:8787\r\n\r\n`));
  };
  for (let at = everyMs; at < 60_000; at += everyMs) time.after(at, read, "world");
};

/** The field of a request that offers tools, in the protocols that have a short one. */
const toolsOf = (protocol: ProtocolId, names: ReadonlyArray<string>): object => {
  const parameters = { type: "object", properties: {} };
  if (protocol === "openai-chat")
    return { tools: names.map((name) => ({ type: "function", function: { name, parameters } })) };
  if (protocol === "openai-responses") return { tools: names.map((name) => ({ type: "function", name, parameters })) };
  if (protocol === "anthropic-messages") return { tools: names.map((name) => ({ name, input_schema: parameters })) };
  if (protocol === "google-gemini") return { tools: [{ functionDeclarations: names.map((name) => ({ name })) }] };
  return {};
};

/** The second host is a named upstream. */
const prefixOf = (host: string): string => (host === "a.test" ? "" : `/u/other`);
