/** A resumed interaction goes on right after the last event that was seen, and neither repeats nor skips one. */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import * as Cursor from "../../../src/provider/gemini-interactions/Cursor.ts";
import { protocol } from "../../../src/provider/gemini-interactions/Decode.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import type { CursorPart, Verification } from "../../../src/provider/stream/Resume.ts";

const fixture = (name: string): ReadonlyArray<string> =>
  readFileSync(new URL(`../../fixtures/streams/google-interactions/${name}`, import.meta.url), "utf8").split(
    /(?<=\n\n)/,
  );

/** Verifies frames as one attempt does. */
const verified = (frames: ReadonlyArray<string>, resumed?: string): ReadonlyArray<Verification<string>> => {
  const verifier = Cursor.verifier(resumed === undefined ? undefined : Cursor.parse(resumed));
  const decoder = Decoder.make(protocol);
  return frames.flatMap((frame) => decoder.push(new TextEncoder().encode(frame)).map((part) => verifier.take(part)));
};

const passed = (all: ReadonlyArray<Verification<string>>): ReadonlyArray<CursorPart> =>
  all.flatMap((it) => (it.type === "pass" ? [it.part] : []));

const dataOf = (parts: ReadonlyArray<CursorPart>) => parts.map(({ event }) => event.data);

const failureOf = (all: ReadonlyArray<Verification<string>>) =>
  all.flatMap((it) => (it.type === "failed" ? [it.failure] : []))[0];

/** The same stream with a call between its steps, whose events have ids too. */
const withCall = (): ReadonlyArray<string> => {
  const events = [
    { event_type: "interaction.created", interaction: { id: "i" } },
    { event_type: "step.start", index: 0, step: { type: "model_output" } },
    { event_type: "step.delta", index: 0, delta: { type: "text", text: "So" } },
    { event_type: "step.stop", index: 0 },
    { event_type: "step.start", index: 1, step: { type: "function_call", id: "c", name: "pay", arguments: {} } },
    { event_type: "step.delta", index: 1, delta: { type: "arguments_delta", arguments: '{"sum":' } },
    { event_type: "step.delta", index: 1, delta: { type: "arguments_delta", arguments: "1}" } },
    { event_type: "step.stop", index: 1 },
    { event_type: "interaction.completed", interaction: { id: "i", status: "requires_action" } },
  ];
  return events.map((event, at) => `data: ${JSON.stringify({ ...event, event_id: `e${at}` })}\n\n`);
};

/** The events that a server sends after an event id. */
const behind = (frames: ReadonlyArray<string>, cursor: string): ReadonlyArray<string> => {
  const event = Cursor.parse(cursor)?.event ?? "";
  return event === "" ? frames : frames.slice(frames.findIndex((frame) => frame.includes(`"event_id":"${event}"`)) + 1);
};

describe("a cursor", () => {
  it("is read as it was written, and any other string is none", () => {
    const cursor = { interaction: "v1_a/b:c", event: "e:1%", index: 3, since: 2 };
    assert.deepStrictEqual(Cursor.parse(Cursor.write(cursor)), cursor);
    assert.deepStrictEqual(Cursor.parse(Cursor.write({ ...cursor, event: "" })), { ...cursor, event: "" });
    for (const text of ["", "responses:1:r", "interaction:1:2:a", "interaction:1:2:%:b", "interaction:x:0:a:b"])
      assert.isUndefined(Cursor.parse(text), text);
    assert.isUndefined(Cursor.parse(Cursor.write({ ...cursor, interaction: ".." })));
    assert.isUndefined(Cursor.parse(Cursor.write({ ...cursor, event: "x".repeat(Cursor.idCharactersMax + 1) })));
  });

  it("leads to the documented address, and keeps the query of the request", () => {
    const cursor = { interaction: "v1/a", event: "e 1", index: 0, since: 0 };
    assert.strictEqual(
      Cursor.addressOf("https://g.example/v1beta/interactions/?key=k", cursor),
      "https://g.example/v1beta/interactions/v1%2Fa?key=k&stream=true&last_event_id=e+1",
    );
  });
});

describe("a stream of an interaction", () => {
  for (const [named, frames] of [
    ["with a report", fixture("background.sse")],
    ["with a call", withCall()],
    ["without ids", fixture("thinking-text.sse")],
    [
      "with one late id",
      fixture("thinking-text.sse").map((frame, at) => (at === 5 ? frame.replace("{", '{"event_id":"e5",') : frame)),
    ],
  ] as const)
    it(`goes on after each of its events without a repetition or a gap: ${named}`, () => {
      const whole = passed(verified(frames));
      let resumed = 0;
      for (const [at, { cursor }] of whole.entries()) {
        if (cursor === undefined) continue;
        resumed += 1;
        const rest = passed(verified(behind(frames, cursor), cursor));
        assert.deepStrictEqual(dataOf(rest), dataOf(whole.slice(at + 1)), `after event ${at}`);
      }
      assert.isAbove(resumed, 5);
    });

  it("gives a call that was open at the break its whole arguments", () => {
    const frames = withCall();
    for (const [at, { cursor = "" }] of passed(verified(frames)).slice(0, 7).entries()) {
      const rest = passed(verified(behind(frames, cursor), cursor));
      const ready = rest.flatMap(({ observation }) => observation.calls).find(({ phase }) => phase === "ready");
      assert.deepInclude(ready, { ordinal: 0, input: '{"sum":1}' }, `after event ${at}`);
    }
  });

  it("accepts a server that begins with the event of the cursor, or with the interaction itself", () => {
    const frames = withCall();
    const cursor = passed(verified(frames))[2]?.cursor ?? "";
    const [created = ""] = frames;
    for (const before of [frames[2] ?? "", created, created.replace('"e0"', '"e99"')]) {
      const rest = passed(verified([before, ...frames.slice(3)], cursor));
      assert.lengthOf(rest, frames.length - 3);
    }
  });

  it("refuses a server that begins anew, or with another interaction", () => {
    const frames = fixture("background.sse");
    const cursor = passed(verified(frames))[5]?.cursor;
    assert.deepInclude(failureOf(verified(frames, cursor)), { kind: "rejected", reason: "not_found" });
    const other = frames.map((frame) => frame.replaceAll("v1_ChdpbnRlcmFjdGlvbg", "v1_other"));
    assert.deepInclude(failureOf(verified(other, cursor)), { kind: "rejected", code: "resume_other_response" });
  });

  it("is read from its beginning where no event had an id yet", () => {
    const cursor = Cursor.parse(passed(verified(fixture("thinking-text.sse")))[0]?.cursor ?? "");
    assert.deepInclude(cursor, { event: "", since: 1 });
    const address = Cursor.addressOf("https://g.example/v1beta/interactions", cursor ?? assert.fail());
    assert.notInclude(address, "last_event_id");
  });

  it("has no cursor before the interaction has a name", () => {
    const [first] = passed(verified(['data: {"event_type":"interaction.created","interaction":{}}\n\n']));
    assert.isUndefined(first?.cursor);
  });
});
