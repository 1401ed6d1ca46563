/** A provider of every protocol, which answers each request by its script and keeps what it saw. */
import { framesOf, ids, type Said, samples } from "../../samples/index.ts";
import type { Asked } from "./History.ts";
import { HttpReader, type Message } from "./HttpReader.ts";
import type { End, Host } from "./VirtualNet.ts";
import type { VirtualTime } from "./VirtualTime.ts";
import { type Answer, type Turn, type World, wholeAnswer } from "./World.ts";

/** The mark by which the provider finds the turn of a request. */
export const markOf = (turn: number): string => `turn-${turn}.`;

/** The text of an answer. Its words name the turn, the request and their place, so that no two texts are alike. */
export const textOf = (turn: number, number: number, words: number): string =>
  Array.from({ length: words }, (_, at) => `t${turn}r${number}w${at}${at % 7 === 6 ? "." : ""}`).join(" ");

/** The text of a model that was asked to continue after a quoted end of its text. */
const continued = (whole: string, quote: string, way: Turn["model"]): string => {
  const at = whole.indexOf(quote);
  if (at < 0 || way === "anew") return whole;
  const rest = whole.slice(at + quote.length);
  const shown = whole.slice(0, at + quote.length);
  const sentence = shown.slice(shown.lastIndexOf(". ") + 2);
  // A few words could be meant twice.
  return way === "honest" || sentence.length < 40 || sentence === shown.slice(1)
    ? quote + rest
    : quote + sentence + rest;
};

/** The title of every page for people. No record and no log line may keep it. */
export const pageTitle = "Secret title of a page";

/** A document as some servers wrap it: with a code and a message of success. */
export const documentOf = (turn: number): string =>
  `{"code":200,"msg":"ok","data":[{"embedding":[0.5,${turn}]}],"object":"list"}`;

type Stream = Extract<Answer, { readonly kind: "stream" }>;

/** The frames of the whole response. */
const framesFor = (
  turn: Turn,
  at: number,
  number: number,
  answer: Answer,
  quote: string | undefined,
): ReadonlyArray<string> => {
  if (answer.kind !== "stream") return [];
  const { piece, says, words } = answer;
  const { frame, has } = samples[turn.protocol];
  const text: Said = { text: textOf(at, answer.isSame ? 0 : number, words) };
  const ended = { piece, number: number + 1 };
  if (quote !== undefined) {
    // The variant and the length of the text that was cut.
    const variant = Number(/r(\d+)w/.exec(quote)?.[1] ?? 0);
    const before = turn.answers[variant] ?? answer;
    const whole = textOf(at, variant, before.kind === "stream" ? before.words : words);
    const frames = framesOf(turn.protocol, [{ text: continued(whole, quote, turn.model) }], ended);
    return turn.protocol === "google-gemini" ? frames.toSpliced(-1, 0, frame(usageOnly)) : frames;
  }
  const said = (): ReadonlyArray<Said> => {
    if (says === "thoughts" && has.thoughts) return [{ thought: text.text }];
    if (says === "blank") return [{ text: " \n" }];
    if (says === "call" && has.calls !== "none") return [text, { call: "run", pieces: ['{"cmd":', '"ls"}'] }];
    if (says === "cut_call" && ["openai-chat", "anthropic-messages"].includes(turn.protocol))
      return [text, { call: "run", pieces: ['{"cmd":"l'] }];
    return [text];
  };
  if (says === "drift" && turn.protocol === "openai-chat")
    return [
      ...framesOf("openai-chat", [text], { ...ended, cut: true }),
      ...driftingCall(number).map(frame),
      frame("[DONE]"),
    ];
  return framesOf(turn.protocol, said(), ended);
};

/** A chunk of Gemini's without candidates. */
const usageOnly = { usageMetadata: { promptTokenCount: 3, totalTokenCount: 9 }, modelVersion: "m" };

/** The end of the text that a request quotes between marks. */
const quoteIn = (body: string): string | undefined => {
  const marked = /<(cut\d*)>(.*?)<\/\1>/s.exec(body)?.[2];
  return marked === undefined ? undefined : String(JSON.parse(`"${marked}"`));
};

/** The chunks of a call of which the rest of the arguments comes under the next index. */
const driftingCall = (number: number): ReadonlyArray<object> => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...{ id: `chatcmpl-${number + 1}`, object: "chat.completion.chunk", created: 1, model: "m" },
    choices: [{ index: 0, delta, finish_reason }],
  });
  const piece = (index: number, text: string) => chunk({ tool_calls: [{ index, function: { arguments: text } }] });
  const begun = { index: 0, id: "call_d", type: "function", function: { name: "run", arguments: "" } };
  return [chunk({ tool_calls: [begun] }), piece(0, '{"cm'), piece(1, 'd":"ls"}'), chunk({}, "tool_calls")];
};

/** The provider of a world. */
export class Provider {
  readonly asked: Array<Asked> = [];
  readonly #world: World;
  readonly #time: VirtualTime;
  readonly #log: (line: string) => void;
  readonly #hostOf: (name: string) => Host | undefined;

  /** @param hostOf finds a host, which may go away after an answer */
  constructor(
    world: World,
    time: VirtualTime,
    log: (line: string) => void,
    hostOf: (name: string) => Host | undefined,
  ) {
    this.#hostOf = hostOf;
    this.#world = world;
    this.#time = time;
    this.#log = log;
  }

  /** Serves a connection. */
  serve(host: string, end: End): void {
    let message: Message | undefined;
    let body: Array<Buffer> = [];
    let current: Playing | undefined;
    const reader = new HttpReader(true, {
      head: (head) => {
        message = head;
        body = [];
      },
      data: (bytes) => void body.push(bytes),
      whole: () => {
        const asked = this.#take(host, Buffer.concat(body).toString());
        if (asked === undefined) return;
        const turn = this.#world.turns[asked.turn];
        const isLast = asked.number === (turn?.answers.length ?? 0) - 1;
        const onOver = () => {
          if (isLast && turn?.thenAway != null) this.#hostOf(host)?.goAway(turn.thenAway);
        };
        const document = turn?.isDocument === true ? documentOf(asked.turn) : undefined;
        current = new Playing(asked, end, this.#time, { line: message?.line ?? "", document, onOver });
      },
    });
    end.onData = (bytes) => reader.push(bytes);
    end.onEnd = () => {
      current?.stop();
      end.close();
    };
    end.onReset = () => current?.stop();
  }

  /** Finds the turn of a request. A response of which the last event is missing exists only in Anthropic's protocol. */
  #take(host: string, body: string): Asked | undefined {
    const turn = Number(/turn-(\d+)\./.exec(body)?.[1] ?? -1);
    const script = this.#world.turns[turn];
    if (script === undefined) return undefined;
    const number = this.asked.filter((it) => it.turn === turn).length;
    const given = script.answers[number] ?? wholeAnswer;
    const isOther = given.kind === "stream" && given.end === "pings" && script.protocol !== "anthropic-messages";
    const answer: Answer = isOther ? { ...given, end: "clean" } : given;
    const quote = quoteIn(body);
    const asked: Asked = {
      ...{ turn, number, host, answer, at: this.#time.now },
      frames: framesFor(script, turn, number, answer, quote),
      quote,
      headAt: undefined,
      written: 0,
      over: undefined,
    };
    this.asked.push(asked);
    this.#log(`asked ${turn}.${number} at ${host}: ${answer.kind} ${body.length}`);
    return asked;
  }
}

/** The parts of a request that its response depends on. */
interface Request {
  readonly line: string;
  readonly document: string | undefined;
  readonly onOver: () => void;
}

/** A response as it is written. */
class Playing {
  readonly #asked: Asked;
  readonly #end: End;
  readonly #time: VirtualTime;
  readonly #request: Request;
  #isOver = false;

  constructor(asked: Asked, end: End, time: VirtualTime, request: Request) {
    this.#asked = asked;
    this.#end = end;
    this.#time = time;
    this.#request = request;
    const { answer } = asked;
    if (answer.kind === "silent") return;
    this.#after(answer.headMs, () => {
      if (answer.kind === "no_head") this.#break(answer.how === "reset");
      else if (answer.kind === "refusal") this.#refuse(answer);
      else if (answer.kind === "page") this.#page(answer.status);
      else if (request.document !== undefined) this.#send(200, "application/json", request.document, []);
      else this.#stream(answer);
    });
  }

  /** The gateway closed the connection. */
  stop(): void {
    this.#finish("gateway");
  }

  #after(ms: number, run: () => void): void {
    this.#time.after(
      ms,
      () => {
        if (!this.#isOver) run();
      },
      "world",
    );
  }

  #finish(by: "script" | "gateway"): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#asked.over = { at: this.#time.now, by };
    this.#request.onOver();
  }

  #break(resets: boolean): void {
    this.#finish("script");
    if (resets) this.#end.reset();
    else this.#end.close();
  }

  #refuse({ retryAfterS, status }: Extract<Answer, { kind: "refusal" }>): void {
    const { document } = samples[protocolOf(this.#request.line)].refusal("Please come back later");
    const headers = retryAfterS === null ? [] : [`retry-after: ${retryAfterS}`];
    this.#send(status, "application/json", JSON.stringify(document), headers);
  }

  #page(status: number): void {
    const page = `<!DOCTYPE html><html><head><title>${pageTitle}</title></head><body>Sign in</body></html>`;
    this.#send(status, "text/html", page, []);
  }

  #send(status: number, type: string, body: string, more: ReadonlyArray<string>): void {
    const headers = [`content-type: ${type}`, `content-length: ${Buffer.byteLength(body)}`, ...more];
    this.#asked.headAt = this.#time.now;
    this.#end.write(Buffer.from(`HTTP/1.1 ${status} Sent\r\n${headers.join("\r\n")}\r\n\r\n${body}`));
    this.#finish("script");
  }

  #stream(answer: Stream): void {
    const { isChunked } = answer;
    const isLines = /\/api\/(?:chat|generate)/.test(this.#request.line);
    this.#asked.headAt = this.#time.now;
    const framing = isChunked ? "transfer-encoding: chunked" : "connection: close";
    const type = isLines ? "application/x-ndjson" : "text/event-stream";
    this.#end.write(Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${framing}\r\n\r\n`));
    this.#next(answer, 0, this.#limitOf(answer));
  }

  /** The bytes of the response that are written before its end, without the form of chunks. */
  #limitOf({ end, share }: Stream): number {
    const { frames } = this.#asked;
    const bytes = Buffer.byteLength(frames.join(""));
    if (end === "pings") return bytes - Buffer.byteLength(frames.at(-1) ?? "");
    return end === "whole" || end === "open" ? bytes : Math.floor(bytes * share * 0.98);
  }

  #next(answer: Stream, at: number, left: number): void {
    const frame = this.#asked.frames[at];
    const bytes = Buffer.from(frame ?? "");
    if (frame === undefined || bytes.byteLength > left) {
      if (left > 0 && frame !== undefined && answer.end !== "error" && answer.end !== "clean")
        this.#write(bytes.subarray(0, left), answer.isChunked);
      return void this.#endStream(answer);
    }
    this.#write(bytes, answer.isChunked);
    this.#asked.written = at + 1;
    if (answer.gapMs === 0) this.#next(answer, at + 1, left - bytes.byteLength);
    else this.#after(answer.gapMs, () => this.#next(answer, at + 1, left - bytes.byteLength));
  }

  #write(bytes: Buffer, isChunked: boolean): void {
    if (!isChunked) return void this.#end.write(bytes);
    const size = Buffer.from(`${bytes.byteLength.toString(16)}\r\n`);
    this.#end.write(Buffer.concat([size, bytes, Buffer.from("\r\n")]));
  }

  #endStream(answer: Stream): void {
    const { end, isChunked } = answer;
    if (end === "stall" || end === "open") return;
    if (end === "pings") return void this.#ping(isChunked, 30);
    if (end === "reset" || end === "cut") return void this.#break(end === "reset");
    if (end === "error") {
      const { errorEvent, frame, refusal } = samples[protocolOf(this.#request.line)];
      this.#write(Buffer.from(frame(errorEvent(refusal("Something failed here").document))), isChunked);
    }
    this.#finish("script");
    if (isChunked) this.#end.write(Buffer.from("0\r\n\r\n"));
    else this.#end.close();
  }

  /** Writes a ping each second, and ends the body cleanly after the last. */
  #ping(isChunked: boolean, left: number): void {
    if (left > 0) {
      this.#write(Buffer.from('event: ping\ndata: {"type":"ping"}\n\n'), isChunked);
      return void this.#after(1_000, () => this.#ping(isChunked, left - 1));
    }
    this.#finish("script");
    if (isChunked) this.#end.write(Buffer.from("0\r\n\r\n"));
    else this.#end.close();
  }
}

const protocolOf = (line: string) => {
  const path = line.split(" ")[1] ?? "";
  return ids.find((id) => path.split("?")[0]?.endsWith(samples[id].path.split("?")[0] ?? "") === true) ?? "openai-chat";
};
