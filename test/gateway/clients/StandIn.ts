/**
 * Plays a turn as a client's measured rule says: what it counts while it waits, what it asks again, and what it shows.
 *
 * Nothing of the package is used here: a stand-in reads bytes on its own, as the client does.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";

/** What a client takes from one frame of a response. */
export interface Taken {
  readonly text?: string;
  /** The response is whole. */
  readonly whole?: boolean;
  readonly problem?: Problem;
  /** An event that the client does not know where it stands, and that ends it. */
  readonly broken?: boolean;
}

/** An error inside a stream. */
export interface Problem {
  /** Its type, or its code where the protocol has codes. */
  readonly code: string;
  readonly message: string;
  /** How it came: an event of its own, the response's end, or a line that is no event. */
  readonly as: "error" | "nested" | "failed" | "bare";
}

/** A frame: a comment, an event, or a line that is none. */
export interface Frame {
  readonly kind: "comment" | "event" | "bare";
  readonly json: unknown;
  readonly data: string;
}

/** What a client does about something: asks again, stops and says it, takes it for the whole, or does not look at it. */
export type Act = "again" | "stops" | "whole" | "ignores";

/** How one client behaves. */
export interface ClientRule {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of its request by the number of the request, and whether it streams. */
  readonly body: (request: number, streams: boolean) => object;
  readonly take: (frame: Frame, before: ReadonlyArray<Frame>) => Taken;
  /** What keeps it waiting. */
  readonly counts: (frame: Frame) => boolean;
  /** Most requests of a turn. */
  readonly most: number;
  readonly refused: (status: number, retry: string | undefined, message: string) => Act;
  readonly problem: (problem: Problem, before: ReadonlyArray<Frame>) => Act;
  /** A body that ends cleanly before it is whole. */
  readonly cleanEnd: Act;
  /** A connection that breaks inside a body; before a head every client asks again. */
  readonly reset: Act;
  /** A connection that breaks behind an error event makes it forget the error. */
  readonly resetEats?: boolean;
  /** Its request behind an error event does not stream, and is its last; behind a broken connection it streams again. */
  readonly lastIsWhole?: boolean;
}

/** What a user sees of a turn. */
export interface Screen {
  readonly text: string;
  /** Undefined: the turn succeeded. */
  readonly error: string | undefined;
  readonly requests: number;
}

/** How one request went. */
interface Went {
  readonly act: Act;
  readonly text: string;
  readonly error: string;
  /** An error event said it. */
  readonly said?: boolean;
}

/**
 * Plays a turn.
 *
 * @param onCount told of everything that keeps the client waiting, with the number of such things so far
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
  // A request that does not stream wants a document; the fault provider writes streams only.
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

/** Reads a body frame by frame, and says whether its connection broke. */
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

/** A value inside of JSON, by its path. */
export const at = (json: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, step) => (typeof value === "object" && value !== null ? Reflect.get(value, step) : undefined),
    json,
  );

/** The same as text; undefined for anything else. */
export const textAt = (json: unknown, ...path: ReadonlyArray<string | number>): string | undefined => {
  const value = at(json, ...path);
  return typeof value === "string" ? value : undefined;
};

const messageOf = (json: unknown): string | undefined => textAt(json, "error", "message") ?? textAt(json, "message");
