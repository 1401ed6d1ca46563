/** Interactions of Gemini: a background interaction is resumed at its last event, and any other is repeated while nothing was shown. */
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { serverOf } from "../../Servers.ts";
import { front, post, recovery } from "../GatewayCases.ts";

const frames = readFileSync(
  new URL("../../fixtures/streams/google-interactions/background.sse", import.meta.url),
  "utf8",
).split(/(?<=\n\n)/);

const whole = frames.join("");

const id = "v1_ChdpbnRlcmFjdGlvbg";

type Answer = (response: ServerResponse) => void;

const sse = { "content-type": "text/event-stream" };

/** Sends some of the events, and ends or breaks the connection. */
const sending =
  (from: number, to: number, how: "end" | "rst" = "rst"): Answer =>
  (response) => {
    response.writeHead(200, sse);
    const text = frames.slice(from, to).join("");
    if (how === "end") response.end(text);
    else response.write(text, () => response.socket?.resetAndDestroy());
  };

const refusing =
  (status: number): Answer =>
  (response) =>
    response
      .writeHead(status, { "content-type": "application/json" })
      .end('{"error":{"code":"not_found","message":"no such interaction"}}');

const played = (answers: ReadonlyArray<Answer>, body: object, program: GatewayProgram = {}) =>
  Effect.gen(function* () {
    const asked: Array<string> = [];
    const upstream = yield* serverOf((request, response) => {
      request.resume().on("end", () => {
        asked.push(`${request.method} ${request.url}`);
        answers[Math.min(asked.length, answers.length) - 1]?.(response);
      });
    });
    const gateway = yield* front(upstream, { keepAliveMs: 60_000, ...program });
    const sent = JSON.stringify({ model: "m", input: "hi", stream: true, ...body });
    const got = yield* post(gateway.url, "google-interactions", { body: sent });
    const [run] = yield* gateway.runs;
    return { asked, got, run };
  }).pipe(Effect.scoped);

const posted = "POST /v1beta/interactions";
const readAfter = (at: number) => `GET /v1beta/interactions/${id}?stream=true&last_event_id=ev_${at}`;

describe.concurrent("A background interaction", () => {
  const background = { background: true, store: true };

  it.live("that breaks after any of its events goes on without a second one", () =>
    Effect.forEach(
      [1, 2, 3, 5, 7],
      Effect.fnUntraced(function* (cut) {
        const answers = [sending(0, cut), sending(cut, frames.length, "end")];
        const { asked, got, run } = yield* played(answers, background);
        assert.deepStrictEqual([got.status, got.broken, got.text], [200, false, whole], `cut after ${cut}`);
        assert.deepStrictEqual(asked, [posted, readAfter(cut - 1)]);
        assert.strictEqual(run?.incidents[0]?.decision.rule, "resume_cursor");
        assert.deepInclude(run?.end, { state: "completed", reason: "completed" });
      }),
      { concurrency: 5 },
    ),
  );

  it.live("that ends cleanly without its last event goes on too, as often as it breaks", () =>
    Effect.gen(function* () {
      const answers = [sending(0, 3, "end"), sending(3, 5), sending(5, frames.length, "end")];
      const { asked, got } = yield* played(answers, background);
      assert.deepStrictEqual([got.text, got.broken], [whole, false]);
      assert.deepStrictEqual(asked, [posted, readAfter(2), readAfter(4)]);
    }),
  );

  it.live("is never posted again, not even if it can no longer be read", () =>
    Effect.gen(function* () {
      const lost = yield* played([sending(0, 0)], background);
      assert.deepStrictEqual(lost.asked, [posted]);
      const gone = yield* played([sending(0, 3), refusing(404)], background);
      assert.deepStrictEqual(gone.asked, [posted, readAfter(2)]);
      assert.isFalse(gone.got.text.includes("interaction.completed"));
      const begun = yield* played([sending(0, 3), sending(0, frames.length, "end")], background);
      assert.deepStrictEqual(begun.asked, [posted, readAfter(2)]);
    }),
  );

  it.live("is repeated if its provider refused it for now", () =>
    Effect.gen(function* () {
      const { asked, got } = yield* played([refusing(503), sending(0, frames.length, "end")], background);
      assert.deepStrictEqual([got.text, asked], [whole, [posted, posted]]);
    }),
  );
});

describe.concurrent("Any other interaction", () => {
  it.live("is repeated while nothing of it was shown", () =>
    Effect.gen(function* () {
      for (const cut of [0, 1]) {
        const { asked, got } = yield* played([sending(0, cut), sending(0, frames.length, "end")], {});
        assert.deepStrictEqual([got.text, got.broken], [whole, false]);
        assert.deepStrictEqual([asked, recovery(got, "attempts")], [[posted, posted], "2"]);
      }
      const held = yield* played([sending(0, 6), sending(0, frames.length, "end")], {}, { reveal: "on_complete" });
      assert.deepStrictEqual([held.got.text, held.asked], [whole, [posted, posted]]);
    }),
  );

  it.live("of an agent is posted once", () =>
    Effect.gen(function* () {
      const { asked } = yield* played([sending(0, 0)], { model: undefined, agent: "deep-research" });
      assert.deepStrictEqual(asked, [posted]);
    }),
  );

  it.live("that failed is no complete answer", () =>
    Effect.gen(function* () {
      const failed = readFileSync(
        new URL("../../fixtures/streams/google-interactions/failed.sse", import.meta.url),
        "utf8",
      );
      const { asked, got } = yield* played(
        [(response) => response.writeHead(200, sse).end(failed), sending(0, frames.length, "end")],
        {},
        { reveal: "on_complete" },
      );
      assert.deepStrictEqual([got.text, asked.length], [whole, 2]);
    }),
  );
});
