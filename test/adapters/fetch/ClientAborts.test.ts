/** Client libraries as they are, on a fetch that recovers, whose caller aborts. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { stalled } from "../../ClientAborts.ts";
import { setup } from "./Cases.ts";
import { clients, playTurn } from "./Clients.ts";

describe("a client library that goes away", () => {
  for (const client of clients) {
    it.live(`${client.name}: an abort in the middle of the text closes the provider's socket`, () =>
      Effect.gen(function* () {
        const { fetch: made, server } = yield* setup({ answers: [stalled("event", 5)] });
        // A caller of a client, which knows nothing of Effect, aborts here.
        const controller = new AbortController();
        const turn = playTurn(client, made, server.url, controller.signal);
        yield* server.until((rows) => rows.find((row) => row.bytes_sent > 0));
        controller.abort();
        assert.isFalse((yield* Effect.promise(() => turn)).completed);
        assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
        assert.strictEqual((yield* server.log).length, 1);
      }),
    );
  }
});
