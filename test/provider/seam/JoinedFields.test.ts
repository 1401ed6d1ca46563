/**
 * The fields of a joined answer that are of both attempts: what it cost, what is cited, what is told of it at the end.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import { joinedCharactersMax } from "../../../src/provider/openai-responses/Shown.ts";
import { shownCharactersMax } from "../../../src/seam/TextSeam.ts";
import * as Frames from "./Frames.ts";

const { added, at, close, completed, created, delta, done, end, ends, item, numbered, open, part, partAdded } = Frames;
const { says, says2, start, stop, text, thought } = Frames;

const long = "The tide comes in twice a day. ";

describe("fields of Messages", () => {
  const first = [start, open(0, text), says(0, `${long}High water`)];
  const joined = (told: ReadonlyArray<Frames.Frame>, shown: ReadonlyArray<Frames.Frame> = first, holds = 0) =>
    Frames.joined(Frames.messages, shown, [start, ...told, end], "High water", holds).json;

  it("output is that of both, without the anchor that came twice", () => {
    const json = joined([open(0, text), says(0, "High water is"), close(0), stop("end_turn")]);
    // 41 characters had left, about 11 tokens; the anchor is about 3 of the 20 that the second tells.
    assert.deepStrictEqual(json.at(-2)?.usage, { input_tokens: 10, output_tokens: 28 });
  });

  it("the first tells of its input what the second does not, and the other way round", () => {
    const usage = { input_tokens: 10, cache_read_input_tokens: 4, output_tokens: 1 };
    const shown = [{ ...start, message: { id: "a", usage } }, ...first.slice(1)];
    const told = { ...stop("end_turn"), usage: { cache_creation_input_tokens: 7, cache_read_input_tokens: 9 } };
    const json = joined([open(0, text), says(0, "High water is"), close(0), told], shown);
    assert.deepStrictEqual(json.at(-2)?.usage, { cache_creation_input_tokens: 0, cache_read_input_tokens: 4 });
  });

  it("a citation of the block that goes on is told once, another one where the block is open", () => {
    const cites = (index: number, cited_text: string) =>
      delta(index, { type: "citations_delta", citation: { type: "page_location", cited_text } });
    const told = [cites(0, "one"), says(0, "High water is"), cites(0, "one"), cites(0, "two"), close(0)];
    const json = joined([open(0, text), ...told, stop("end_turn")], [...first, cites(0, "one")]);
    assert.deepStrictEqual(json.slice(0, 3), [says(0, " is"), cites(0, "two"), close(0)]);
  });

  it("a block that goes on as another one has no citations of the half that stands elsewhere", () => {
    const citations = [{ type: "page_location", cited_text: "one" }];
    const told = [open(0, { ...text, citations }), says(0, "High water is"), close(0), stop("end_turn")];
    const json = joined(told, [...first, close(0)]);
    assert.deepStrictEqual(json.slice(0, 2), [open(1, text), says(1, " is")]);
  });

  it("what is held leaves in front of the end of its block, wherever that comes", () => {
    for (const ended of [[close(0)], []]) {
      const json = joined([open(0, text), says(0, "High water is"), ...ended, stop("end_turn")], first, 9);
      assert.deepStrictEqual(json.slice(0, 2), [says(0, " is"), close(0)]);
      const part = joined([open(0, text), says(0, "High water is six."), ...ended, stop("end_turn")], first, 3);
      assert.deepStrictEqual(part.slice(0, 3), [says(0, " is s"), says(0, "ix."), close(0)]);
    }
  });
});

describe("fields of Responses", () => {
  const opened = [created("r1"), added(0, item("m1")), partAdded("m1", 0), says2("m1", 0, `${long}High water`)];
  const shown = numbered(opened);
  const whole = `${long}High water is`;
  const joined = (told: ReadonlyArray<Frames.Frame>, first = shown, holds = 0) =>
    Frames.joined(Frames.responses, first, numbered([created("r2"), ...told]), "High water", holds).json;
  const said = [
    added(0, item("m2")),
    partAdded("m2", 0),
    says2("m2", 0, "High water is"),
    ...ends("m2", 0, "High water is"),
  ];
  const response = (json: ReadonlyArray<Json.JsonRecord | undefined>) => Json.record(json.at(-1)?.response);

  it("every event of the joined message tells the place and the whole text of the one that is open", () => {
    const json = joined([
      added(0, thought),
      done(0, thought),
      ...said.map((frame) => ({ ...frame, output_index: 1 })),
      completed([]),
    ]);
    const own = json.slice(0, 4).map((frame) => {
      const { sequence_number: _number, ...bare } = frame ?? {};
      return bare;
    });
    assert.deepStrictEqual(own, [
      says2("m1", 0, " is"),
      ...ends("m1", 0, whole).slice(0, 2),
      done(0, { ...item("m1", [part(whole)]), status: "completed" }),
    ]);
  });

  it("the end tells the whole text of a response that is longer than one that is continued", () => {
    const before = `${"w".repeat(shownCharactersMax - 10)}High water`;
    const rest = ` ${"more ".repeat(shownCharactersMax / 4)}`;
    const json = joined(
      [...said.slice(0, 2), says2("m2", 0, `High water${rest}`), ...ends("m2", 0, `High water${rest}`), completed([])],
      numbered([...opened.slice(0, 3), says2("m1", 0, before)]),
    );
    assert.strictEqual(json.find((frame) => frame?.type === "response.output_text.done")?.text, before + rest);
    const [message] = Json.list(response(json)?.output).map(Json.record);
    assert.strictEqual(Json.record(Json.list(message?.content)[0])?.text, before + rest);
  });

  it("the continuation fails whose text is longer than the end can tell", () => {
    const piece = `High water ${"more ".repeat(joinedCharactersMax / 5)}`;
    const told = numbered([created("r2"), ...said.slice(0, 2), says2("m2", 0, piece), says2("m2", 0, "more")]);
    assert.strictEqual(Frames.joined(Frames.responses, shown, told, "High water").fault, "unwritable");
  });

  it("a second part goes on in the second part", () => {
    const [spoken] = numbered([says2("m1", 0, "High water")]);
    const first = numbered([
      ...opened,
      ...ends("m1", 0, `${long}High water`).slice(0, 2),
      { ...partAdded("m1", 0), content_index: 1 },
      { ...spoken, content_index: 1 },
    ]);
    const json = Frames.joined(
      Frames.responses,
      first,
      numbered([created("r2"), ...said, completed([])]),
      "High water",
    ).json;
    assert.deepStrictEqual(
      json.slice(0, 3).map((frame) => frame?.content_index),
      [1, 1, 1],
    );
  });

  it("the end tells the cost of both, the text of both and when the first began", () => {
    const end2 = completed([item("m2")]);
    const told = { ...end2, response: { ...end2.response, output_text: "High water is" } };
    const found = response(joined([...said, told]));
    // 41 characters had left, about 11 tokens; the anchor is about 3 of the 9 that the second tells.
    assert.deepStrictEqual(found?.usage, { input_tokens: 5, output_tokens: 17, total_tokens: 22 });
    assert.strictEqual(found?.output_text, whole);
    assert.strictEqual(found?.created_at, 7);
    assert.deepStrictEqual(found?.output, [{ ...item("m1", [part(whole)]), status: "completed" }]);
  });

  it("reasoning that stood open beside the text is closed, and a message that the second never ends is too", () => {
    const beside = { ...thought, summary: [] };
    const first = numbered([created("r1"), added(0, beside), ...opened.slice(1).map((frame) => moved(frame, 1))]);
    const json = joined([...said.slice(0, 3), completed([])], first, 9);
    const closed = json.flatMap((frame) => (frame?.type === "response.output_item.done" ? [frame.output_index] : []));
    assert.deepStrictEqual([...closed].sort(), [0, 1]);
    const own = [added(1, item("m3")), { ...partAdded("m3", 1) }, says2("m3", 1, "Six.")];
    const ended = joined([...said, ...own, completed([])]);
    assert.deepStrictEqual(
      ended.flatMap((frame) => (frame?.type === "response.output_item.done" ? [frame.output_index] : [])),
      [0, 1],
    );
  });

  it("a lifecycle event of the second is dropped also behind the seam", () => {
    const late = { ...created("r2"), type: "response.in_progress" };
    const json = joined([...said.slice(0, 3), late, ...said.slice(3), completed([])]);
    assert.isTrue(json.every((frame) => frame?.type !== "response.in_progress"));
  });

  it("the end of an annotation is moved with its start", () => {
    const annotation = { type: "url_citation", url: "u", start_index: 11, end_index: 13 };
    const event = { type: "response.output_text.annotation.added", ...at("m2", 0), annotation_index: 0, annotation };
    const json = joined([...said.slice(0, 3), event, ...said.slice(3), completed([])]);
    const found = Json.record(json.find((frame) => frame?.annotation !== undefined)?.annotation);
    assert.strictEqual(whole.slice(Number(found?.start_index), Number(found?.end_index)), "is");
  });
});

const moved = (frame: Frames.Frame, output_index: number): Frames.Frame => ({ ...frame, output_index });
