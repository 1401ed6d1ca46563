/**
 * Plays scripted provider answers over real TCP, and breaks them at the places in the script.
 *
 * The server logs every request and every serial that it sent, and `FaultJudge.judge` compares a caller's transcript with this log. The
 * server does not use the code under test.
 */

import { readFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { resolve } from "node:path";
import { Context, Effect, FiberSet, Layer, Schema, type Scope } from "effect";
import * as Json from "../../domain/Json.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import { type AnswerProtocol, answerProtocol, answerProtocols, givenText } from "../answers/Answers.ts";
import {
  type Answer,
  decode,
  type FaultScript,
  FaultScriptError,
  type FaultScriptInput,
} from "../script/FaultScript.ts";
import { type Conversations, serve } from "./Connection.ts";
import * as FaultLog from "./FaultLog.ts";
import type { RequestHead } from "./RequestReader.ts";

/**
 * The server cannot listen, because the port is taken or invalid, or the address does not belong to this machine. `cause` is Node's error.
 */
export class FaultListenError extends Schema.TaggedError<FaultListenError>()("FaultListenError", {
  reason: Schema.Literal("cannot_listen"),
  message: Schema.String,
  cause: Schema.Defect(),
}) {}

/** The address, script and protocols of a fault server. */
export interface FaultProviderOptions {
  /** Default: a healthy answer to every request. */
  readonly script?: FaultScriptInput;
  /** Default 127.0.0.1, so only this machine can reach the server. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Base directory of relative `raw_file` paths. Default: the working directory. */
  readonly directory?: string;
  /** Protocols that the server speaks in addition to the built-in protocols. */
  readonly protocols?: ReadonlyArray<AnswerProtocol>;
  /**
   * Runs before an answer breaks at its head, in its body or at its end. A test can use it to delay the break until its caller has seen the
   * bytes sent so far. Default: breaks do not wait.
   */
  readonly beforeBreak?: (request: FaultLog.RequestLog) => Effect.Effect<void>;
}

/** A provider on a real socket. It speaks every protocol, breaks at the places in its script, and logs each request. */
export class FaultProvider extends Context.Service<
  FaultProvider,
  {
    readonly host: string;
    readonly port: number;
    /** `http://HOST:PORT`, without a trailing slash. */
    readonly url: string;
    /** Returns the URL of a protocol's streaming endpoint. `script` names the conversation. */
    readonly endpoint: (protocol: ProtocolId | AnswerProtocol, script?: string) => string;
    /** Every request so far, oldest first. */
    readonly log: Effect.Effect<ReadonlyArray<FaultLog.RequestLog>>;
    /** Waits until the request with this number has ended, and returns its row. */
    readonly ended: (number: number) => Effect.Effect<FaultLog.RequestLog>;
    /** Waits until `look` returns a value, so that tests need no sleep. */
    readonly until: <A>(look: (rows: ReadonlyArray<FaultLog.RequestLog>) => A | undefined) => Effect.Effect<A>;
    /** Number of open connections. */
    readonly connections: Effect.Effect<number>;
  }
>()("effect-stream-recovery/testing/FaultProvider") {
  /**
   * Starts a server that stops when its scope closes.
   *
   * @throws FaultScriptError if the script cannot be played, FaultListenError if the server cannot listen
   */
  static readonly make = (
    options: FaultProviderOptions = {},
  ): Effect.Effect<FaultProvider["Service"], FaultScriptError | FaultListenError, Scope.Scope> => start(options);

  static readonly layer = (
    options: FaultProviderOptions = {},
  ): Layer.Layer<FaultProvider, FaultScriptError | FaultListenError> =>
    Layer.effect(FaultProvider, FaultProvider.make(options));
}

const start = Effect.fn("FaultProvider.make")(function* (options: FaultProviderOptions) {
  const script = yield* decode(options.script ?? {});
  const recorded = yield* readRecorded(script, options.directory ?? ".");
  const log = FaultLog.make();
  const spoken = [...answerProtocols, ...(options.protocols ?? [])];
  const server = conversations(script, recorded, log, spoken, options.beforeBreak ?? (() => Effect.void));
  const sockets = new Set<Socket>();
  const run = yield* FiberSet.makeRuntime<never>();
  let connections = 0;
  const listener = createServer({ noDelay: true }, (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    run(
      serve(socket, connections, server).pipe(
        Effect.ensuring(Effect.sync(() => socket.destroy())),
        Effect.catchCause((cause) => Effect.logError("A connection of the fault provider failed", cause)),
      ),
    );
  });
  const host = options.host ?? "127.0.0.1";
  const port = yield* Effect.acquireRelease(listen(listener, host, options.port ?? 0), () => stop(listener, sockets));
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const rows = Effect.sync(log.rows);
  return FaultProvider.of({
    host,
    port,
    url,
    endpoint: (protocol, name) =>
      `${url}${name === undefined ? "" : `/s/${encodeURIComponent(name)}`}${(typeof protocol === "string" ? answerProtocol(protocol) : protocol).path}`,
    log: rows,
    ended: (number) =>
      log
        .until((all) => all.find((row) => row.number === number && row.outcome !== "open"))
        .pipe(Effect.map((row) => structuredClone(row))),
    until: log.until,
    connections: Effect.sync(() => sockets.size),
  });
});

const healthy: ReadonlyArray<Answer> = [{ status: 200, usage: true, framing: "chunked" }];

/** Tracks the next answer of each conversation. The main script is the conversation without a name. */
const conversations = (
  script: FaultScript,
  recorded: ReadonlyMap<string, Uint8Array>,
  log: FaultLog.FaultLog,
  protocols: ReadonlyArray<AnswerProtocol>,
  beforeBreak: Conversations["beforeBreak"],
): Conversations => {
  const positions = new Map<string, number>();
  const scripts = new Map<string, ReadonlyArray<Answer>>(Object.entries(script.scripts ?? {}));
  scripts.set("", script.answers ?? healthy);
  const peek = (name: string): Answer | undefined => {
    const answers = scripts.get(name);
    return answers?.[positions.get(name) ?? 0] ?? (script.after === "repeat" ? answers?.at(-1) : undefined);
  };
  return {
    route: (head) => route(head, scripts, protocols),
    protocolOf: (id) => protocols.find((protocol) => protocol.id === id),
    peek,
    next: (name) => {
      const answer = peek(name);
      positions.set(name, (positions.get(name) ?? 0) + 1);
      return answer;
    },
    mainOnly: scripts.size === 1,
    recordingOf: (answer) => (answer.raw_file === undefined ? undefined : recorded.get(answer.raw_file)),
    keepsBodies: [...scripts.values()].some((answers) => answers.some(({ goes_on }) => goes_on !== undefined)),
    ...resumptions(),
    beforeBreak,
    log,
  };
};

/** Maximum answers that later requests can resume. The oldest are dropped. */
const resumableMax = 10_000;

/**
 * Remembers the answers that were sent, and finds the answer that a request resumes or continues.
 *
 * A request to `…/responses/resp_rN` resumes request N's answer after `starting_after`. Any other request resumes the last answer of its
 * conversation after `Last-Event-ID`. Without a cursor the whole answer is sent. A continuation request continues the last answer of its
 * conversation that was not itself a resumption or continuation.
 */
const resumptions = (): Pick<Conversations, "rememberAnswer" | "findCut" | "findResumed"> => {
  const given: Array<{ readonly script: string; readonly request: number; readonly answer: Answer }> = [];
  return {
    rememberAnswer: (script, request, answer) => {
      given.push({ script, request, answer });
      if (given.length > resumableMax) given.shift();
    },
    findCut: (body, script) => {
      const text = givenText(Json.parse(body)?.json);
      const found = text && given.findLast((it) => it.script === script && hasText(it.answer));
      return found === undefined || text === undefined
        ? undefined
        : {
            request: found.request,
            given: text,
            ...(found.answer.content === undefined ? {} : { content: found.answer.content }),
          };
    },
    findResumed: (head, script) => {
      const { pathname, searchParams } = new URL(head.target, "http://fault");
      const response = /\/responses\/resp_r(\d+)$/.exec(pathname)?.[1];
      const found = given.findLast((it) =>
        response === undefined ? it.script === script : it.request === Number(response),
      );
      const after = searchParams.get("starting_after") ?? head.headers.get("last-event-id") ?? "-1";
      return found === undefined || !/^-?\d+$/.test(after)
        ? undefined
        : { answer: found.answer, request: found.request, after: Number(after) };
    },
  };
};

/** Returns true if an answer streams blocks, so that its text is known. */
const hasText = ({ body, raw, raw_file, status }: Answer): boolean =>
  status === 200 && body === undefined && raw === undefined && raw_file === undefined;

const route = (
  head: RequestHead,
  scripts: ReadonlyMap<string, unknown>,
  protocols: ReadonlyArray<AnswerProtocol>,
): ReturnType<Conversations["route"]> => {
  const path = head.target.split("?", 1)[0] ?? "";
  const prefixed = /^\/s\/([^/]+)(\/.*)$/.exec(path);
  const name = prefixed?.[1] === undefined ? head.headers.get("x-script") : safeDecode(prefixed[1]);
  const known = name === undefined || scripts.has(name);
  return { script: name ?? "", path, protocol: known ? protocols.find(({ isServed }) => isServed(path)) : undefined };
};

const safeDecode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    // A malformed escape cannot name a script, so the log keeps the raw path.
    return text;
  }
};

const readRecorded = Effect.fnUntraced(function* (script: FaultScript, directory: string) {
  const recorded = new Map<string, Uint8Array>();
  const scripts = Object.entries(script.scripts ?? {}).map(([name, answers]) => [`scripts.${name}`, answers] as const);
  const named = [["answers", script.answers ?? []] as const, ...scripts].flatMap(([name, answers]) =>
    answers.map((answer, index) => [`${name}[${index}].raw_file`, answer.raw_file] as const),
  );
  for (const [field, file] of named) {
    if (file === undefined || recorded.has(file)) continue;
    const bytes = yield* Effect.tryPromise({
      try: () => readFile(resolve(directory, file)),
      catch: (cause) => new FaultScriptError({ reason: "unreadable", message: `${field}: ${String(cause)}` }),
    });
    recorded.set(file, bytes);
  }
  return recorded;
});

const listen = (server: Server, host: string, port: number): Effect.Effect<number, FaultListenError> =>
  Effect.callback<number, FaultListenError>((resume) => {
    server.once("error", (error) =>
      resume(Effect.fail(new FaultListenError({ reason: "cannot_listen", message: error.message, cause: error }))),
    );
    try {
      server.listen(port, host, () => {
        const address = server.address();
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port));
      });
    } catch (cause) {
      // Node throws for an invalid port instead of emitting `error`.
      const message = `port: expected 0 to 65535, got ${port}`;
      resume(Effect.fail(new FaultListenError({ reason: "cannot_listen", message, cause })));
    }
  });

const stop = (server: Server, sockets: ReadonlySet<Socket>): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void));
    for (const socket of sockets) socket.destroy();
  });
