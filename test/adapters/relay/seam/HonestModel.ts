/**
 * A model server that knows its whole answer. It gives the answer, breaks at a chosen event, and honestly continues it on request, with
 * an anchor or a prefill. A test can make it answer a continuation in another way, too.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { gunzipSync } from "node:zlib";
import { Effect, type Scope } from "effect";
import { type RelayTransport, recordOf } from "../../../../src/adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../../../src/provider/Protocols.ts";
import { listening } from "../../../Servers.ts";
import { framesOf } from "../../../samples/index.ts";

/** The content of a response. */
export interface Said {
  /** Thoughts in front of the text. */
  readonly thought?: string | undefined;
  readonly text: string;
  readonly call?: { readonly name: string; readonly input: object } | undefined;
}

/** The events of a response in their wire format. */
export const written = (
  protocol: ProtocolId,
  { call, text, thought }: Said,
  { number, piece }: { readonly number: number; readonly piece: number },
): ReadonlyArray<string> =>
  framesOf(
    protocol,
    [
      ...(thought === undefined ? [] : [{ thought, signature: `sig${number}` }]),
      ...(text === "" ? [] : [{ text }]),
      ...(call === undefined ? [] : [{ call: call.name, pieces: [JSON.stringify(call.input)] }]),
    ],
    { number, piece, usage: [10 * number, 20 * number] },
  );

/** A request as it came. */
export interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
  /** The quote with which its answer must begin; undefined if it requests a new answer. */
  readonly quote: string | undefined;
  /** The assistant's last message, which is the text to continue. */
  readonly prefill: string | undefined;
}

/** The response to a request. */
export interface Reply {
  /** The events in their wire format. */
  readonly events: ReadonlyArray<string>;
  /** Number of events after which the connection is closed; by default the response is whole. */
  readonly breakAt?: number | undefined;
  /** In place of a stream. */
  readonly refused?: { readonly status: number; readonly body: string };
}

/** A model server. */
export interface ModelServer {
  readonly url: string;
  /** Every request so far. */
  readonly asked: ReadonlyArray<Asked>;
}

/** The model's response to each request, numbered from 1. */
export type Replies = (asked: Asked, number: number) => Reply;

/** Serves it on a real socket. */
export const serveModel = (reply: Replies): Effect.Effect<ModelServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked: Array<Asked> = [];
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks);
        const text = (request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body).toString();
        const one = askedBy(request.url ?? "", request.headers, text);
        asked.push(one);
        answer(response, reply(one, asked.length));
      });
    });
    return { url: `http://127.0.0.1:${yield* listening(server)}`, asked };
  });

/** A request, as a model reads it. */
export const askedBy = (path: string, headers: Asked["headers"], text: string): Asked => {
  const body: unknown = JSON.parse(text === "" ? "{}" : text);
  return { path, headers, body, quote: quoteIn(body), prefill: prefillIn(body) };
};

/** The last message's text between its marks. */
const quoteIn = (body: unknown): string | undefined => {
  const last = textsIn(lastOf(body)).join("");
  return /<(cut\d*)>([\s\S]*)<\/\1>/.exec(last)?.[2];
};

const prefillIn = (body: unknown): string | undefined => {
  const last = lastOf(body);
  const role = typeof last === "object" && last !== null && "role" in last ? last.role : undefined;
  return role === "assistant" || role === "model" ? textsIn(last).join("") : undefined;
};

const lastOf = (body: unknown): unknown => {
  const { contents, input, messages, request } = body as Readonly<Record<string, unknown>>;
  // Code Assist wraps a request of Gemini.
  if (typeof request === "object" && request !== null) return lastOf(request);
  const list = messages ?? input ?? contents;
  return Array.isArray(list) ? list.at(-1) : list;
};

/** Every text of a message, in order. */
const textsIn = (message: unknown): ReadonlyArray<string> => {
  if (typeof message === "string") return [message];
  if (Array.isArray(message)) return message.flatMap(textsIn);
  if (typeof message !== "object" || message === null) return [];
  const { content, parts, text } = message as { content?: unknown; parts?: unknown; text?: unknown };
  return textsIn(content ?? parts ?? text ?? []);
};

const answer = (response: ServerResponse, { breakAt, events, refused }: Reply): void => {
  if (refused !== undefined) {
    response.writeHead(refused.status, { "content-type": "application/json" }).end(refused.body);
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "x-reply": `${events.length}` });
  response.flushHeaders();
  const sent = events.slice(0, breakAt).join("");
  if (breakAt === undefined) {
    response.end(sent);
    return;
  }
  // A reset would take with it what its reader has not read: the connection ends in the middle of the body.
  response.write(sent, () => response.socket?.destroy());
};

/** An honest model's text for a request: its whole answer, or the rest from the quote on, or after the prefill. */
export const honestly = (answer: Said, { prefill, quote }: Pick<Asked, "prefill" | "quote">): Said => {
  if (quote !== undefined) {
    const from = answer.text.indexOf(quote);
    if (from === -1) throw new Error(`the quote is not of the answer: ${JSON.stringify(quote)}`);
    return { ...answer, text: answer.text.slice(from) };
  }
  if (prefill === undefined || prefill === "") return answer;
  if (!answer.text.startsWith(prefill)) throw new Error(`the prefill is not of the answer: ${JSON.stringify(prefill)}`);
  return { ...answer, thought: undefined, text: answer.text.slice(prefill.length) };
};

/**
 * A model that answers honestly and breaks: the first response after `breaks[0]` events, the second after `breaks[1]`, and so on.
 *
 * @param first recorded events of a new response, if there are any
 */
export const honest =
  (
    protocol: ProtocolId,
    answer: Said,
    breaks: ReadonlyArray<number | undefined>,
    first?: ReadonlyArray<string>,
  ): Replies =>
  (asked, number) => {
    const anew = asked.quote === undefined && asked.prefill === undefined;
    const events =
      anew && first !== undefined ? first : written(protocol, honestly(answer, asked), { number, piece: 7 });
    return { events, breakAt: breaks[number - 1] };
  };

/** The same model without a socket, with a separate chunk for each event. */
export const transportOf = (reply: Replies): { readonly transport: RelayTransport; readonly asked: Array<Asked> } => {
  const asked: Array<Asked> = [];
  const open: RelayTransport["open"] = (request, reporters) => {
    const body = typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body);
    const { pathname, search } = new URL(request.url);
    const one = askedBy(`${pathname}${search}`, recordOf(request.headers), body);
    asked.push(one);
    const { breakAt, events, refused } = reply(one, asked.length);
    reporters.delivery("ambiguous");
    const json = [["content-type", "application/json"]] as const;
    const stream = [
      ["content-type", "text/event-stream"],
      ["x-reply", `${asked.length}`],
    ] as const;
    const chunks = refused === undefined ? [...events.slice(0, breakAt)] : [refused.body];
    return {
      head: () =>
        Promise.resolve({
          status: refused?.status ?? 200,
          statusText: "",
          headers: refused === undefined ? stream : json,
        }),
      read: () => {
        const chunk = chunks.shift();
        if (chunk !== undefined) return Promise.resolve([new TextEncoder().encode(chunk)]);
        if (refused !== undefined || breakAt === undefined) return Promise.resolve(undefined);
        return Promise.reject(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
      },
      abort: () => undefined,
    };
  };
  return { transport: { open }, asked };
};
