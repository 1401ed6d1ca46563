import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { ask, gone, operatorsKey, paired, recording, routeIn } from "./RouteCases.ts";

const event = (json: object) => `data: ${JSON.stringify(json)}\n\n`;
const created = event({ type: "response.created", sequence_number: 0, response: { id: "resp_1", background: true } });
const text = event({ type: "response.output_text.delta", sequence_number: 1, delta: "Hello" });
const completed = event({
  type: "response.completed",
  sequence_number: 2,
  response: { id: "resp_1", status: "completed" },
});

/** Breaks the stream of the post behind its text, and gives the rest to who reads on. */
const breaking = recording((response, { method }) => {
  response.setHeader("content-type", "text/event-stream");
  if (method === "POST") response.write(created + text, () => response.destroy());
  else response.end(completed);
});

describe("A background response of a further route that breaks", () => {
  for (const pinned of [true, false])
    it.live(`is read on there by its own address: ${pinned ? "pinned" : "moved"}`, () =>
      Effect.gen(function* () {
        const [dead, other] = [yield* gone, yield* breaking];
        const state = { state: "team" };
        const { url } = yield* paired(dead, other.url, {
          ...{ first: state, second: state },
          route: { set: { headers: [["x-team", "a"]], body: [["metadata", { team: "a" }]] } },
        });
        const got = yield* ask(url, "openai-responses", {
          body: { model: "m", input: "x", stream: true, background: true },
          headers: pinned ? { "x-recovery-route": "second" } : {},
        });
        assert.deepStrictEqual(
          other.asked.map((it) => `${it.method} ${it.url}`),
          ["POST /v1/responses", "GET /v1/responses/resp_1?stream=true&starting_after=1"],
        );
        assert.deepStrictEqual([got.text, got.broken], [created + text + completed, false]);
        assert.strictEqual(routeIn(got), "second");
        const [, read] = other.asked;
        assert.strictEqual(read?.headers.authorization, `Bearer ${operatorsKey}`);
        assert.strictEqual(read?.headers["x-team"], "a");
        assert.strictEqual(read?.body, "");
      }),
    );
});
