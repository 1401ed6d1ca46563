/**
 * Bytes that the gateway itself writes into a response, read by the official SDKs over real sockets: a no-op changes nothing in their
 * result, a status is not retried, and each ending makes them throw with our sentence.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as passed } from "node:timers/promises";
import { afterAll, assert, beforeAll, describe, it } from "vitest";
import type * as Json from "../../../src/domain/Json.ts";
import { finalFailureOf, type GivenUpRefusal, refusalOf } from "../../../src/gateway/clients/GivenUp.ts";
import { mannerOf } from "../../../src/gateway/clients/Manner.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { encodeEvent } from "../../../src/provider/protocol/StreamEvent.ts";
import { dataOf, recorded, samples } from "../../samples/index.ts";
import { interruptedRun } from "./InterruptedRun.ts";
import { sdkReaders } from "./SdkReaders.ts";

/** Writes the response to the next request. */
let play: (response: ServerResponse, agent: string) => Promise<void> = async () => {};

let requests = 0;

/** The answer before a head; undefined answers with a stream. */
let refusal: GivenUpRefusal | undefined;

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    requests += 1;
    if (refusal !== undefined) {
      response.writeHead(refusal.status, [["content-type", "application/json"], ...refusal.headers].flat());
      response.end(JSON.stringify(refusal.document));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    void play(response, request.headers["user-agent"] ?? "");
  });
});
let origin = "";

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port, not at a path
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const run = { id: "gw_1", model: "m" };

/** The events of a recorded response. */
const events = (id: ProtocolId, name = samples[id].recordings[0]) => recorded(id, name);

/** A response with no-ops before its first event, and two after each except the terminal ones. */
const interleaved = (id: ProtocolId, recording: string, agent: string): ReadonlyArray<string> => {
  const { firstNoOp } = mannerOf({ headers: [["user-agent", agent]], protocol: id });
  const protocol = protocols.get(id);
  const noOp = (last: Json.JsonRecord | undefined): string =>
    last === undefined && firstNoOp === "comment" ? ": keep-alive\n\n" : encodeEvent(protocol.noOp(last, run));
  let last: Json.JsonRecord | undefined;
  const all = events(id, recording);
  return [
    noOp(undefined),
    ...all.flatMap((event, index) => {
      last = dataOf(event) ?? last;
      return index < all.length - 1 ? [event, noOp(last), noOp(last)] : [event];
    }),
  ];
};

const pieces = (all: ReadonlyArray<string>) => async (response: ServerResponse) => {
  for (const piece of all) {
    response.write(piece);
    // A separate write, because clients read bytes that arrive together in one piece.
    await passed(1);
  }
  response.end();
};

describe("a no-op", () => {
  for (const { fails = [], name, protocol, read } of sdkReaders) {
    for (const recording of samples[protocol].recordings.filter((it) => !fails.includes(it))) {
      it(`changes nothing in the result of ${name} for ${protocol}/${recording}`, async () => {
        play = pieces(events(protocol, recording));
        const whole = await read(origin, 0);
        play = (response, agent) => pieces(interleaved(protocol, recording, agent))(response);
        assert.deepStrictEqual(await read(origin, 0), whole);
        assert.isAbove(JSON.stringify(whole).length, 200, "something was read");
      });
    }
  }
});

const told = finalFailureOf(interruptedRun({ failure: { kind: "transport", operation: "body", code: "ECONNRESET" } }));

const thrown = async (read: Promise<unknown>): Promise<string> => {
  try {
    return `it took the response for whole: ${JSON.stringify(await read)}`;
  } catch (error) {
    const { message } = error as Error; // every SDK throws errors
    return `${message} ${JSON.stringify(error)}`;
  }
};

describe("a status before the head", () => {
  for (const { name, protocol, read } of sdkReaders) {
    it(`is requested once by ${name}, which throws our sentence (${protocol})`, async () => {
      refusal = refusalOf(told, protocols.get(protocol), { status: 400, asksByWords: true });
      requests = 0;
      const said = await thrown(read(origin, 3));
      refusal = undefined;
      assert.include(said, told.message);
      assert.strictEqual(requests, 1);
    });
  }
});

describe("an ending", () => {
  for (const end of ["clean", "reset"] as const) {
    for (const events0 of [0, 1, 4]) {
      for (const { name, protocol, read } of sdkReaders) {
        // Both lose the reason after a reset, so their end is clean if that is known to be correct.
        if (end === "reset" && name.startsWith("AI SDK")) continue;
        it(`after ${events0} events and with a ${end} end makes ${name} throw our sentence (${protocol})`, async () => {
          play = async (response) => {
            const shown = events(protocol).slice(0, events0);
            for (const event of shown) response.write(event);
            await passed(20);
            const last = shown.map(dataOf).findLast((data) => data !== undefined);
            for (const { pauseMs, text } of protocols.get(protocol).givenUp.ending(told.message, last, run)) {
              response.write(text);
              await passed(pauseMs);
            }
            if (end === "clean") response.end();
            else response.socket?.resetAndDestroy();
          };
          assert.include(await thrown(read(origin, 0)), told.message);
        });
      }
    }
  }
});
