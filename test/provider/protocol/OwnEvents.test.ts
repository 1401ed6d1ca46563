/**
 * What is written into a response by ourselves, read by our own decoders: a no-op proves nothing, an ending is a failure that comes
 * in order, and none of them is a terminal marker (L5).
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { encodeEvent, endingPauseMs } from "../../../src/provider/protocol/StreamEvent.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import * as Ndjson from "../../../src/provider/stream/Ndjson.ts";
import { dataOf, hasLines, ids, recorded, samples } from "../../samples/index.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const run = { id: "gw_1", model: "m" };

/** What a decoder makes of some events, and how it ends. */
const decoded = (id: ProtocolId, text: string) => {
  const decoder = Decoder.make(protocols.get(id));
  const parts = decoder.push(bytes(text));
  const { failure } = decoder;
  return { parts, failure, end: decoder.end().end };
};

describe("what is written into a response by ourselves", () => {
  for (const id of ids) {
    const protocol = protocols.get(id);
    const events = recorded(id, samples[id].recordings[1]);
    const lastOf = (count: number) =>
      events
        .slice(0, count)
        .map(dataOf)
        .findLast((data) => data !== undefined);

    it(`a no-op of ${id} says nothing and proves nothing, wherever it stands`, () => {
      const whole = decoded(id, events.join(""));
      assert.isTrue(whole.end.complete);
      for (let at = 0; at < events.length; at++) {
        const noOp = encodeEvent(protocol.noOp(lastOf(at), run), hasLines(id) ? Ndjson.framing : undefined);
        const { end, failure, parts } = decoded(id, [...events.slice(0, at), noOp, ...events.slice(at)].join(""));
        assert.isUndefined(failure, `at ${at}`);
        assert.isTrue(end.complete, `at ${at}`);
        const content = (all: typeof parts) =>
          all.flatMap((part) => part.content.filter((it) => !("text" in it && it.text === "")));
        assert.deepStrictEqual(content(parts), content(whole.parts), `at ${at}`);
        const { calls, progress } = parts[at]?.observation ?? assert.fail("the no-op is a part");
        assert.deepStrictEqual([calls, progress === "output" || progress === "reasoning"], [[], false], `at ${at}`);
        const shown = events.slice(0, at).join("");
        const { complete } = decoded(id, shown).end;
        assert.strictEqual(decoded(id, shown + noOp).end.complete, complete, `at ${at}: no marker`);
      }
    });

    it(`an ending of ${id} is a failure in order at every event, and never a terminal marker`, () => {
      for (let at = 0; at < events.length - 1; at++) {
        const shown = events.slice(0, at).join("");
        if (decoded(id, shown).end.complete) continue;
        // What was handed over may have ended inside of an event.
        for (const cut of protocol.framing === undefined ? [0, 1, 2] : [0]) {
          const before = shown.slice(0, shown.length - Math.min(cut, shown.length));
          const writes = protocol.givenUp.ending("it broke", lastOf(at), run);
          const { end, failure } = decoded(id, before + writes.map(({ text }) => text).join(""));
          assert.isFalse(end.complete, `at ${at}, cut ${cut}`);
          // A body that begins with the bare line of Gemini is no stream.
          const bare = id === "google-gemini" && at === 0;
          const told = bare ? failure?.kind === "protocol" : failure?.in_band;
          assert.isTrue(told, `at ${at}, cut ${cut}: ${JSON.stringify(failure)}`);
        }
      }
    });

    it(`an ending of ${id} leaves its client alone with the error before the body ends`, () => {
      const writes = protocol.givenUp.ending("it broke", undefined, run);
      assert.strictEqual(writes.at(-1)?.pauseMs, endingPauseMs);
      const documents = JSON.stringify(protocol.givenUp.document("it broke", "ECONNRESET", 400));
      assert.include(documents, '"recovery_code":"ECONNRESET"');
      assert.notInclude(JSON.stringify(protocol.givenUp.document("it broke", undefined, 400)), "recovery_code");
    });
  }

  it("a no-op of Chat is of the response that has begun; the first one has the role", () => {
    const { noOp } = protocols.get("openai-chat");
    const choice = (delta: object) => [{ index: 0, delta, finish_reason: null }];
    const object = "chat.completion.chunk";
    const named = { id: "chatcmpl-1", object, created: 7, model: "gpt" };
    assert.deepStrictEqual(noOp({ ...named, choices: [], usage: {} }, run).data, { ...named, choices: choice({}) });
    const first = { id: "gw_1", object, created: 0, model: "m", choices: choice({ role: "assistant" }) };
    assert.deepStrictEqual(noOp(undefined, run).data, first);
    assert.deepInclude(noOp(undefined, { id: "gw_1" }).data, { model: "" });
  });

  it("a no-op of Responses repeats the last number, and its ending goes on behind it", () => {
    const { givenUp, noOp } = protocols.get("openai-responses");
    const numbers = (last: Json.JsonRecord | undefined) => [
      Json.record(noOp(last, run).data)?.sequence_number,
      ...givenUp
        .ending("it broke", last, run)
        .flatMap(({ text }) => [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))),
    ];
    assert.deepStrictEqual(numbers(undefined), [0, 0, 1]);
    assert.deepStrictEqual(numbers({ sequence_number: 41 }), [41, 42, 43]);
    assert.deepStrictEqual(numbers({ sequence_number: "x" }), [0, 0, 1]);
    const created = { type: "response.created", response: { id: "resp_1", model: "gpt", created_at: 5 } };
    assert.match(
      givenUp.ending("it broke", created, run)[0]?.text ?? "",
      /"id":"resp_1".*"created_at":5.*"model":"gpt"/,
    );
  });

  it("an error of Messages comes behind a start, which is written where none has left", () => {
    const { ending } = protocols.get("anthropic-messages").givenUp;
    const names = (last: Json.JsonRecord | undefined) =>
      ending("it broke", last, run).flatMap(({ text }) =>
        [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name),
      );
    assert.deepStrictEqual(names(undefined), ["message_start", "error"]);
    assert.deepStrictEqual(names({ type: "message_start" }), ["error"]);
  });

  it("an error of Gemini is a bare line in a write of its own, and then the same as data", () => {
    const writes = protocols.get("google-gemini").givenUp.ending("it broke", undefined, run);
    assert.deepStrictEqual(
      writes.map(({ pauseMs }) => pauseMs),
      [100, endingPauseMs],
    );
    const [bare, data] = writes.map(({ text }) => text);
    assert.deepStrictEqual(JSON.parse(bare ?? ""), JSON.parse(/^data: (.*)$/m.exec(data ?? "")?.[1] ?? ""));
  });
});
