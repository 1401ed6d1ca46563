/**
 * `serve` in front of a provider that speaks HTTP/2, as a process of its own: a defect of the connection stops all of it.
 */
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { http2Server } from "../client/Http2Server.ts";
import { localhost } from "../failure/provoked/Certificates.ts";
import { folder, serve } from "./ServeProcess.ts";

/** Of a body that is written in many slices. */
const bodyBytes = 8_000_000;

/** Sends a body, and leaves when it is told to. */
const leaving = (port: number, path: string) => {
  const text = JSON.stringify({
    model: "m",
    stream: true,
    messages: [{ role: "user", content: "a".repeat(bodyBytes) }],
  });
  const lines = [`POST ${path} HTTP/1.1`, "host: localhost", "content-type: application/json"];
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`${lines.join("\r\n")}\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
  return () => socket.destroy();
};

const isAlive = (url: string) =>
  Effect.promise(() =>
    fetch(`${url}/livez`, { signal: AbortSignal.timeout(20_000) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );

describe("stream-recovery serve, with an upstream over HTTP/2", () => {
  for (const path of ["/u/two/v1/chat/completions", "/u/two/v1/files"])
    it.live(`goes on where clients leave in the middle of a large body: ${path}`, () =>
      Effect.gen(function* () {
        let bytes = 0;
        const heard = { at: Number.POSITIVE_INFINITY, reached: () => {} };
        const server = yield* http2Server((stream) => {
          stream.removeAllListeners("data").on("data", (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes >= heard.at) heard.reached();
          });
        });
        const dir = yield* folder;
        const [ca, config] = [join(dir, "ca.pem"), join(dir, "gateway.json")];
        writeFileSync(ca, localhost);
        writeFileSync(config, JSON.stringify({ upstreams: { two: { url: server.url, ca, http: 2 } } }));
        const { url } = yield* serve(["--port", "0", "--db", "memory", "--config", config]);
        const port = Number(new URL(url).port);
        for (let part = 1; part < 20; part += 1) {
          bytes = 0;
          yield* Effect.callback<void>((resume) => {
            const leave = leaving(port, path);
            heard.at = (bodyBytes / 20) * part;
            heard.reached = () => {
              heard.at = Number.POSITIVE_INFINITY;
              leave();
              resume(Effect.void);
            };
          });
          assert.isTrue(yield* isAlive(url), `left behind ${part} of 20 parts`);
        }
      }),
    );
});
