/**
 * Where each route fails, the client is told the first one's failure, and bytes of two responses never stand in one (L12).
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { byProtocol, samples, textAnswer } from "../../samples/index.ts";
import { protocols } from "../GatewayCases.ts";
import {
  type Answering,
  ask,
  failing,
  paired,
  recording,
  routeIn,
  silent,
  streaming,
  upstreamsOf,
} from "./RouteCases.ts";

/** A stream that its provider's own error event ends before any output. */
const failed = byProtocol(({ failed: events, frame }) => events("of the first").map(frame).join(""));

const ofSecond = { type: "error", message: "of the second" };

/** Shows text and breaks. */
const breaking =
  (text: string): Answering =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const shown = text.split(/(?<=\n\n)/).slice(0, 2);
    response.write(shown.join(""), () => response.socket?.resetAndDestroy());
  };

describe.concurrent("An error event of the first route", () => {
  for (const protocol of protocols) {
    const [name] = upstreamsOf(protocol);

    for (const status of [400, 401])
      it.live(`reaches the client as it came where the next route refuses with ${status}: ${protocol}`, () =>
        Effect.gen(function* () {
          const [one, other] = [
            yield* recording(streaming(failed[protocol])),
            yield* recording(failing(status, ofSecond)),
          ];
          const { url } = yield* paired(one.url, other.url);
          const got = yield* ask(url, protocol);
          assert.lengthOf(other.asked, 1);
          assert.deepStrictEqual([got.status, routeIn(got)], [200, name]);
          assert.strictEqual(got.text.slice(0, failed[protocol].length), failed[protocol]);
          assert.notInclude(got.text, "of the second");
        }),
      );
  }

  it.live("does not follow text of another route", () =>
    Effect.gen(function* () {
      const [one, other] = [
        yield* recording(streaming(failed["openai-chat"])),
        yield* recording(breaking(textAnswer("openai-chat", "text of the second"))),
      ];
      const { url } = yield* paired(one.url, other.url);
      const got = yield* ask(url, "openai-chat");
      assert.include(got.text, "text of the second");
      // The gateway's own error event quotes what the first route said (L12). The route's own event does not follow.
      assert.notInclude(got.text, failed["openai-chat"]);
      assert.include(got.text.slice(got.text.indexOf("text of the second")), "stream-recovery gateway");
      assert.strictEqual(routeIn(got), "second");
    }),
  );
});

describe.concurrent("A failure of the first route that brings no error of its own", () => {
  const refused = [
    { id: "c1", choices: [{ index: 0, delta: { role: "assistant" } }] },
    { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }] },
  ]
    .map(samples["openai-chat"].frame)
    .join("");
  for (const [words, answers] of [
    ["a stall", silent],
    ["a refused finish", streaming(`${refused}data: [DONE]\n\n`)],
  ] as const)
    it.live(`is told as the first route's: ${words}`, () =>
      Effect.gen(function* () {
        const [one, other] = [yield* recording(answers), yield* recording(failing(401, ofSecond))];
        const program = { clocks: { first_progress: 200 } };
        const { url } = yield* paired(one.url, other.url, { movesOn: ["refused"], program });
        const got = yield* ask(url, "openai-chat");
        assert.lengthOf(other.asked, 1);
        assert.notInclude(got.text, "of the second");
        assert.strictEqual(routeIn(got), "openai");
      }),
    );
});
