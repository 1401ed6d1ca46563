import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { textAnswer } from "../../samples/index.ts";
import { ask, dying, paired, recording, routeIn, streaming } from "./RouteCases.ts";

describe("What the client of a run that was given up was told", () => {
  it.live("is no answer to a request for another route, whatever its address", () =>
    Effect.gen(function* () {
      const answer = textAnswer("openai-chat", "from the second");
      const server = yield* recording((response, asked) =>
        (asked.headers["x-team"] === "second" ? streaming(answer) : dying)(response, asked),
      );
      const { url } = yield* paired(server.url, server.url, {
        route: { set: { headers: [["x-team", "second"]], body: [] } },
      });
      const stays = { "x-recovery-move": "never" };
      const failed = yield* ask(url, "openai-chat", { headers: stays });
      assert.notStrictEqual(failed.status, 200);
      const asked = server.asked.length;
      assert.strictEqual((yield* ask(url, "openai-chat", { headers: stays })).status, failed.status);
      assert.lengthOf(server.asked, asked, "the same again is told from memory");
      const pinned = yield* ask(url, "openai-chat", { headers: { "x-recovery-route": "second" } });
      assert.deepStrictEqual([pinned.status, routeIn(pinned)], [200, "second"]);
    }),
  );

  it.live("is no answer to the same request that may move", () =>
    Effect.gen(function* () {
      const [one, other] = [
        yield* recording(dying),
        yield* recording(streaming(textAnswer("openai-chat", "from the second"))),
      ];
      const { url } = yield* paired(one.url, other.url);
      const failed = yield* ask(url, "openai-chat", { headers: { "x-recovery-move": "never" } });
      assert.notStrictEqual(failed.status, 200);
      const moved = yield* ask(url, "openai-chat");
      assert.deepStrictEqual([moved.status, routeIn(moved)], [200, "second"]);
    }),
  );
});
