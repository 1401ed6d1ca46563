/**
 * Plays a turn by a client's measured rule: the events that keep it waiting, the failures that it retries, and the text it shows.
 *
 * It uses nothing of the package: a stand-in reads bytes independently, like the client.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { textAt } from "../../samples/Json.ts";

/** The content that a client reads from one frame of a response. */
export interface Taken {
  readonly text?: string;
  /** True if the response is whole. */
  readonly whole?: boolean;
  readonly problem?: Problem;
  /** True for an event that the client does not know at this position, and that ends it. */
  readonly broken?: boolean;
}

export interface Problem {
  /** Its type, or its code if the protocol has codes. */
  readonly code: string;
  readonly message: string;
  /** Its form: a separate event, the response's end, or a line that is no event. */
  readonly as: "error" | "nested" | "failed" | "bare";
}

/** A frame: a comment, an event, or any other line. */
export interface Frame {
  readonly kind: "comment" | "event" | "bare";
  readonly json: unknown;
  readonly data: string;
}

/** A client's reaction: it retries, stops with an error, accepts the response as whole, or ignores the frame. */
export type Act = "again" | "stops" | "whole" | "ignores";

/** The rule of one client. */
export interface ClientRule {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of its request, by the number of the request, and for a stream or a document. */
  readonly body: (request: number, streams: boolean) => object;
  readonly take: (frame: Frame, before: ReadonlyArray<Frame>) => Taken;
  /** Returns true for a frame that keeps it waiting. */
  readonly counts: (frame: Frame) => boolean;
  /** Maximum requests of a turn. */
  readonly most: number;
  readonly refused: (status: number, retry: string | undefined, message: string) => Act;
  readonly problem: (problem: Problem, before: ReadonlyArray<Frame>) => Act;
  /** Reaction to a body that ends cleanly before it is whole. */
  readonly cleanEnd: Act;
  /** Reaction to a connection that breaks inside a body; before a head every client retries. */
  readonly reset: Act;
  /** True if a broken connection after an error event makes it forget the error. */
  readonly resetEats?: boolean;
  /** True if its request after an error event is a last one without streaming. After a broken connection it streams again. */
  readonly lastIsWhole?: boolean;
}

/** The result of a turn as the user sees it. */
export interface Screen {
  readonly text: string;
  /** Undefined if the turn succeeded. */
  readonly error: string | undefined;
  readonly requests: number;
}

/** The result of one request. */
interface Went {
  readonly act: Act;
  readonly text: string;
  readonly error: string;
  /** True if an error event caused it. */
  readonly said?: boolean;
}

/**
 * Plays a turn.
 *
 * @param onCount called with the number of frames so far that keep the client waiting
 */
export const play = async (
  rule: ClientRule,
  url: string,
  onCount: (count: number) => void = () => {},
): Promise<Screen> => {
  let text = "";
  let said = false;
  for (let request = 1; ; request += 1) {
    const streams = !(said && rule.lastIsWhole === true);
    const went = await ask(rule, url, request, streams, onCount);
    text += went.text;
    if (went.act === "whole") return { text, error: undefined, requests: request };
    const last = request >= rule.most || !streams;
    said ||= went.said === true;
    if (went.act === "stops" || last) return { text, error: went.error, requests: request };
  }
};

const ask = (
  rule: ClientRule,
  url: string,
  number: number,
  streams: boolean,
  onCount: (count: number) => void,
): Promise<Went> =>
  new Promise((resolve) => {
    const headers = { "content-type": "application/json", authorization: "Bearer not-a-key", ...rule.headers };
    const request = httpRequest(`${url}${rule.path}`, { method: "POST", headers, agent: false });
    request.on("error", (error) => resolve({ act: "again", text: "", error: error.message }));
    request.on("response", (response) => {
      void (
        response.statusCode === 200 ? readStream(rule, response, streams, onCount) : readRefusal(rule, response)
      ).then(resolve);
    });
    request.end(JSON.stringify(rule.body(number, streams)));
  });

const readRefusal = async (rule: ClientRule, response: IncomingMessage): Promise<Went> => {
  const { text } = await collect(response, () => {});
  const status = response.statusCode ?? 0;
  const retry = response.headers["x-should-retry"];
  const error = `${status} ${messageOf(parsed(text)) ?? text}`;
  return { act: rule.refused(status, typeof retry === "string" ? retry : undefined, error), text: "", error };
};

const readStream = async (
  rule: ClientRule,
  response: IncomingMessage,
  streams: boolean,
  onCount: (count: number) => void,
): Promise<Went> => {
  const before: Array<Frame> = [];
  let counted = 0;
  let text = "";
  let whole = false;
  let failed: { readonly act: Act; readonly message: string } | undefined;
  const { broken } = await collect(response, (frame) => {
    if (rule.counts(frame)) onCount(++counted);
    const taken = rule.take(frame, before);
    if (!whole && failed === undefined) text += taken.text ?? "";
    whole ||= taken.whole === true;
    const act = taken.problem === undefined ? "ignores" : rule.problem(taken.problem, before);
    if (act !== "ignores") failed ??= { act, message: taken.problem?.message ?? "" };
    if (taken.broken === true) failed ??= { act: "again", message: "unexpected event" };
    before.push(frame);
  });
  // A request that does not stream expects a document, but the fault provider only writes streams.
  if (!streams) return { act: "stops", text: "", error: "not a document" };
  if (failed !== undefined) {
    const eaten = broken && rule.resetEats === true;
    return {
      act: eaten ? rule.reset : failed.act,
      text,
      error: eaten ? "connection reset" : failed.message,
      said: !eaten,
    };
  }
  if (whole) return { act: "whole", text, error: "" };
  return { act: broken ? rule.reset : rule.cleanEnd, text, error: broken ? "connection reset" : "stream ended" };
};

/** Reads a body frame by frame, and returns true if its connection broke. */
const collect = (
  response: IncomingMessage,
  onFrame: (frame: Frame) => void,
): Promise<{ readonly text: string; readonly broken: boolean }> =>
  new Promise((resolve) => {
    let text = "";
    let rest = "";
    let data: Array<string> = [];
    const line = (it: string) => {
      if (it.startsWith(":")) onFrame({ kind: "comment", json: undefined, data: it });
      else if (it.startsWith("data:")) data.push(it.slice("data:".length).trim());
      else if (it.startsWith("{")) onFrame({ kind: "bare", json: parsed(it), data: it });
      else if (it === "" && data.length > 0) {
        const joined = data.join("\n");
        data = [];
        onFrame({ kind: "event", json: parsed(joined), data: joined });
      }
    };
    response.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      const lines = (rest + more).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const it of lines) line(it);
    });
    response.on("error", () => {});
    response.on("close", () => resolve({ text, broken: !response.complete }));
  });

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // `[DONE]`, or a page for people
  }
};

const messageOf = (json: unknown): string | undefined => textAt(json, "error", "message") ?? textAt(json, "message");
