/**
 * Talks to a fault server over plain sockets: the client under test has no part in the server's own tests.
 */
import { connect, type Socket } from "node:net";
import { Effect } from "effect";

/** How a connection ended for a client that reads to its end. */
export interface Ending {
  readonly text: string;
  readonly how: "fin" | "reset";
}

export const post = (path: string, body = "{}", headers = "") =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** Opens a plain socket; the client under test has no part in these tests. */
export const dial = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)));
      socket.on("error", () => resume(Effect.succeed(socket)));
    }),
    (socket) => Effect.sync(() => socket.destroy()),
  );

export const ending = (socket: Socket): Effect.Effect<Ending> =>
  Effect.callback<Ending>((resume) => {
    const chunks: Array<Buffer> = [];
    let how: Ending["how"] = socket.errored === null ? "fin" : "reset";
    const done = () => resume(Effect.succeed({ text: Buffer.concat(chunks).toString("utf8"), how }));
    if (socket.destroyed) return done();
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => {
      how = "reset";
    });
    socket.on("close", done);
  });

/** Reads until the text has a piece. */
export const reading = (socket: Socket, piece: string): Effect.Effect<string> =>
  Effect.callback<string>((resume) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      if (!text.includes(piece)) return;
      socket.removeAllListeners("data");
      resume(Effect.succeed(text));
    });
  });

/** A socket that outlives the scope of its server. */
export const dialForLater = (port: number) =>
  Effect.callback<Socket>((resume) => {
    const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)));
  });
