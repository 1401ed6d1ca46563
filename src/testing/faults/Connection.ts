/** Serves one TCP connection of a fault server: reads requests, plays their answers, and breaks at the places in the script. */

import type { Socket } from "node:net";
import { Clock, Effect } from "effect";
import type { AnswerProtocol } from "../answers/AnswerProtocol.ts";
import type { CutAnswer } from "../answers/Answers.ts";
import type { Answer, Break } from "../script/FaultScript.ts";
import type { FaultLog, OpenLog, RequestLog, RequestOutcome } from "./FaultLog.ts";
import * as Plan from "./Plan.ts";
import { breakOff, play } from "./Playback.ts";
import * as RequestReader from "./RequestReader.ts";
import * as SocketInbox from "./SocketInbox.ts";

/** The parts of a fault server that a connection uses: its scripts, its memory of earlier answers, and its log. */
export interface Conversations {
  /**
   * Finds the script and the protocol of a request. `protocol` is undefined if no protocol serves the path or the script does
   * not exist.
   */
  readonly route: (head: RequestReader.RequestHead) => {
    readonly script: string;
    readonly path: string;
    readonly protocol: AnswerProtocol | undefined;
  };
  readonly protocolOf: (id: string) => AnswerProtocol | undefined;
  /** Returns the next answer of a conversation without consuming it; undefined if no answer is left or the script does not exist. */
  readonly peek: (script: string) => Answer | undefined;
  /** Consumes the answer that `peek` returned. */
  readonly next: (script: string) => Answer | undefined;
  /** True if every request belongs to the main script, so that a break is possible before the path of a request is known. */
  readonly mainOnly: boolean;
  readonly recordingOf: (answer: Answer) => Uint8Array | undefined;
  /** Finds the answer that a resuming request continues; undefined if its cursor refers to none. */
  readonly findResumed: (head: RequestReader.RequestHead, script: string) => Plan.Resumed | undefined;
  /** Finds the answer that a request continues, by its body; undefined if it continues none. */
  readonly findCut: (body: string, script: string) => CutAnswer | undefined;
  /** True if some answer continues the text of its request, so that request bodies have to be kept. */
  readonly keepsBodies: boolean;
  /** Remembers an answer that a later request may resume or continue. */
  readonly rememberAnswer: (script: string, request: number, answer: Answer) => void;
  readonly beforeBreak: (request: RequestLog) => Effect.Effect<void>;
  readonly log: FaultLog;
}

/**
 * Serves a connection until it closes.
 *
 * @param connection number of the connection at the server, from 1
 */
export const serve = Effect.fnUntraced(function* (socket: Socket, connection: number, server: Conversations) {
  const inbox = SocketInbox.make(socket);
  const clock = yield* Clock.Clock;
  const end = (row: OpenLog, outcome: RequestOutcome) => server.log.end(row, outcome, clock.currentTimeMillisUnsafe());
  const open = (reused: boolean) => server.log.open(connection, reused, clock.currentTimeMillisUnsafe());
  const cut = (row: OpenLog, at: Break) => {
    row.break = at;
    return breakOff(socket, inbox, at.kind, {
      onGone: () => end(row, "client_closed"),
      onBreak: () => end(row, "broken"),
    });
  };

  const atAccept = server.peek("")?.break;
  if (atAccept?.at === "accept") {
    server.next("");
    return yield* cut(open(false), atAccept);
  }
  let dead: Break | undefined;
  for (let reused = false; ; reused = true) {
    const first = yield* inbox.take;
    if (first === undefined) return;
    const row = open(reused);
    if (dead !== undefined) {
      row.bytes_received = first.byteLength;
      return yield* cut(row, dead);
    }
    const request = yield* readRequest(first, row, inbox, server);
    if (request.type === "gone") return end(row, "client_closed");
    if (request.type === "refused") return yield* refuse(socket, inbox, row, 400, "refused", end);
    if (request.type === "broken") return yield* cut(row, request.break);
    const { answer, body, head, protocol } = request;
    if (answer === undefined || protocol === undefined) {
      yield* refuse(socket, inbox, row, answer === undefined ? 500 : 404, "unscripted", end);
      return;
    }
    const resumed = answer.resume === undefined ? undefined : server.findResumed(head, row.script);
    const before = answer.goes_on === undefined ? undefined : server.findCut(body, row.script);
    const cutAnswer = before === undefined ? undefined : { ...before, ...answer.goes_on };
    if (answer.resume === undefined && cutAnswer === undefined) server.rememberAnswer(row.script, row.number, answer);
    if (answer.resume !== undefined && resumed === undefined)
      return yield* refuse(socket, inbox, row, 404, "refused", end);
    const plan = Plan.make(answer, protocol, row.number, server.recordingOf(answer), { resumed, cut: cutAnswer });
    row.protocol = protocol.id;
    const keep = yield* play({
      socket,
      inbox,
      row,
      plan,
      answer,
      protocol,
      beforeBreak: Effect.suspend(() => server.beforeBreak(structuredClone(row))),
      onChange: server.log.wake,
      end: (outcome) => end(row, outcome),
    });
    if (!keep) return;
    dead = answer.break?.at === "next_request" ? answer.break : undefined;
  }
});

type Request =
  | { readonly type: "gone" }
  | { readonly type: "refused" }
  | { readonly type: "broken"; readonly break: Break }
  | {
      readonly type: "read";
      readonly head: RequestReader.RequestHead;
      readonly body: string;
      readonly answer: Answer | undefined;
      readonly protocol: AnswerProtocol | undefined;
    };

/** Reads one request and fills in its row of the log. Stops early if the answer breaks before the request is complete. */
const readRequest = Effect.fnUntraced(function* (
  first: Uint8Array,
  row: OpenLog,
  inbox: SocketInbox.SocketInbox,
  server: Conversations,
): Generator<Effect.Effect<Uint8Array | undefined>, Request, Uint8Array | undefined> {
  const reader = RequestReader.make(server.keepsBodies);
  for (let bytes: Uint8Array | undefined = first; ; bytes = yield* inbox.take) {
    if (bytes === undefined) return { type: "gone" };
    const rest = reader.push(bytes);
    const head = reader.head();
    const route = head === undefined ? undefined : server.route(head);
    describe(row, reader, head, route);
    server.log.wake();
    if (reader.findProblem() !== undefined) return { type: "refused" };
    const script = route?.script ?? (server.mainOnly ? "" : undefined);
    if (script === undefined) continue;
    const early = server.peek(script)?.break;
    if (early?.at === "accept" || (early?.at === "request" && reader.receivedBytes() >= early.n)) {
      server.next(script);
      return { type: "broken", break: early };
    }
    if (!reader.complete() || head === undefined) continue;
    inbox.putBack(rest);
    const answer = server.next(script);
    const asked = answer?.protocol === undefined ? undefined : server.protocolOf(answer.protocol);
    return { type: "read", head, body: reader.body(), answer, protocol: asked ?? route?.protocol };
  }
});

const describe = (
  row: OpenLog,
  reader: RequestReader.RequestReader,
  head: RequestReader.RequestHead | undefined,
  route: { readonly script: string; readonly path: string } | undefined,
): void => {
  row.bytes_received = reader.receivedBytes();
  row.body_bytes = reader.bodyBytes();
  if (head === undefined || route === undefined) return;
  row.method = head.method;
  row.path = route.path;
  row.script = route.script;
  row.header_names = [...head.headers.keys()];
  if (reader.complete()) row.body_hash = reader.bodyHash();
};

/** Refuses a request that has no answer, and closes the connection, so that a test notices the missing answer. */
const refuse = (
  socket: Socket,
  inbox: SocketInbox.SocketInbox,
  row: OpenLog,
  status: number,
  outcome: RequestOutcome,
  end: (row: OpenLog, outcome: RequestOutcome) => void,
): Effect.Effect<void> => {
  const body = JSON.stringify({ error: { message: `${outcome} request`, type: "fault_provider", code: outcome } });
  const answer = `HTTP/1.1 ${status} ${outcome}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  row.status = status;
  row.bytes_sent = answer.length;
  return SocketInbox.finish(socket, inbox, Buffer.from(answer)).pipe(
    Effect.ensuring(Effect.sync(() => end(row, outcome))),
  );
};
