/**
 * Helpers of the routes' tests: a gateway before two servers, each of which gives the test's answers and records its requests.
 */
import type { ServerResponse } from "node:http";
import { Effect, Redacted, type Scope } from "effect";
import type { FinishFailure, RouteSettings } from "../../../src/gateway/config/RouteSettings.ts";
import type { UpstreamSettings } from "../../../src/gateway/config/UpstreamSettings.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { bodies, type Fronted, front, paths, send, serverOf } from "../GatewayCases.ts";

export const token = "a-token-of-24-characters";
export const operatorsKey = "operator-key-of-the-second";

/** A whole answer of each protocol as a stream, with a text. */
export const whole: Readonly<Record<ProtocolId, (text: string) => string>> = {
  "openai-chat": (text) =>
    `${[
      { id: "c1", choices: [{ index: 0, delta: { role: "assistant", content: text } }] },
      { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    ]
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .join("")}data: [DONE]\n\n`,
  "openai-responses": (text) => {
    const item = { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text }] };
    return [
      { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
      { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "msg_1", delta: text },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: { id: "resp_1", status: "completed", output: [item] } },
    ]
      .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join("");
  },
  "anthropic-messages": (text) => thought(text, undefined),
  "google-gemini": (text) =>
    `data: ${JSON.stringify({ candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason: "STOP" }] })}\n\n`,
};

/** A whole answer of Anthropic, with thinking that is signed in two pieces where a signature is given. */
export const thought = (text: string, signature: string | undefined): string => {
  const half = Math.ceil((signature ?? "").length / 2);
  const pieces = signature === undefined ? [] : [signature.slice(0, half), signature.slice(half)];
  const thinking =
    signature === undefined
      ? []
      : [
          { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
          { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
          ...pieces.map((piece) => ({
            ...{ type: "content_block_delta", index: 0 },
            delta: { type: "signature_delta", signature: piece },
          })),
          { type: "content_block_stop", index: 0 },
        ];
  const index = thinking.length === 0 ? 0 : 1;
  return [
    { type: "message_start", message: { id: "msg_1", role: "assistant", content: [], usage: { input_tokens: 1 } } },
    ...thinking,
    { type: "content_block_start", index, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
};

/** A request to a server. */
export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>;
  readonly body: string;
}

export type Answering = (response: ServerResponse, asked: Asked) => void;

/** Answers with a stream. */
export const streaming =
  (text: string): Answering =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(text);
  };

/** Answers with a status and an error in the words of OpenAI and Anthropic. */
export const failing =
  (status: number, error: object = { type: "error_of_a_test", message: "no" }): Answering =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ type: "error", error }));
  };

/** Answers nothing, and keeps the connection. */
export const silent: Answering = () => undefined;

/** Breaks the connection before any byte. */
export const dying: Answering = (response) => void response.socket?.resetAndDestroy();

/** A server and what it was asked; `answers` may be replaced while it runs. */
export interface Recording {
  readonly url: string;
  readonly asked: Array<Asked>;
  answers: Answering;
}

export const recording = (answers: Answering): Effect.Effect<Recording, never, Scope.Scope> =>
  Effect.gen(function* () {
    const it: { asked: Array<Asked>; answers: Answering } = { asked: [], answers };
    const url = yield* serverOf((request, response) => {
      const chunks: Array<Buffer> = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const asked = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
        it.asked.push(asked);
        it.answers(response, asked);
      });
    });
    return Object.assign(it, { url });
  });

/** The address of a server that is gone. No test listens on this host: a port of the usual one may be another test's by now. */
export const gone: Effect.Effect<string> = Effect.map(Effect.scoped(serverOf(() => undefined)), (url) =>
  url.replace("127.0.0.1", "127.0.0.3"),
);

/** Changes of the usual pair of servers. */
export interface Paired {
  /** Of the route's upstream. */
  readonly second?: Partial<UpstreamSettings>;
  /** The second upstreams have no credential of their own. */
  readonly keyless?: boolean;
  /** Of the first upstreams. */
  readonly first?: Partial<UpstreamSettings>;
  readonly route?: Partial<RouteSettings>;
  readonly movesOn?: ReadonlyArray<FinishFailure>;
  readonly program?: GatewayProgram;
}

/** The name of the vendor's upstream of each protocol, and the path after its address. */
const firsts = [
  { name: "openai", version: "/v1" },
  { name: "anthropic", version: "" },
  { name: "gemini", version: "" },
] as const;

/**
 * A gateway whose three upstreams lead to one server and have a further route, `second`, to another one with the operator's credential.
 * Each vendor's own second upstream is called after it (`second`, `second-anthropic`, `second-gemini`).
 */
export const paired = (
  firstUrl: string,
  secondUrl: string,
  { first, keyless = false, movesOn = [], program, route, second }: Paired = {},
): Effect.Effect<Fronted, never, Scope.Scope> => {
  const key = keyless ? {} : { credential: Redacted.make(operatorsKey) };
  const named = firsts.flatMap(
    ({ name, version }): ReadonlyArray<UpstreamSettings> => [
      { name, url: `${firstUrl}${version}`, headers: [], ...first },
      { ...{ name: secondOf(name), url: `${secondUrl}${version}`, headers: [] }, ...key, ...second },
    ],
  );
  const routes = Object.fromEntries(
    firsts.map(({ name }) => [
      name,
      {
        movesOn,
        routes: [
          {
            ...{ id: secondOf(name), upstream: secondOf(name) },
            ...{ set: { headers: [], body: [] }, drop: { headers: [], body: [] }, ...route },
          },
        ],
      },
    ]),
  );
  return front(firstUrl, { named, routes, token, ...program });
};

/** The name of the second upstream of a vendor's. */
export const secondOf = (name: string): string => (name === "openai" ? "second" : `second-${name}`);

/** The first and the second upstream of a protocol's requests. */
export const upstreamsOf = (protocol: ProtocolId): readonly [first: string, second: string] => {
  const name = protocol === "anthropic-messages" ? "anthropic" : protocol === "google-gemini" ? "gemini" : "openai";
  return [name, secondOf(name)];
};

/** A body that nothing binds: Responses are kept by default. */
export const freeBody = (protocol: ProtocolId): object =>
  protocol === "openai-responses" ? { ...bodies[protocol], store: false } : bodies[protocol];

/** Asks through the gateway with its token and without a credential. */
export const ask = (
  url: string,
  protocol: ProtocolId,
  {
    body = freeBody(protocol),
    headers = {},
  }: { readonly body?: object | string; readonly headers?: Record<string, string> } = {},
) =>
  Effect.promise(() =>
    send(`${url}${paths[protocol]}`, {
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: { "content-type": "application/json", "x-recovery-token": token, ...headers },
    }),
  );

/** The route that a response names. */
export const routeIn = (got: { readonly headers: Readonly<Record<string, unknown>> }): unknown =>
  got.headers["x-recovery-route"];
