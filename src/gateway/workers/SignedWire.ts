/**
 * Sends signed HTTP requests to other processes on the same store, and serves the requests that they send. A process is reached over its
 * Unix socket (`WorkerSockets`) or at its advertised address (`OtherGateways`). Each of these two kinds of connection has its own wire.
 *
 * Only queries and hops are served. The signature (`HopSignature`) includes the receiver's address, so that a request to one gateway is
 * invalid at another.
 *
 * To add a query, define it with `query` next to its subject, send it with `ask`, and answer it with `serveQuery`. A value that does not
 * match the schema is dropped, so the limits in a schema bound everything that is received (L11).
 */
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import { request as httpsRequest } from "node:https";
import { Clock, Effect, FiberSet, Result, Schema, type Scope } from "effect";
import { HopSignature, signatureHeader } from "./HopSignature.ts";
import type { sharedKey } from "./SharedKey.ts";

/** Header of a query: its name and value, as JSON. */
const askHeader = "x-recovery-ask";

/** Header of a request for the run of another process. */
export const hopHeader = "x-recovery-hop";

/** Path of all requests between processes. */
export const hopPath = "/recovery/hop";

/**
 * Maximum size of a head between two processes, in bytes. It is large enough for the head of any run, even if every byte is
 * percent-encoded.
 */
export const hopHeadBytesMax = 1024 * 1024;

/** Maximum size of a reply, in bytes. The metrics of a worker are the longest replies. */
const replyBytesMax = 64 * 1024 * 1024;

const replyMsDefault = 2_000;

/**
 * Time without data after which the system probes a connection to another machine, in milliseconds. A machine that has died is detected
 * soon after.
 */
const probeMs = 10_000;

/** A schema whose encoded form is JSON. */
type JsonSchema<A> = Schema.Codec<A, unknown>;

/** A query that one process sends to another. */
export interface Query<A, B> {
  readonly name: string;
  readonly asked: JsonSchema<A>;
  readonly replied: JsonSchema<B>;
  readonly replyMs: number;
}

/** Defines a query. The name must be unique. */
export const query = <A, B>(
  name: string,
  asked: Schema.Codec<A, unknown>,
  replied: Schema.Codec<B, unknown>,
  replyMs = replyMsDefault,
): Query<A, B> => ({ name, asked: Schema.toCodecJson(asked), replied: Schema.toCodecJson(replied), replyMs });

/**
 * A query was not answered. `gone`: the process does not run at present. `late`: the reply did not arrive in time. `refused`: the process
 * does not know the query, or rejects the signature.
 */
export class AskError extends Schema.TaggedError<AskError>()("AskError", {
  reason: Schema.Literals(["gone", "late", "refused"]),
  question: Schema.String,
}) {}

/** Serves a client whose connection is at another process. */
export type HopListener = (request: IncomingMessage, response: ServerResponse, word: string) => void;

/**
 * Address of a process: the path of its Unix socket, or the origin of its URL and the offset of its clock from this process's clock, in
 * milliseconds.
 */
export type Destination = { readonly socketPath: string } | { readonly origin: string; readonly aheadMs: number };

/** Destination of a hop, and a function that signs its headers. */
export interface HopTarget {
  readonly to: Destination;
  /** Returns the headers of a hop, with the signature. */
  readonly headersOf: (word: string) => Record<string, string>;
}

/** Opens a request to a process, on a new connection. TLS trusts the same certificates as Node. */
export const requestTo = (to: Destination, headers: Record<string, string>): ClientRequest => {
  const options: RequestOptions = { agent: false, headers, path: hopPath, maxHeaderSize: hopHeadBytesMax };
  if ("socketPath" in to) return httpRequest({ ...options, socketPath: to.socketPath });
  const open = to.origin.startsWith("https:") ? httpsRequest : httpRequest;
  const request = open(to.origin, options);
  request.setSocketKeepAlive(true, probeMs);
  return request;
};

type Replier = (asked: unknown) => Effect.Effect<string | undefined>;

/** Sends and serves signed requests over one kind of connection. */
export class SignedWire {
  readonly #signature: HopSignature;
  /** Origin at which this process receives requests; undefined for a Unix socket. */
  readonly #origin: string | undefined;
  readonly #run: (effect: Effect.Effect<void>) => void;
  readonly #repliers = new Map<string, Replier>();
  #hops: HopListener | undefined;

  private constructor(signature: HopSignature, origin: string | undefined, run: (effect: Effect.Effect<void>) => void) {
    this.#signature = signature;
    this.#origin = origin;
    this.#run = run;
  }

  /**
   * Creates a wire. Replies in progress end when the scope closes.
   *
   * @param origin this process's own address; omitted for a Unix socket
   */
  static readonly make = Effect.fnUntraced(function* (
    key: ReturnType<typeof sharedKey>,
    origin?: string,
  ): Effect.fn.Return<SignedWire, never, Scope.Scope> {
    const clock = yield* Clock.Clock;
    const run = yield* Effect.flatMap(FiberSet.make<void>(), (fibers) => FiberSet.runtime(fibers)<never>());
    return new SignedWire(new HopSignature(key, () => clock.currentTimeMillisUnsafe()), origin, run);
  });

  /** Sends a query to a process and waits for its reply. */
  ask<A, B>(query: Query<A, B>, value: A, to: Destination): Effect.Effect<B, AskError> {
    return Effect.suspend(() => {
      // The value may contain input from a client, so a value that does not match the schema is refused and is not a defect.
      const body = Schema.encodeResult(query.asked)(value);
      if (Result.isFailure(body)) return Effect.fail(new AskError({ reason: "refused", question: query.name }));
      const word = encodeAsked({ name: query.name, body: body.success });
      return sendQuery(query, to, { [askHeader]: word, [signatureHeader]: this.#sign(word, to) });
    });
  }

  hopTo(to: Destination): HopTarget {
    return { to, headersOf: (word) => ({ [hopHeader]: word, [signatureHeader]: this.#sign(word, to) }) };
  }

  #sign(word: string, to: Destination): string {
    return "origin" in to
      ? this.#signature.sign(bindToReceiver(word, to.origin), to.aheadMs)
      : this.#signature.sign(bindToReceiver(word, undefined));
  }

  /** Answers queries of this kind while the scope is open. */
  serveQuery<A, B>(
    { asked, name, replied }: Query<A, B>,
    reply: (value: A) => Effect.Effect<B>,
  ): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void this.#repliers.set(name, replierOf(asked, replied, reply))),
      () => Effect.sync(() => void this.#repliers.delete(name)),
    );
  }

  /** Serves the hops of other processes while the scope is open. */
  serveHops(listener: HopListener): Effect.Effect<void, never, Scope.Scope> {
    const set = (hops: HopListener | undefined) =>
      Effect.sync(() => {
        this.#hops = hops;
      });
    return Effect.acquireRelease(set(listener), () => set(undefined));
  }

  /** Serves a request, or refuses it. Returns true if the request's signature is valid. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    response.sendDate = false;
    const { [askHeader]: asks, [hopHeader]: hop, [signatureHeader]: signed } = request.headers;
    const word = asks ?? hop;
    if (typeof word !== "string" || !this.#signature.isValid(bindToReceiver(word, this.#origin), signed)) {
      refuse(response, 403);
      return false;
    }
    if (asks !== undefined) this.#reply(word, response);
    else if (this.#hops === undefined) refuse(response, 404);
    else this.#hops(request, response, word);
    return true;
  }

  #reply(word: string, response: ServerResponse): void {
    const { body, name } = readAsked(word) ?? {};
    const reply = this.#repliers.get(name ?? "")?.(body) ?? Effect.undefined;
    this.#run(
      Effect.map(reply, (text) => {
        response.writeHead(text === undefined ? 400 : 200, { "content-type": "application/json" });
        response.end(text);
      }),
    );
  }
}

/**
 * Adds the receiver to a message before it is signed. An origin contains no line break, so messages to different receivers always differ.
 */
const bindToReceiver = (word: string, origin: string | undefined): string =>
  origin === undefined ? word : `${origin}\n${word}`;

const refuse = (response: ServerResponse, status: number): void => {
  response.writeHead(status, { connection: "close" }).end();
};

const replierOf =
  <A, B>(asked: JsonSchema<A>, replied: JsonSchema<B>, reply: (value: A) => Effect.Effect<B>): Replier =>
  (body) => {
    const read = Schema.decodeUnknownResult(asked)(body);
    if (Result.isFailure(read)) return Effect.undefined;
    return Effect.map(reply(read.success), (value) => JSON.stringify(Schema.encodeSync(replied)(value))).pipe(
      Effect.catchCause((cause) => Effect.as(Effect.logWarning("a query of another process failed", cause), undefined)),
    );
  };

const Asked = Schema.fromJsonString(Schema.Struct({ name: Schema.String, body: Schema.Unknown }));

const encodeAsked = (asked: typeof Asked.Type): string => encodeURIComponent(JSON.stringify(asked));

const readAsked = (word: string): typeof Asked.Type | undefined => {
  try {
    const read = Schema.decodeUnknownResult(Asked)(decodeURIComponent(word));
    return Result.isSuccess(read) ? read.success : undefined;
  } catch {
    return undefined;
  }
};

const sendQuery = <A, B>(
  { name, replied, replyMs }: Query<A, B>,
  to: Destination,
  headers: Record<string, string>,
): Effect.Effect<B, AskError> => {
  const askError = (reason: AskError["reason"]) => new AskError({ reason, question: name });
  const reply = Effect.callback<string, AskError>((resume) => {
    const request = requestTo(to, headers);
    request.on("error", () => resume(Effect.fail(askError("gone"))));
    request.on("response", (response) => {
      const chunks: Array<Buffer> = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.byteLength;
        if (bytes > replyBytesMax) request.destroy();
        else chunks.push(chunk);
      });
      response.on("error", () => undefined);
      response.on("close", () => {
        if (!response.complete) resume(Effect.fail(askError("gone")));
        else if (response.statusCode !== 200) resume(Effect.fail(askError("refused")));
        else resume(Effect.succeed(Buffer.concat(chunks).toString()));
      });
    });
    request.end();
    return Effect.sync(() => void request.destroy());
  });
  return reply.pipe(
    Effect.timeoutOrElse({ duration: replyMs, orElse: () => Effect.fail(askError("late")) }),
    Effect.flatMap((text) =>
      Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(replied))(text), () => askError("refused")),
    ),
  );
};
