/**
 * What becomes of the single events of a continuation of Messages and Responses: dropped, rewritten, added, refused.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import * as SplicedJoin from "../../../src/provider/seam/SplicedJoin.ts";
import {
  added,
  at,
  call,
  close,
  completed,
  created,
  delta,
  done,
  end,
  ends,
  type Frame,
  goesOn,
  item,
  joined,
  messages,
  numbered,
  open,
  part,
  responses,
  says,
  says2,
  second,
  shownFirst,
  start,
  stop,
  text,
  thought,
  tool,
} from "./Frames.ts";
import { named, partsOf } from "./JoinedStream.ts";
import { plainVerifier } from "./PlainVerifier.ts";

describe("events of Messages", () => {
  it("the second message_start and thinking in front of the seam are dropped, the text goes on in the open block", () => {
    const thinking = [open(0, { type: "thinking", thinking: "" }), delta(0, { type: "thinking_delta", thinking: "?" })];
    const found = joined(
      messages,
      [start, open(0, text), says(0, "High water")],
      [second, ...thinking, close(0), open(1, text), says(1, "High water is"), close(1), stop("end_turn"), end],
      "High water",
    );
    const usage = { input_tokens: 10, output_tokens: 20 };
    assert.deepStrictEqual(found.json, [says(0, " is"), close(0), { ...stop("end_turn"), usage }, end]);
  });

  it("a call behind an anchor that nothing follows closes the open block and gets the next index", () => {
    const found = joined(
      messages,
      [start, open(0, text), says(0, "Now")],
      [second, open(0, text), says(0, "Now"), close(0), open(1, tool), close(1), stop("tool_use"), end],
      "Now",
    );
    assert.deepStrictEqual(found.json.slice(0, 3), [close(0), open(1, tool), close(1)]);
  });

  it("behind a block that was closed a new one begins, but not for nothing and not for white space alone", () => {
    const first = [start, open(0, text), says(0, "Now"), close(0)];
    const told = (more: string) =>
      joined(
        messages,
        first,
        [second, open(0, text), says(0, `Now${more}`), close(0), open(1, tool), close(1), stop("tool_use"), end],
        "Now",
      ).json.slice(0, -2);
    assert.deepStrictEqual(told(""), [open(1, tool), close(1)]);
    assert.deepStrictEqual(told("\n\n"), [open(1, tool), close(1)]);
    assert.deepStrictEqual(told(" then"), [open(1, text), says(1, " then"), close(1), open(2, tool), close(2)]);
  });

  it("text that the guard held leaves in front of the call that follows", () => {
    const found = joined(
      messages,
      [start, open(0, text), says(0, "Now")],
      [second, open(0, text), says(0, "Now read"), close(0), open(1, tool), close(1), stop("tool_use"), end],
      "Now",
      9,
    );
    assert.deepStrictEqual(found.json.slice(0, 3), [says(0, " read"), close(0), open(1, tool)]);
  });

  it("a call, a hosted call and a refusal in front of the seam are no text", () => {
    const first = [start, open(0, text), says(0, "Now")];
    for (const event of [
      open(0, tool),
      open(0, { type: "server_tool_use", id: "s", name: "web_search" }),
      stop("refusal"),
    ]) {
      const found = joined(messages, first, [second, event, end], "Now");
      assert.deepStrictEqual([found.fault, found.json], ["not_text", []]);
    }
  });

  it("servers that number every block 0 are never a reason to throw", () => {
    const first = [start, open(0, text), says(0, "One."), close(0), open(0, text), says(0, " Two")];
    const found = joined(
      messages,
      first,
      [second, open(0, text), says(0, "Two three"), close(0), stop("end_turn"), end],
      "Two",
    );
    assert.isUndefined(found.fault);
    assert.deepStrictEqual(found.json[0], says(0, " three"));
  });

  it("an event that was written and never left leaves no trace", () => {
    const splice = messages.splice?.() ?? assert.fail("no splice");
    for (const frame of [start, open(0, text), says(0, "Now")]) splice.recordSent(frame);
    const before = splice.response();
    const driver = SplicedJoin.make(splice, plainVerifier("Now"));
    const told = [second, open(0, text), says(0, "Now read"), close(0), open(1, tool)].map(named);
    for (const part of partsOf(messages, told)) driver.take(part);
    assert.deepStrictEqual(splice.response(), before);
  });

  it("behind a call, a hosted call without its result, or thinking that follows the text nothing goes on", () => {
    const first = [start, open(0, text), says(0, "Now"), close(0)];
    for (const block of [tool, { type: "server_tool_use", id: "s" }, { type: "thinking", thinking: "" }]) {
      const splice = messages.splice?.() ?? assert.fail("no splice");
      for (const frame of [...first, open(1, block)]) splice.recordSent(frame);
      assert.strictEqual(splice.response().refusal, "not_text_last");
    }
  });

  it("behind more hosted calls than are remembered nothing goes on, whatever results come", () => {
    const splice = messages.splice?.() ?? assert.fail("no splice");
    const ids = Array.from({ length: 1_030 }, (_, at) => `s${at}`);
    for (const [at, id] of ids.entries()) splice.recordSent(open(at, { type: "server_tool_use", id }));
    for (const id of ids.slice(0, 1_024))
      splice.recordSent(open(2_000, { type: "web_search_tool_result", tool_use_id: id }));
    for (const frame of [open(3_000, text), says(3_000, "Now")]) splice.recordSent(frame);
    assert.strictEqual(splice.response().refusal, "not_text_last");
  });
});

describe("events of Responses", () => {
  it("are numbered on under the first identity, with the text of both and the items of both", () => {
    const rest = goesOn(
      says2("m2", 1, "High water is six."),
      ...ends("m2", 1, "High water is six."),
      completed([thought, item("m2")]),
    );
    const { fault, json } = joined(responses, shownFirst, rest, "High water");
    assert.isUndefined(fault);
    assert.deepStrictEqual(
      json.map((frame) => frame?.sequence_number),
      [4, 5, 6, 7, 8],
    );
    const words = "High water is six.";
    assert.deepStrictEqual(json.slice(0, 2), [
      { ...says2("m1", 0, " is six."), sequence_number: 4 },
      { type: "response.output_text.done", ...at("m1", 0), text: words, sequence_number: 5 },
    ]);
    const last = Json.record(json.at(-1)?.response);
    assert.deepStrictEqual([last?.id, last?.created_at], ["r1", 7]);
    assert.deepStrictEqual(last?.output, [{ ...item("m1", [part(words)]), status: "completed" }]);
    // What has left counts as three tokens, and the anchor that came twice does not.
    assert.deepStrictEqual(last?.usage, { input_tokens: 5, output_tokens: 9, total_tokens: 14 });
  });

  it("reasoning in front of the seam goes behind the joined message where a call follows, else it is dropped", () => {
    const said = [says2("m2", 1, "High water!"), ...ends("m2", 1, "High water!")];
    const rest = goesOn(...said, added(2, call), done(2, call), completed([thought, item("m2"), call]));
    const { json } = joined(responses, shownFirst, rest, "High water");
    const output = Json.list(Json.record(json.at(-1)?.response)?.output).map((one) => Json.record(one)?.id);
    assert.deepStrictEqual(output, ["m1", "rs", "f"]);
    assert.deepStrictEqual(json.find((frame) => Json.record(frame?.item)?.id === "f")?.output_index, 2);
  });

  it("annotations behind the seam are moved and counted on, those in front of it are dropped", () => {
    const annotation = (start_index: number, end_index: number, annotation_index: number) => ({
      type: "response.output_text.annotation.added",
      ...at("m2", 1),
      annotation_index,
      annotation: { type: "url_citation", url: "u", start_index, end_index },
    });
    const rest = goesOn(
      says2("m2", 1, "water is six."),
      annotation(0, 5, 0),
      annotation(6, 8, 1),
      ...ends("m2", 1, "water is six."),
      completed([]),
    );
    const { json } = joined(responses, shownFirst, rest, "water");
    const told = json.filter((frame) => frame?.annotation !== undefined);
    assert.deepStrictEqual(
      told.map((frame) => [frame?.annotation_index, Json.record(frame?.annotation)?.start_index, frame?.item_id]),
      [[0, 11, "m1"]],
    );
  });

  it("whatever of a message was closed, all that was opened is closed and the text is whole", () => {
    const whole = [
      ...shownFirst,
      ...numbered(ends("m1", 0, "High water")).map((frame) => ({
        ...frame,
        sequence_number: 4 + frame.sequence_number,
      })),
    ];
    const rest = goesOn(says2("m2", 1, "High water is"), ...ends("m2", 1, "High water is"), completed([]));
    for (const length of [4, 5, 6, 7]) {
      const { fault, json } = joined(responses, whole.slice(0, length), rest, "High water");
      assert.isUndefined(fault);
      const output = Json.list(Json.record(json.at(-1)?.response)?.output).flatMap((one) =>
        Json.list(Json.record(one)?.content),
      );
      assert.strictEqual(
        output.map((one) => Json.string(Json.record(one)?.text)).join(""),
        "High water is",
        `behind ${length}`,
      );
    }
  });

  it("a call in front of the seam is no text, and a server without numbers gets none", () => {
    const early = numbered([created("r2"), added(0, call), completed([])]);
    assert.strictEqual(joined(responses, shownFirst, early, "High water").fault, "not_text");
    const bare = shownFirst.map(({ sequence_number: _number, ...frame }) => frame);
    const rest = goesOn(says2("m2", 1, "High water is"), ...ends("m2", 1, "High water is"), completed([]));
    const { json } = joined(responses, bare, rest, "High water");
    assert.isTrue(json.every((frame) => frame?.sequence_number === undefined));
  });

  it("behind a refusal, a call and a hosted call that was cut nothing goes on", () => {
    const refusal = { type: "response.refusal.delta", ...at("m1", 0), delta: "no" };
    const cases: ReadonlyArray<readonly [Frame, string]> = [
      [refusal, "refusal_shown"],
      [added(1, call), "not_text_last"],
      [added(1, { type: "web_search_call", id: "w" }), "not_text_last"],
    ];
    for (const [frame, refused] of cases) {
      const splice = responses.splice?.() ?? assert.fail("no splice");
      for (const one of [...shownFirst, frame]) splice.recordSent(one);
      assert.strictEqual(splice.response().refusal, refused);
    }
  });
});
