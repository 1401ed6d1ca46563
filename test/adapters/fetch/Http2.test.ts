/**
 * Ends streams and connections of HTTP/2 below `recoveringFetch`, whose transport is undici's or one over node:http2. A provider's own
 * cancel is a break, a caller's is not.
 */
import * as http2 from "node:http2";
import { assert, describe, it } from "@effect/vitest";
import { Agent, fetch as undiciFetch } from "undici";
import { recoveringFetch } from "../../../src/adapters/fetch/FetchRecovery.ts";
import { localhost } from "../../failure/provoked/Certificates.ts";
import { type Frames, withFrames } from "../../failure/provoked/Http2Frames.ts";
import { good, written } from "../../field/Wires.ts";
import { eager, read } from "./Cases.ts";

/** A fetch of one connection, and its end. */
interface Transport {
  readonly fetch: typeof globalThis.fetch;
  readonly close: () => Promise<void>;
}

const overUndici = (): Transport => {
  const dispatcher = new Agent({ allowH2: true, connect: { ca: localhost } });
  const fetch: typeof globalThis.fetch = async (input, init) => {
    // Two declarations of one standard, the platform's and undici's.
    const asked = { ...init, dispatcher } as NonNullable<Parameters<typeof undiciFetch>[1]>;
    return (await undiciFetch(String(input), asked)) as unknown as Response;
  };
  return { fetch, close: () => dispatcher.destroy() };
};

/** A transport of a caller's own: it copies what node knows of an end onto the error. */
const overNode = (): Transport => {
  const sessions = new Set<http2.ClientHttp2Session>();
  const fetch: typeof globalThis.fetch = (input, init) =>
    new Promise((resolve, reject) => {
      const url = new URL(String(input));
      const session = http2.connect(url.origin, { ca: localhost });
      sessions.add(session);
      let goaway = {};
      let failed: Error | undefined;
      let fail: (error: unknown) => void = reject;
      session.on("error", (error) => {
        failed ??= error;
      });
      session.on("goaway", (goawayCode, lastStreamID) => {
        goaway = { goawayCode, lastStreamID };
      });
      const stream = session.request({ ":method": "POST", ":path": `${url.pathname}${url.search}` });
      init?.signal?.addEventListener("abort", () => {
        fail(init.signal?.reason);
        stream.close(http2.constants.NGHTTP2_CANCEL);
      });
      stream.on("error", (error) => {
        failed ??= error;
      });
      stream.on("close", () => {
        const told = { rstCode: stream.rstCode, streamId: stream.id, ...goaway };
        fail(Object.assign(failed ?? new Error("the stream was reset"), told));
        session.destroy();
      });
      stream.on("response", (headers) => {
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => {
            fail = (error) => controller.error(error);
            stream.on("data", (chunk: Buffer) => controller.enqueue(new Uint8Array(chunk)));
            stream.on("end", () => {
              // Node ends the data of a stream that was reset as well.
              if (stream.rstCode !== 0 || stream.aborted) return;
              fail = () => undefined;
              controller.close();
            });
          },
          cancel: () => stream.close(http2.constants.NGHTTP2_CANCEL),
        });
        resolve(new Response(body, { status: Number(headers[":status"]) }));
      });
      stream.end(String(init?.body));
    });
  return {
    fetch,
    close: async () => {
      for (const session of sessions) session.destroy();
    },
  };
};

const transports: Readonly<Record<string, () => Transport>> = { undici: overUndici, "node:http2": overNode };

const whole = good("openai-chat");
const half = written("openai-chat", [{ text: "So." }], { cut: true });

type Act = (frames: Frames, stream: number) => void;

/** Answers the first request as `act` does and each later one whole; counts the requests. */
const played = async (
  transport: () => Transport,
  act: Act,
  reveal: "live" | "on_complete",
  use: (fetch: typeof globalThis.fetch, url: string) => Promise<{ readonly text: string; readonly error: unknown }>,
) => {
  let requests = 0;
  const answer: Act = (frames, stream) => {
    requests += 1;
    if (requests === 1) return act(frames, stream);
    frames.head(stream);
    frames.data(stream, whole);
    frames.end(stream);
  };
  const got = await withFrames(answer, async (port) => {
    const { close, fetch } = transport();
    const recovering = recoveringFetch({ fetch, reveal, layer: eager() });
    try {
      return await use(recovering, `https://localhost:${port}/v1/chat/completions`);
    } finally {
      await recovering.close();
      await close();
    }
  });
  return { ...got, requests };
};

const body = JSON.stringify({ model: "m", messages: [], stream: true });

const ask = async (fetch: typeof globalThis.fetch, url: string) => {
  try {
    return await read(await fetch(url, { method: "POST", body }));
  } catch (error) {
    return { text: "", error };
  }
};

/** The codes of RFC 9113, section 7, and whether another try may help. */
const codes: ReadonlyArray<readonly [name: string, isRetryable: boolean]> = [
  ["NO_ERROR", true],
  ["PROTOCOL_ERROR", false],
  ["INTERNAL_ERROR", true],
  ["FLOW_CONTROL_ERROR", false],
  ["SETTINGS_TIMEOUT", true],
  ["STREAM_CLOSED", true],
  ["FRAME_SIZE_ERROR", false],
  ["REFUSED_STREAM", true],
  ["CANCEL", true],
  ["COMPRESSION_ERROR", false],
  ["CONNECT_ERROR", true],
  ["ENHANCE_YOUR_CALM", true],
  ["INADEQUATE_SECURITY", false],
  ["HTTP_1_1_REQUIRED", false],
];

const first: Act = (frames, stream) => {
  frames.head(stream);
  frames.data(stream, half);
};

const goaways: Readonly<Record<string, { readonly code: number; readonly last: (stream: number) => number }>> = {
  "below our stream": { code: 0, last: () => 0 },
  "at our stream": { code: 0, last: (stream) => stream },
  "ENHANCE_YOUR_CALM at our stream": { code: 11, last: (stream) => stream },
};

for (const [name, transport] of Object.entries(transports))
  describe.concurrent(`recoveringFetch over HTTP/2 by ${name}`, () => {
    for (const [code, [title, isRetryable]] of codes.entries()) {
      const again = isRetryable ? "is asked for again" : "fails, because another try cannot help";

      it(`a response that its provider resets with ${title} before the head ${again}`, async () => {
        const got = await played(transport, (frames, stream) => frames.reset(stream, code), "live", ask);
        assert.strictEqual(got.requests, isRetryable ? 2 : 1);
        assert.strictEqual(got.text, isRetryable ? whole : "");
        assert.strictEqual(got.error === undefined, isRetryable);
      });

      it(`a response that its provider resets with ${title} in the body, unseen, ${again}`, async () => {
        const act: Act = (frames, stream) => {
          first(frames, stream);
          frames.reset(stream, code);
        };
        const got = await played(transport, act, "on_complete", ask);
        assert.strictEqual(got.requests, isRetryable ? 2 : 1);
        assert.strictEqual(got.text, isRetryable ? whole : "");
      });

      it(`shown text that its provider resets with ${title} is no clean end`, async () => {
        let reset: () => void = () => undefined;
        const act: Act = (frames, stream) => {
          first(frames, stream);
          reset = () => frames.reset(stream, code);
        };
        const got = await played(transport, act, "live", async (fetch, url) => {
          const response = await fetch(url, { method: "POST", body });
          reset();
          return read(response);
        });
        assert.strictEqual(got.requests, 1);
        assert.include(got.text, "So.");
        assert.isDefined(got.error);
      });
    }

    for (const [title, { code, last }] of Object.entries(goaways)) {
      it(`GOAWAY ${title} before the head is asked for again`, async () => {
        const act: Act = (frames, stream) => {
          frames.goaway(code, last(stream));
          frames.close();
        };
        const got = await played(transport, act, "live", ask);
        assert.deepStrictEqual([got.requests, got.text], [2, whole]);
      });

      it(`GOAWAY ${title} in the body, unseen, is asked for again`, async () => {
        const act: Act = (frames, stream) => {
          first(frames, stream);
          frames.goaway(code, last(stream));
          frames.close();
        };
        const got = await played(transport, act, "on_complete", ask);
        assert.deepStrictEqual([got.requests, got.text], [2, whole]);
      });
    }

    for (const reveal of ["live", "on_complete"] as const)
      it(`a caller's own cancel is no break, ${reveal}: nothing is asked for again`, async () => {
        const cancel = new AbortController();
        const reason = new Error("the user pressed Stop");
        const act: Act = (frames, stream) => {
          first(frames, stream);
          cancel.abort(reason);
        };
        const got = await played(transport, act, reveal, async (fetch, url) => {
          try {
            return await read(await fetch(url, { method: "POST", body, signal: cancel.signal }));
          } catch (error) {
            return { text: "", error };
          }
        });
        assert.strictEqual(got.requests, 1);
        assert.strictEqual(got.error, reason);
      });
  });
