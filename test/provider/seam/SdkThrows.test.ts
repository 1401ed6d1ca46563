/**
 * Where an official SDK throws without a rewrite of the splice: shown with the rewrite undone, and that it does not throw with it.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import * as Frames from "./Frames.ts";
import { bytesOf, named } from "./JoinedStream.ts";
import { aiSdkAnthropic, anthropicMessage, openAiResponse } from "./SdkReadings.ts";

const bytes = (frames: ReadonlyArray<Frames.Frame>): Uint8Array => bytesOf(frames.map(named));

const errorOf = (
  read: (stream: Uint8Array) => Promise<unknown>,
  frames: ReadonlyArray<Frames.Frame>,
): Promise<string> =>
  read(bytes(frames)).then(
    () => "",
    (error: unknown) => String(error),
  );

const message = { id: "a", type: "message", role: "assistant", model: "m", content: [], stop_reason: null };
const start = { ...Frames.start, message: { ...message, stop_sequence: null, usage: Frames.start.message.usage } };
const second = { ...start, message: { ...start.message, id: "b" } };

describe("the SDK of Anthropic and the AI SDK", () => {
  const first = [start, Frames.open(0, Frames.text), Frames.says(0, "High water")];
  const told = [
    second,
    Frames.open(0, Frames.text),
    Frames.says(0, "High water is"),
    Frames.close(0),
    Frames.stop("end_turn"),
    Frames.end,
  ];
  const { json } = Frames.joined(Frames.messages, first, told, "High water");
  const joined = [...first, ...json.map((frame) => frame ?? {})];

  it("throw at a second message_start, and read the spliced message", async () => {
    const kept = [...first, second, ...joined.slice(first.length)];
    assert.match(await errorOf(anthropicMessage, kept), /Unexpected event order, got message_start/);
    assert.notStrictEqual(await errorOf(aiSdkAnthropic, kept), "");
    assert.strictEqual((await aiSdkAnthropic(bytes(joined))).text, "High water is");
    const read = await anthropicMessage(bytes(joined));
    assert.deepStrictEqual(
      read.content.map((block) => block.type === "text" && block.text),
      ["High water is"],
    );
  });
});

describe("the SDK of OpenAI", () => {
  const annotation = (start_index: number, end_index: number, annotation_index: number) => ({
    type: "response.output_text.annotation.added",
    ...Frames.at("m2", 1),
    annotation_index,
    annotation: { type: "url_citation", url: "u", title: "t", start_index, end_index },
  });
  const words = "High water is six.";
  const told = Frames.goesOn(
    Frames.says2("m2", 1, words),
    annotation(0, 5, 0),
    annotation(11, 13, 1),
    ...Frames.ends("m2", 1, words),
    Frames.added(2, Frames.call),
    Frames.done(2, Frames.call),
    Frames.completed([Frames.thought, Frames.item("m2", [Frames.part(words)]), Frames.call]),
  );
  const { json } = Frames.joined(Frames.responses, Frames.shownFirst, told, "High water");
  const joined: ReadonlyArray<Frames.Frame> = [...Frames.shownFirst, ...json.map((frame) => frame ?? {})];
  const seam = Frames.shownFirst.length;
  const undone = (undo: (frame: Frames.Frame) => ReadonlyArray<Frames.Frame>): ReadonlyArray<Frames.Frame> => [
    ...joined.slice(0, seam),
    ...joined.slice(seam).flatMap((frame) => undo(frame)),
  ];
  const isDone = (frame: Frames.Frame) =>
    frame.type === "response.output_item.done" && Json.record(frame.item)?.type === "message";

  it("reads the spliced response", async () => {
    const read = await openAiResponse(bytes(joined));
    assert.strictEqual(read.output_text, words);
    assert.deepStrictEqual(
      read.output.map(({ type }) => type),
      ["message", "reasoning", "function_call"],
    );
  });

  const cases: ReadonlyArray<readonly [string, RegExp, ReadonlyArray<Frames.Frame>]> = [
    [
      "a second identity",
      /Lifecycle response identity changed/,
      [...Frames.shownFirst, Frames.created("r2"), ...joined.slice(seam)],
    ],
    [
      "the item_id of the second",
      /expected item_id/,
      undone((frame) => [frame.item_id === "m1" ? { ...frame, item_id: "m2" } : frame]),
    ],
    [
      "the id of the second's message at its end",
      /identity|item/,
      undone((frame) => [isDone(frame) ? { ...frame, item: { ...Json.record(frame.item), id: "m2" } } : frame]),
    ],
    [
      "an annotation_index with a hole",
      /missing annotation at index/,
      undone((frame) => [frame.annotation === undefined ? frame : { ...frame, annotation_index: 1 }]),
    ],
    [
      "an item that is neither closed nor told at the end",
      /unfinished output items/,
      undone((frame) =>
        isDone(frame)
          ? []
          : [
              frame.response === undefined
                ? frame
                : { ...frame, response: { ...Json.record(frame.response), output: [] } },
            ],
      ),
    ],
    [
      "the output_index of the second",
      /./,
      undone((frame) => [frame.item_id === "m1" ? { ...frame, output_index: 1 } : frame]),
    ],
    [
      "the identity of the second at its end",
      /identity changed/,
      undone((frame) => [
        frame.response === undefined ? frame : { ...frame, response: { ...Json.record(frame.response), id: "r2" } },
      ]),
    ],
  ];
  for (const [what, error, frames] of cases)
    it(`throws at ${what}`, async () => {
      assert.match(await errorOf(openAiResponse, frames), error);
    });

  it("loses the first part in silence where the end tells the second's items alone", async () => {
    const own = undone((frame) => {
      const response = Json.record(frame.response);
      if (response === undefined) return [frame];
      const output = Json.list(response.output).map((one) =>
        Json.record(one)?.id === "m1" ? Frames.item("m1", [Frames.part(" is six.")]) : one,
      );
      return [{ ...frame, response: { ...response, output } }];
    });
    assert.notStrictEqual((await openAiResponse(bytes(own))).output_text, words);
  });
});
