import { request as httpRequest, type IncomingMessage } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect } from "effect";
import { discardRest, isUnread } from "../../../src/gateway/proxy/Lingering.ts";
import { serverOf } from "../../Servers.ts";

describe("A client that still sends", () => {
  // The test clock does not advance, so waiting for a client's maximum time would never end.
  it.effect("is waited for no longer once its connection is closed, even if its response has ended", () =>
    Effect.gen(function* () {
      const responded = yield* Deferred.make<IncomingMessage>();
      const url = yield* serverOf((request, response) => {
        // Once a response has ended, Node no longer reports its connection's end to a request that was read.
        request.once("data", () => {
          request.pause();
          response.writeHead(413, { connection: "close" }).end("no", () => {
            Deferred.doneUnsafe(responded, Effect.succeed(request));
          });
        });
      });
      const client = httpRequest(url, { method: "POST", agent: false, headers: { "content-length": "9000000" } });
      client.on("error", () => undefined);
      client.write(Buffer.alloc(100_000));
      const request = yield* Deferred.await(responded);
      const { socket } = request;
      assert.isTrue(isUnread(request));
      const closed = Effect.sync(() => void client.destroy());
      yield* Effect.all([discardRest(request), closed], { concurrency: "unbounded" });
      assert.deepStrictEqual([socket.destroyed, isUnread(request)], [true, false]);
      yield* discardRest(request);
    }),
  );
});
