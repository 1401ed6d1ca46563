/**
 * Answers that are not one block of text: thinking between the texts, several blocks, parts and messages, ids that come twice,
 * items that the end alone tells, types that the frame alone names. What a client reads behind the seam is one whole answer.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
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
  type Frame,
  item,
  joined,
  messages,
  numbered,
  open,
  part,
  partAdded,
  responses,
  says,
  says2,
  shownFirst,
  start,
  stop,
  text,
  thought,
  tool,
} from "./Frames.ts";
import { bytesOf, join, named, type WireEvent } from "./JoinedStream.ts";
import { itemFaults, messageFaults } from "./NextTurn.ts";
import { plainVerifier } from "./PlainVerifier.ts";
import { aiSdkAnthropic, aiSdkResponses, anthropicMessage, openAiResponse } from "./SdkReadings.ts";

interface Case {
  readonly name: string;
  readonly first: ReadonlyArray<Frame>;
  readonly told: ReadonlyArray<Frame>;
  readonly anchor: string;
  /** The blocks or items that the SDK reads. */
  readonly read: ReadonlyArray<string>;
}

const message = { id: "a", type: "message", role: "assistant", model: "m", content: [], stop_reason: null };
const started = { ...start, message: { ...message, stop_sequence: null, usage: start.message.usage } };
const thinking = (index: number, signature: string) => [
  open(index, { type: "thinking", thinking: "", signature: "" }),
  delta(index, { type: "thinking_delta", thinking: "Hm." }),
  delta(index, { type: "signature_delta", signature }),
  close(index),
];
const block = (index: number, ...words: ReadonlyArray<string>) => [
  open(index, text),
  ...words.map((one) => says(index, one)),
  close(index),
];
const called = (index: number) => [
  open(index, tool),
  delta(index, { type: "input_json_delta", partial_json: "{}" }),
  close(index),
];

const ofMessages: ReadonlyArray<Case> = [
  {
    name: "thinking between texts on both sides",
    first: [...thinking(0, "s0"), ...block(1, "One."), ...thinking(2, "s2"), ...block(3, "Two is").slice(0, -1)],
    told: [...thinking(0, "t0"), ...block(1, "Two is here."), ...thinking(2, "t2"), ...called(3), stop("tool_use")],
    anchor: "Two is",
    read: ["thinking s0", "text One.", "thinking s2", "text Two is here.", "thinking t2", "tool_use"],
  },
  {
    name: "thinking inside of the anchor",
    first: block(0, "High water").slice(0, -1),
    told: [...block(0, "High"), ...thinking(1, "t"), ...block(2, " water is six."), stop("end_turn")],
    anchor: "High water",
    read: ["text High water is six."],
  },
  {
    name: "thinking right behind the anchor, before anything proves the seam",
    first: block(0, "High water").slice(0, -1),
    told: [...block(0, "High water"), ...thinking(1, "t"), ...block(2, " is six."), stop("end_turn")],
    anchor: "High water",
    read: ["text High water", "text  is six."],
  },
  {
    name: "two texts shown, the anchor in both, and two texts behind it",
    first: [...block(0, "High "), ...block(1, "water").slice(0, -1)],
    told: [...block(0, "High water"), ...block(1, " is"), ...block(2, " six."), stop("end_turn")],
    anchor: "High water",
    read: ["text High ", "text water", "text  is", "text  six."],
  },
  {
    name: "an empty text that stood open behind the one that was closed",
    first: [...block(0, "High water"), open(1, text)],
    told: [...block(0, "High water is six."), stop("end_turn")],
    anchor: "High water",
    read: ["text High water", "text  is six."],
  },
  {
    name: "empty texts around the anchor",
    first: block(0, "High water").slice(0, -1),
    told: [...block(0), ...block(1, "High water"), ...block(2), ...called(3), stop("tool_use")],
    anchor: "High water",
    read: ["text High water", "tool_use"],
  },
];

const read = (value: unknown): string => {
  const { signature, text: words, type } = Json.record(value) ?? {};
  if (type === "text") return `text ${words}`;
  return type === "thinking" ? `thinking ${signature}` : Json.string(type);
};

const bare = (frames: ReadonlyArray<Frame>): ReadonlyArray<WireEvent> =>
  frames.map((frame) => {
    const { type, ...json } = frame;
    return { event: Json.string(type), json };
  });

/** What a client reads where the frames alone name the types, with the types in it. */
const joinedBare = (protocol: typeof messages, { anchor, first, told }: Case): ReadonlyArray<Frame> => {
  const found = join(protocol, bare(first), [{ events: () => bare(told), verifier: () => plainVerifier(anchor) }]);
  assert.isUndefined(found.fault);
  return found.events.map(({ event, json }) => ({ ...Json.record(json), type: event }));
};

describe("messages of several blocks", () => {
  for (const { name, ...one } of ofMessages) {
    const whole = { name, ...one, first: [started, ...one.first], told: [started, ...one.told, end] };
    it(`${name}: the SDK reads each once, and the API takes them in the next turn`, async () => {
      for (const holds of [0, 3]) {
        const { fault, json } = joined(messages, whole.first, whole.told, whole.anchor, holds);
        assert.isUndefined(fault);
        const bytes = bytesOf([...whole.first, ...json.map((frame) => frame ?? {})].map(named));
        const { content } = await anthropicMessage(bytes);
        assert.deepStrictEqual(content.map(read), whole.read);
        assert.deepStrictEqual(messageFaults(content), []);
        const next = Json.list(Json.record((await aiSdkAnthropic(bytes)).next)?.messages).map(Json.record);
        assert.deepStrictEqual(next.map((turn) => turn?.role).slice(0, 2), ["user", "assistant"]);
        assert.deepStrictEqual(messageFaults(next[1]?.content), []);
      }
    });

    it(`${name}: also where the frames alone name the types`, async () => {
      const frames = joinedBare(messages, whole);
      const { content } = await anthropicMessage(bytesOf(frames.map(named)));
      assert.deepStrictEqual(content.map(read), whole.read);
    });
  }
});

describe("a body of several messages", () => {
  it("passes those behind the joined one as they came, also where the frames alone name the types", () => {
    const first = [started, ...block(0, "High water").slice(0, -1)];
    const another = [started, ...block(0, "And another."), stop("end_turn"), end];
    const told = [started, ...block(0, "High water is"), stop("end_turn"), end, ...another];
    const frames = joinedBare(messages, { name: "", first, told, anchor: "High water", read: [] });
    assert.deepStrictEqual(frames.slice(-another.length), another);
  });
});

describe("an empty text block that stood open", () => {
  const first = [started, ...block(0, "High water"), open(1, text)];

  it("cannot be taken back: where no text follows the anchor nothing goes on", () => {
    for (const more of ["", "\n"]) {
      const told = [started, ...block(0, `High water${more}`), ...called(1), stop("tool_use"), end];
      const found = joined(messages, first, told, "High water");
      assert.deepStrictEqual([found.fault, found.json], ["unwritable", []]);
      const ended = [started, ...block(0, `High water${more}`), stop("end_turn"), end];
      assert.strictEqual(joined(messages, first, ended, "High water").fault, "unwritable");
    }
  });
});

const partAt = (id: string, index: number, content_index: number, words: string) => {
  const place = { item_id: id, output_index: index, content_index };
  return [
    { type: "response.content_part.added", ...place, part: part("") },
    { type: "response.output_text.delta", ...place, delta: words },
    { type: "response.output_text.done", ...place, text: words },
    { type: "response.content_part.done", ...place, part: part(words) },
  ];
};
const said = (id: string, index: number, ...words: ReadonlyArray<string>) => [
  added(index, item(id)),
  ...words.flatMap((one, count) => partAt(id, index, count, one)),
  done(
    index,
    item(
      id,
      words.map((one) => part(one)),
    ),
  ),
];
const whole = (id: string, ...words: ReadonlyArray<string>) =>
  item(
    id,
    words.map((one) => part(one)),
  );
const opened = shownFirst.slice(1);

const ofResponses: ReadonlyArray<Case> = [
  {
    name: "two parts shown, the anchor in both, and two parts behind it",
    first: said("m1", 0, "High ", "water").slice(0, 7),
    told: [...said("m2", 0, "High water", " is", " six."), completed([whole("m2", "High water", " is", " six.")])],
    anchor: "High water",
    read: ["message High |water| is| six."],
  },
  {
    name: "two messages shown, and two behind",
    first: [...said("m1", 0, "One."), ...said("m2", 1, "High water").slice(0, 3)],
    told: [
      ...said("n1", 0, "High water is."),
      ...said("n2", 1, "Six."),
      completed([whole("n1", "High water is."), whole("n2", "Six.")]),
    ],
    anchor: "High water",
    read: ["message One.", "message High water is.", "message Six."],
  },
  {
    name: "ids of the first on everything of the second",
    first: [added(0, thought), done(0, thought), ...said("m1", 1, "High water").slice(0, 3)],
    told: [
      added(0, thought),
      done(0, thought),
      ...said("m1", 1, "High water is"),
      added(2, { ...call, id: "m1" }),
      done(2, { ...call, id: "m1" }),
      completed([thought, whole("m1", "High water is"), { ...call, id: "m1" }]),
    ],
    anchor: "High water",
    read: ["reasoning", "message High water is", "reasoning", "function_call"],
  },
  {
    name: "a continuation that its end alone tells",
    first: opened,
    told: [completed([whole("m2", "High water is six."), call])],
    anchor: "High water",
    read: ["message High water is six.", "function_call"],
  },
  {
    name: "a call that the end alone tells, behind reasoning",
    first: opened,
    told: [
      added(0, thought),
      done(0, thought),
      ...said("m2", 1, "High water is"),
      completed([thought, whole("m2", "High water is"), call]),
    ],
    anchor: "High water",
    read: ["message High water is", "reasoning", "function_call"],
  },
  {
    name: "reasoning between two messages of the second",
    first: opened,
    told: [
      ...said("m2", 0, "High water is."),
      added(1, thought),
      done(1, thought),
      ...said("m3", 2, "Six."),
      completed([whole("m2", "High water is."), thought, whole("m3", "Six.")]),
    ],
    anchor: "High water",
    read: ["message High water is.", "reasoning", "message Six."],
  },
  {
    name: "reasoning in front of the seam, and two messages behind",
    first: opened,
    told: [
      added(0, thought),
      done(0, thought),
      ...said("m2", 1, "High water is."),
      ...said("m3", 2, "Six."),
      completed([thought, whole("m2", "High water is."), whole("m3", "Six.")]),
    ],
    anchor: "High water",
    read: ["message High water is.", "message Six."],
  },
  {
    name: "the anchor in two messages of the second",
    first: opened,
    told: [
      ...said("m2", 0, "High "),
      ...said("m3", 1, "water is."),
      completed([whole("m2", "High "), whole("m3", "water is.")]),
    ],
    anchor: "High water",
    read: ["message High water is."],
  },
  {
    name: "a message that was closed, and no more text",
    first: said("m1", 0, "High water"),
    told: [...said("m2", 0, "High water"), added(1, call), done(1, call), completed([whole("m2", "High water"), call])],
    anchor: "High water",
    read: ["message High water", "function_call"],
  },
];

const readItem = (value: unknown): string => {
  const { content, type } = Json.record(value) ?? {};
  const words = Json.list(content).map((one) => Json.string(Json.record(one)?.text));
  return type === "message" ? `message ${words.join("|")}` : Json.string(type);
};

const numberedOn = (frames: ReadonlyArray<Frame>) => numbered([created("r"), ...frames]);

describe("responses of several items", () => {
  for (const one of ofResponses) {
    const both = { ...one, first: numberedOn(one.first), told: numberedOn(one.told) };
    it(`${one.name}: the SDK reads each once, and the API takes them in the next turn`, async () => {
      for (const holds of [0, 3]) {
        const { fault, json } = joined(responses, both.first, both.told, one.anchor, holds);
        assert.isUndefined(fault);
        const bytes = bytesOf([...both.first, ...json.map((frame) => frame ?? {})].map(named));
        const response = await openAiResponse(bytes);
        assert.deepStrictEqual(response.output.map(readItem), one.read);
        assert.deepStrictEqual(itemFaults(response.output), []);
        const { next } = await aiSdkResponses(bytes);
        assert.deepStrictEqual(itemFaults(Json.list(Json.record(next)?.input).slice(1, -1)), []);
      }
    });

    it(`${one.name}: also where the frames alone name the types`, async () => {
      const response = await openAiResponse(bytesOf(joinedBare(responses, both).map(named)));
      assert.deepStrictEqual(response.output.map(readItem), one.read);
    });
  }

  it("annotations that the end of the part alone tells are moved by code points", () => {
    const cited = (start_index: number, end_index: number) => ({
      type: "url_citation",
      url: "u",
      start_index,
      end_index,
    });
    const first = numbered([
      created("r"),
      added(0, item("m1")),
      partAdded("m1", 0),
      says2("m1", 0, "\u{1F30A}\u{1F30A} High water"),
    ]);
    const words = "\u{1F30A} High water is six.";
    const annotations = [cited(2, 6), cited(16, 19)];
    const told = numbered([
      created("r2"),
      added(0, item("m2")),
      partAdded("m2", 0),
      says2("m2", 0, words),
      { type: "response.output_text.done", ...at("m2", 0), text: words },
      { type: "response.content_part.done", ...at("m2", 0), part: part(words, annotations) },
      done(0, item("m2", [part(words, annotations)])),
      completed([item("m2", [part(words, annotations)])]),
    ]);
    const { fault, json } = joined(responses, first, told, "\u{1F30A} High water");
    assert.isUndefined(fault);
    const [last] = Json.list(Json.record(json.at(-1)?.response)?.output).map(Json.record);
    const [joinedPart] = Json.list(last?.content).map(Json.record);
    assert.deepStrictEqual(joinedPart?.annotations, [cited(17, 20)]);
    assert.strictEqual([...Json.string(joinedPart?.text)].slice(17, 20).join(""), "six");
  });

  it("an event of no type and no name is not given one", () => {
    const foreign = { foo: 1 };
    const told = numbered([created("r2"), ...said("m2", 0, "High water is")]);
    const found = join(responses, shownFirst.map(named), [
      {
        events: () => [...told.map(named), { event: "message", json: foreign }, named(completed([]))],
        verifier: () => plainVerifier("High water"),
      },
    ]);
    assert.isTrue(found.events.every(({ json }) => Json.record(json)?.type !== "message"));
  });
});
