/**
 * What the tests of attaching share: a provider that sends a response event by event as it is told, clients that go away, and what
 * the gateway says of the runs that it keeps.
 */
import { type Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { Context, Effect, type Scope } from "effect";
import { type AttachableRun, Traffic } from "../../../src/gateway/api/Traffic.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { Answers } from "../../../src/testing/index.ts";
import { eventually, polled } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, type Fronted, front, paths, type Sending } from "../GatewayCases.ts";

/** Long enough that no test sees it pass. */
export const longMs = 60_000;

/** A response that a provider is sending. */
export interface Sent {
  readonly response: ServerResponse;
  /** Sends the next events. */
  readonly send: (count: number) => void;
  /** Sends the rest, and ends. */
  readonly finish: () => void;
  /** The gateway has closed its connection. */
  readonly isClosed: () => boolean;
}

/** A provider whose responses come event by event. */
export interface Provider {
  /** The responses that were asked for, in order. */
  readonly asked: ReadonlyArray<Sent>;
  readonly nth: (index: number) => Effect.Effect<Sent>;
}

/** Such a provider, and a gateway in front of it. */
export interface Stage extends Fronted, Provider {
  /** Waits until the newest run that may be attached to is in a state. */
  readonly lingers: (state: "read" | "left" | "ended") => Effect.Effect<string>;
  readonly attachable: Effect.Effect<ReadonlyArray<AttachableRun>>;
}

/** The events of a response: reasoning, text and a call. */
export const eventsOf = (protocol: ProtocolId): ReadonlyArray<Buffer> =>
  Answers.render(protocol, 1, { content: [{ reasoning: 2 }, { text: 4 }, { tool: "pay" }] }).map(({ frame }) =>
    Buffer.from(frame),
  );

/** The events of every response, or those of each by its number. */
type Said = ReadonlyArray<Buffer> | ((nth: number) => ReadonlyArray<Buffer>);

/** Starts a provider; its address stands beside it. */
export const providerOf = (said: Said): Effect.Effect<Provider & { readonly at: string }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked: Array<Sent> = [];
    const at = yield* serverOf((request, response) => {
      request.resume();
      const events = typeof said === "function" ? said(asked.length) : said;
      let next = 0;
      // Only lines of JSON begin with a brace.
      const type = events[0]?.[0] === "{".charCodeAt(0) ? "application/x-ndjson" : "text/event-stream";
      let closed = false;
      response.on("close", () => {
        closed = true;
      });
      const send = (count: number) => {
        if (!response.headersSent) response.writeHead(200, { "content-type": type });
        for (const event of events.slice(next, next + count)) response.write(event);
        next += count;
      };
      asked.push({
        response,
        send,
        finish: () => {
          send(events.length);
          response.end();
        },
        isClosed: () => closed,
      });
    });
    return { at, asked, nth: (index) => eventually(() => asked[index]) };
  });

/** Sets a stage. */
export const stage = (said: Said, program: GatewayProgram = {}): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { asked, at, nth } = yield* providerOf(said);
    const fronted = yield* front(at, { lingerMs: longMs, ...program });
    const { status } = Context.get(fronted.services, Traffic);
    const attachable = Effect.map(status, (it) => it.attachable ?? []);
    const lingers = (state: string): Effect.Effect<string> =>
      polled(
        Effect.map(attachable, (runs) => {
          const last = runs.at(-1);
          return last?.state === state ? last.run_id : undefined;
        }),
      );
    return { ...fronted, asked, nth, lingers, attachable };
  });

/** A client that can go away. */
export interface Client {
  readonly got: () => Buffer;
  readonly head: Promise<IncomingMessage>;
  readonly leave: () => void;
  /** What it had when its response ended or broke, and whether it was whole. */
  readonly over: Promise<{
    readonly body: Buffer;
    readonly broken: boolean;
    readonly head: IncomingMessage | undefined;
  }>;
}

/** Sends a request over a connection of its own, or over that of an agent. */
export const clientOf = (
  url: string,
  {
    agent,
    body,
    headers,
    method = "POST",
    reads = true,
  }: Sending & { readonly agent?: Agent; readonly reads?: boolean },
): Client => {
  const request = httpRequest(url, { method, agent: agent ?? false, headers: headers as Record<string, string> });
  const chunks: Array<Buffer> = [];
  const got = () => Buffer.concat(chunks);
  const head = new Promise<IncomingMessage>((resolve) => request.on("response", resolve));
  const over = new Promise<Awaited<Client["over"]>>((resolve) => {
    request.on("error", () => resolve({ body: got(), broken: true, head: undefined }));
    request.on("response", (response) => {
      // In this very step: what it reads before, makes the system keep the more for it.
      if (!reads) response.pause();
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", () => undefined);
      response.on("close", () => resolve({ body: got(), broken: !response.complete, head: response }));
    });
  });
  request.end(body);
  return { got, head, leave: () => void request.destroy(), over };
};

/** Asks for a protocol's response. */
export const ask = (
  { url }: Pick<Stage, "url">,
  protocol: ProtocolId,
  headers: Record<string, string> = {},
  body: string = JSON.stringify(bodies[protocol]),
): Client =>
  clientOf(`${url}${paths[protocol]}`, { body, headers: { "content-type": "application/json", ...headers } });

/** Asks for the response of a run, from a byte on. */
export const attach = (
  { url }: Pick<Stage, "url">,
  run: string,
  headers: Record<string, string> = {},
  method = "GET",
): Client => clientOf(`${url}/recovery/streams/${run}`, { method, headers });

/** The word by which an SDK says that it repeats a request. */
export const again = { "x-stainless-retry-count": "1" } as const;

/** Everything of a client's response. */
export const whole = ({ over }: Client) => Effect.promise(() => over);

/** The run of a client's response. */
export const runOf = ({ head }: Client): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => head),
    ({ headers }) => String(headers["x-recovery-run"]),
  );
