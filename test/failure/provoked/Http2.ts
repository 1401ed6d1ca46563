/**
 * Resets streams and sessions of a real HTTP/2 server, and defines the clients that observe it.
 */
import * as http2 from "node:http2";
import * as Certificates from "./Certificates.ts";
import { type Ask, body, type Client, provoke } from "./clients/Client.ts";
import { effectClients } from "./clients/Effect.ts";
import { rawClients } from "./clients/Raw.ts";
import type { Fault } from "./Faults.ts";
import { type Frames, withFrames } from "./Http2Frames.ts";
import { listen } from "./Servers.ts";

type Behaviour = (stream: http2.ServerHttp2Stream, session: http2.ServerHttp2Session) => void;

const withServer = async <A>(behaviour: Behaviour, use: (port: number) => Promise<A>): Promise<A> => {
  const sessions = new Set<http2.ServerHttp2Session>();
  const server = http2.createSecureServer({ key: Certificates.key, cert: Certificates.localhost });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => undefined); // intended by the test
    session.on("stream", (stream) => {
      stream.on("error", () => undefined); // we cause the reset
      behaviour(stream, session);
    });
  });
  try {
    return await use(await listen(server));
  } finally {
    for (const session of sessions) session.destroy();
    server.close();
  }
};

/** The end of a stream as a client over node:http2 sees it: the error event and more. */
interface Ended {
  readonly error: Error | undefined;
  readonly rstCode: number;
  readonly streamId: number | undefined;
  readonly goaway: { readonly goawayCode: number; readonly lastStreamID: number } | undefined;
}

const request = ({ url, ca, onBytes }: Ask): Promise<Ended> =>
  new Promise((resolve) => {
    const session = http2.connect(url, ca === undefined ? {} : { ca });
    let error: Error | undefined;
    let goaway: Ended["goaway"];
    const fail = (thrown: Error) => {
      error ??= thrown;
    };
    session.on("error", fail);
    session.on("goaway", (goawayCode: number, lastStreamID: number) => {
      goaway = { goawayCode, lastStreamID };
    });
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.on("error", fail);
    stream.on("data", () => onBytes?.());
    stream.on("close", () => {
      resolve({ error, rstCode: stream.rstCode, streamId: stream.id, goaway });
      session.destroy();
    });
    stream.end(body);
  });

/** A client that reports only the error event. */
const plain: Client = {
  name: "node:http2",
  ask: async (ask) => {
    const { error } = await request(ask);
    if (error !== undefined) throw error;
    return undefined;
  },
};

/** A client that copies everything node knows onto its error: the code of the reset, the GOAWAY and the client's own stream. */
const telling: Client = {
  name: "node:http2, codes copied onto the error",
  ask: async (ask) => {
    const { error, rstCode, streamId, goaway } = await request(ask);
    if (error === undefined && rstCode === 0 && goaway === undefined) return undefined;
    throw Object.assign(error ?? new Error("the stream was reset"), { rstCode, streamId, ...goaway });
  },
};

const named = (name: string): Client => {
  const client = [...rawClients, ...effectClients].find((candidate) => candidate.name === name);
  if (client === undefined) throw new Error(`no client is called ${name}`);
  return client;
};

/** Every HTTP/2 client of these tests. */
export const http2Clients: ReadonlyArray<Client> = [
  plain,
  telling,
  named("undici"),
  named("undici fetch"),
  named("global fetch"),
  named("Effect HttpClient (undici)"),
];

const fault = (name: string, behaviour: Behaviour): Fault => ({
  name,
  run: (client) =>
    withServer(behaviour, (port) =>
      provoke(client, { url: `https://localhost:${port}`, ca: Certificates.localhost, http2: true }),
    ),
});

const codes = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

/** Acts on the frames once the client has read the first event. */
const framed = (name: string, act: (frames: Frames, stream: number) => void, answer = true): Fault => ({
  name,
  run: (client) => {
    const held: Array<() => void> = [];
    const begin = (frames: Frames, stream: number) => {
      if (!answer) return act(frames, stream);
      held.push(() => act(frames, stream));
      frames.head(stream);
      frames.data(stream, "data: 1\n\n");
    };
    return withFrames(begin, (port) =>
      provoke(client, {
        url: `https://localhost:${port}`,
        ca: Certificates.localhost,
        http2: true,
        onBytes: () => held.splice(0).at(0)?.(),
      }),
    );
  },
});

/** All ways in which a peer can end a stream or a session. */
export const http2Faults: ReadonlyArray<Fault> = [
  ...codes.map((code, number) => fault(`RST_STREAM ${code} before the head`, (stream) => stream.close(number))),
  ...codes.map((code, number) =>
    framed(`RST_STREAM ${code} in the body`, (frames, stream) => frames.reset(stream, number)),
  ),
  framed(
    "GOAWAY below our stream",
    (frames) => {
      frames.goaway(0, 0);
      frames.close();
    },
    false,
  ),
  framed(
    "GOAWAY with our stream, before the head",
    (frames, stream) => {
      frames.goaway(0, stream);
      frames.close();
    },
    false,
  ),
  framed("GOAWAY with our stream, in the body", (frames, stream) => {
    frames.goaway(0, stream);
    frames.close();
  }),
  framed("GOAWAY ENHANCE_YOUR_CALM in the body", (frames, stream) => {
    frames.goaway(11, stream);
    frames.close();
  }),
  framed("GOAWAY PROTOCOL_ERROR in the body", (frames, stream) => {
    frames.goaway(1, stream);
    frames.close();
  }),
  framed("HTTP/2 connection closed in the body", (frames) => frames.close()),
  framed("HTTP/2 connection reset in the body", (frames) => frames.cut()),
  framed("clean end of an HTTP/2 stream without a marker", (frames, stream) => frames.end(stream)),
];
