/**
 * Plays one planned answer to a socket: delays, keep-alives, bytes, and the break.
 */

import { createHash } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { Effect } from "effect";
import type { AnswerProtocol } from "../answers/AnswerProtocol.ts";
import { commentFrame } from "../answers/Frames.ts";
import type { Answer, BreakKind, KeepAlive } from "../script/FaultScript.ts";
import type { OpenLog, RequestOutcome } from "./FaultLog.ts";
import type { Piece, Plan } from "./Plan.ts";
import { finish, type SocketInbox, write } from "./SocketInbox.ts";

/** Default interval of the keep-alives of a `keep_alive` break, in milliseconds. */
export const keepAliveEveryMs = 100;

/** One answer on its socket, with its plan and the callbacks for its log row. */
export interface Playback {
  readonly socket: Socket;
  readonly inbox: SocketInbox;
  readonly row: OpenLog;
  readonly plan: Plan;
  readonly answer: Answer;
  readonly protocol: AnswerProtocol;
  readonly beforeBreak: Effect.Effect<void>;
  /** Called when the request's row has changed. */
  readonly onChange: () => void;
  readonly end: (outcome: RequestOutcome) => void;
}

/**
 * Plays an answer to its end or its break, or until the client leaves.
 *
 * @returns true if the connection can carry another request
 */
export const play = (playback: Playback): Effect.Effect<boolean> =>
  Effect.raceFirst(
    perform(playback),
    Effect.map(playback.inbox.gone, () => {
      playback.end("client_closed");
      return false;
    }),
  );

const perform = Effect.fnUntraced(function* (playback: Playback) {
  const { answer, end, inbox, plan, row, socket } = playback;
  const at = plan.break;
  if (at !== undefined) row.break = at;
  const breakNow = (kind: BreakKind) =>
    breakOff(socket, inbox, kind, { onGone: () => end("client_closed"), onBreak: () => end("broken") });
  yield* Effect.sleep(answer.head_delay_ms ?? 0);
  if (at?.at === "before_head") {
    yield* playback.beforeBreak;
    yield* breakNow(at.kind);
    return false;
  }
  const send = sender(playback);
  row.status = plan.status;
  yield* send.raw(headBytes(plan));
  yield* send.pieces;
  if (at !== undefined && at.at !== "next_request") yield* playback.beforeBreak;
  if (at !== undefined && at.at !== "next_request" && at.kind !== "end") {
    if (at.kind === "keep_alive") return yield* keepAliveForEver(playback, send.body);
    yield* breakNow(at.kind);
    return false;
  }
  if (plan.framing === "chunked") yield* send.raw(Buffer.from("0\r\n\r\n"));
  end(at?.kind === "end" ? "broken" : "complete");
  if (plan.framing !== "eof") return true;
  yield* finish(socket, inbox, Buffer.alloc(0));
  return false;
});

/** Breaks a connection. `end` and `keep_alive` need a response head, so `perform` plays them; here they are played as silence. */
export const breakOff = (
  socket: Socket,
  inbox: SocketInbox,
  kind: BreakKind,
  log: { readonly onBreak: () => void; readonly onGone: () => void },
): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (kind === "rst") {
      log.onBreak();
      socket.resetAndDestroy();
      return Effect.void;
    }
    if (kind === "fin") {
      log.onBreak();
      return finish(socket, inbox, Buffer.alloc(0));
    }
    return Effect.map(inbox.gone, log.onGone);
  });

/** Writes to the socket, and records the byte count, the body hash and the serials. */
const sender = ({ answer, onChange, plan, protocol, row, socket }: Playback) => {
  const hash = createHash("sha256");
  const writeRaw = (bytes: Uint8Array) =>
    Effect.suspend(() => {
      row.bytes_sent += bytes.byteLength;
      return Effect.tap(write(socket, bytes), () => Effect.sync(onChange));
    });
  const body = (bytes: Uint8Array) =>
    Effect.suspend(() => {
      hash.update(bytes);
      row.sent_hash = hash.copy().digest("hex");
      if (plan.framing !== "chunked") return writeRaw(bytes);
      return writeRaw(Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]));
    });
  const wait = (ms: number) =>
    answer.keep_alive === undefined ? Effect.sleep(ms) : waitAlive(ms, answer.keep_alive, protocol, body);
  const pieces = Effect.gen(function* () {
    if (answer.one_write === true) {
      for (const piece of plan.pieces) recordPiece(row, piece);
      return yield* body(Buffer.concat(plan.pieces.map((piece) => piece.bytes)));
    }
    if ((answer.first_delay_ms ?? 0) > 0) yield* wait(answer.first_delay_ms ?? 0);
    for (const [index, piece] of plan.pieces.entries()) {
      recordPiece(row, piece);
      yield* body(piece.bytes);
      const more = index < plan.pieces.length - 1;
      if (more && piece.event_end && (answer.delay_ms ?? 0) > 0) yield* wait(answer.delay_ms ?? 0);
    }
  });
  return { raw: writeRaw, body, pieces };
};

/** Records a piece before it is written, so the client never has content that is missing in the log. */
const recordPiece = (row: OpenLog, piece: Piece): void => {
  for (const serial of piece.text) row.text.push(serial);
  for (const serial of piece.reasoning) row.reasoning.push(serial);
  if (piece.call !== undefined) row.calls.push(piece.call);
  if (piece.terminal) row.terminal = true;
};

type Write = (bytes: Uint8Array) => Effect.Effect<void>;

const waitAlive = Effect.fnUntraced(function* (
  ms: number,
  keepAlive: KeepAlive,
  protocol: AnswerProtocol,
  body: Write,
) {
  let left = ms;
  for (; left > keepAlive.every_ms; left -= keepAlive.every_ms) {
    yield* Effect.sleep(keepAlive.every_ms);
    yield* body(keepAliveBytes(keepAlive.style, protocol));
  }
  yield* Effect.sleep(left);
});

const keepAliveForEver = ({ answer, protocol }: Playback, body: Write): Effect.Effect<never> =>
  Effect.forever(
    Effect.suspend(() => body(keepAliveBytes(answer.keep_alive?.style ?? "comment", protocol))).pipe(
      Effect.andThen(Effect.sleep(answer.keep_alive?.every_ms ?? keepAliveEveryMs)),
    ),
  );

const keepAliveBytes = (style: KeepAlive["style"], { contentType, ping }: AnswerProtocol): Uint8Array =>
  Buffer.from((style === "event" || contentType !== undefined ? (ping ?? commentFrame) : commentFrame).frame);

const headBytes = ({ headers, status }: Plan): Uint8Array => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value.replace(/[\r\n]+/g, " ")}\r\n`);
  return Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Status"}\r\n${lines.join("")}\r\n`, "latin1");
};
