/**
 * An HTTP/2 server that writes single frames (RFC 9113, section 6). Node's own server ends a stream before it resets it, and closes
 * a session with a GOAWAY of its own choice.
 */
import type * as net from "node:net";
import * as tls from "node:tls";
import * as Certificates from "./Certificates.ts";
import { listen } from "./Servers.ts";

/** Frames that a server can send about a stream. */
export interface Frames {
  readonly head: (stream: number) => void;
  readonly data: (stream: number, text: string) => void;
  /** An empty DATA frame with END_STREAM. */
  readonly end: (stream: number) => void;
  readonly reset: (stream: number, code: number) => void;
  readonly goaway: (code: number, lastStream: number) => void;
  /** Sends the frames of `say` in one write. */
  readonly together: (say: () => void) => void;
  /** Ends the connection after what was written. */
  readonly close: () => void;
  /** Resets the connection. */
  readonly cut: () => void;
}

const types = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7 } as const;
const flags = { none: 0, ack: 1, endStream: 1, endHeaders: 4 } as const;

const frame = (type: number, flag: number, stream: number, payload: Uint8Array): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flag, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
};

const words = (...values: ReadonlyArray<number>): Buffer => {
  const buffer = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) buffer.writeUInt32BE(value, index * 4);
  return buffer;
};

const nothing = Buffer.alloc(0);

/** Index 8 of HPACK's static table: `:status: 200` (RFC 7541, appendix A). */
const status200 = Buffer.of(0x88);

const writing = (socket: tls.TLSSocket, cut: () => void): Frames => ({
  head: (stream) => void socket.write(frame(types.headers, flags.endHeaders, stream, status200)),
  data: (stream, text) => void socket.write(frame(types.data, flags.none, stream, Buffer.from(text))),
  end: (stream) => void socket.write(frame(types.data, flags.endStream, stream, nothing)),
  reset: (stream, code) => void socket.write(frame(types.reset, flags.none, stream, words(code))),
  goaway: (code, lastStream) => void socket.write(frame(types.goaway, flags.none, 0, words(lastStream, code))),
  together: (say) => {
    socket.cork();
    say();
    socket.uncork();
  },
  close: () => void socket.end(),
  cut,
});

const prefaceBytes = 24;

/** Calls `onRequest` for each HEADERS frame, and skips all other frames of the client. */
const serve = (socket: tls.TLSSocket, cut: () => void, onRequest: (frames: Frames, stream: number) => void): void => {
  let unread: Buffer = nothing;
  let started = false;
  socket.on("error", () => undefined); // the client may leave first
  socket.write(frame(types.settings, flags.none, 0, nothing));
  socket.on("data", (bytes) => {
    unread = Buffer.concat([unread, bytes]);
    if (!started && unread.length >= prefaceBytes) {
      started = true;
      unread = unread.subarray(prefaceBytes);
    }
    while (started && unread.length >= 9 && unread.length >= 9 + unread.readUIntBE(0, 3)) {
      const [type, flag, stream] = [unread.readUInt8(3), unread.readUInt8(4), unread.readUInt32BE(5)];
      unread = unread.subarray(9 + unread.readUIntBE(0, 3));
      if (type === types.settings && flag === flags.none) socket.write(frame(types.settings, flags.ack, 0, nothing));
      if (type === types.headers) onRequest(writing(socket, cut), stream);
    }
  });
};

/**
 * Runs `use` against such a server on its own port.
 *
 * @param onRequest called with the frames and the number of the request's stream
 */
export const withFrames = async <A>(
  onRequest: (frames: Frames, stream: number) => void,
  use: (port: number) => Promise<A>,
): Promise<A> => {
  const sockets = new Set<tls.TLSSocket>();
  const carriers = new Set<net.Socket>();
  const cut = () => {
    for (const carrier of carriers) carrier.resetAndDestroy();
  };
  const options = { key: Certificates.key, cert: Certificates.localhost, ALPNProtocols: ["h2"], noDelay: true };
  const server = tls.createServer(options, (socket) => {
    sockets.add(socket);
    serve(socket, cut, onRequest);
  });
  server.on("connection", (carrier: net.Socket) => carriers.add(carrier));
  server.on("tlsClientError", () => undefined); // a client that left during the handshake
  try {
    return await use(await listen(server));
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
};
