import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { textAnswer } from "../../samples/index.ts";
import { send } from "../GatewayCases.ts";
import { gone, paired, recording, routeIn, streaming, token } from "./RouteCases.ts";

describe("A route that sets a model", () => {
  it.live(
    "takes no request whose path names a deployment: the path would stay, and the body's model mean nothing",
    () =>
      Effect.gen(function* () {
        const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
        const set = { headers: [], body: [["model", "another"]] as const };
        const { url } = yield* paired(yield* gone, other.url, { route: { set } });
        const got = yield* Effect.promise(() =>
          send(`${url}/t/${token}/u/openai/openai/deployments/mine/chat/completions?api-version=x`, {
            body: '{"messages":[],"stream":true}',
            headers: { "content-type": "application/json" },
          }),
        );
        assert.notStrictEqual(routeIn(got), "second");
        assert.lengthOf(other.asked, 0);
      }),
  );
});
