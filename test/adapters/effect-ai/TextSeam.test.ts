/**
 * A step whose text broke off goes on behind it where the seam is proven: the caller reads one text in one block, and the history
 * holds one message.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Result, Stream } from "effect";
import { Prompt, type Response } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { type Answer, type Asked, call, finish, layers, metadata, type Part, reset, tools } from "./Scripted.ts";
import { lines, soon } from "./Soon.ts";

/** One step that goes on by itself: what its caller reads, and what the models were asked. */
const step = (answers: ReadonlyArray<Answer>, toolChoice: EffectAi.AgentOptions<never>["toolChoice"] = "auto") =>
  Effect.gen(function* () {
    const asked: Asked = { prompts: [] };
    const ran: Array<string> = [];
    const read: Array<Response.AnyPart> = [];
    const events: Array<string> = [];
    const transcript = new EffectAi.Transcript();
    const played = Effect.gen(function* () {
      const toolkit = yield* tools;
      return yield* EffectAi.run({ prompt: "go", toolkit, toolChoice, continueText: "auto" }).pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            transcript.take(event);
            if (event._tag === "Part") read.push(event.part);
            else if (event._tag === "Continued") events.push(`continued at ${event.at} by ${event.proof}`);
            else if (event._tag !== "ToolSettled") events.push(event._tag);
          }),
        ),
        soon,
      );
    }).pipe(Effect.provide(layers(answers, ran, asked)));
    const end = yield* Effect.result(played);
    return {
      isWhole: Result.isSuccess(end),
      ran,
      events,
      told: read.flatMap((part) => {
        if (part.type === "text-delta") return [`${part.id}: ${part.delta}`];
        return part.type === "text-start" || part.type === "text-end" ? [`${part.type} ${part.id}`] : [];
      }),
      text: read.map((part) => (part.type === "text-delta" ? part.delta : "")).join(""),
      requests: asked.prompts.map(({ prompt }) => lines(prompt)),
      history: lines(Prompt.concat(Prompt.make("go"), transcript.prompt())),
    };
  });

const deltas = (id: string, ...pieces: ReadonlyArray<string>): ReadonlyArray<Part> =>
  pieces.map((delta): Part => ({ type: "text-delta", id, delta }));
const start = (id: string): Part => ({ type: "text-start", id });
const ended = (id: string): Part => ({ type: "text-end", id });

const before = "It rained all night. The river rose, and the old bri";
const behind = "dge fell into it at dawn.";
const broken: Answer = {
  parts: [metadata, start("a"), ...deltas("a", "It rained all night. ", "The river rose, and the old bri")],
  error: reset,
};
const goesOn: Answer = {
  parts: [
    metadata,
    start("b"),
    ...deltas("b", before.slice(0, 30), `${before.slice(30)}dge fell `, "into it at dawn."),
    ended("b"),
    finish("stop"),
  ],
};

describe("EffectAi.run with continueText auto", () => {
  it.effect("continues in the block that was open at the break, and writes one message", () =>
    Effect.gen(function* () {
      const it = yield* step([broken, goesOn]);
      assert.isTrue(it.isWhole);
      assert.strictEqual(it.text, before + behind);
      assert.include(it.events, `continued at ${before.length} by anchor`);
      assert.deepStrictEqual(
        it.told.filter((told) => !told.startsWith("a: ")),
        ["text-start a", "text-end a"],
      );
      assert.deepStrictEqual(it.history, ["user text go", `assistant text ${before}${behind}`]);
    }),
  );

  it.effect("requests the anchor in a user message after the shown text", () =>
    Effect.gen(function* () {
      const it = yield* step([broken, goesOn]);
      const [, request = []] = it.requests;
      assert.deepStrictEqual(request.slice(0, 2), ["user text go", `assistant text ${before}`]);
      assert.lengthOf(request, 3);
      assert.match(request[2] ?? "", /^user text Your last message was cut off .*<cut>.*the old bri<\/cut>/);
    }),
  );

  it.effect("begins a block of its own where the shown one had ended", () =>
    Effect.gen(function* () {
      const cut: Answer = { parts: [...broken.parts, ended("a")], error: reset };
      const it = yield* step([cut, goesOn]);
      assert.strictEqual(it.text, before + behind);
      assert.deepStrictEqual(
        it.told.filter((told) => told.startsWith("text-")),
        ["text-start a", "text-end a", "text-start b", "text-end b"],
      );
      assert.strictEqual(
        it.history
          .slice(1)
          .map((line) => line.replace(/^assistant text /, ""))
          .join(""),
        before + behind,
      );
    }),
  );

  it.effect("ends the block where the response stops exactly behind what was shown", () =>
    Effect.gen(function* () {
      const stops: Answer = { parts: [start("b"), ...deltas("b", before), ended("b"), finish("stop")] };
      const it = yield* step([broken, stops]);
      assert.isTrue(it.isWhole);
      assert.strictEqual(it.text, before);
      assert.strictEqual(it.told.at(-1), "text-end a");
      assert.deepStrictEqual(it.history, ["user text go", `assistant text ${before}`]);
    }),
  );

  it.effect("continues twice, and each request contains the text shown so far once", () =>
    Effect.gen(function* () {
      const second: Answer = { parts: [start("b"), ...deltas("b", `${before}dge fell into it `)], error: reset };
      const third: Answer = {
        parts: [start("c"), ...deltas("c", `${before}${behind} Nobody saw it.`), ended("c"), finish("stop")],
      };
      const it = yield* step([broken, second, third]);
      assert.strictEqual(it.text, `${before}${behind} Nobody saw it.`);
      // White space waits for what comes behind it: the last one was not shown.
      assert.strictEqual(it.requests[2]?.[1], `assistant text ${before}dge fell into it`);
      assert.deepStrictEqual(it.history, ["user text go", `assistant text ${it.text}`]);
    }),
  );

  it.effect("runs a call behind the seam, once", () =>
    Effect.gen(function* () {
      const calls: Answer = {
        parts: [
          start("b"),
          ...deltas("b", `${before}dge fell.`),
          ended("b"),
          ...call("c1", "bash", { cmd: "ls" }),
          finish("tool-calls"),
        ],
      };
      const it = yield* step([broken, calls]);
      assert.deepStrictEqual(it.ran, ["bash ls"]);
      assert.deepStrictEqual(it.history, [
        "user text go",
        `assistant text ${before}dge fell.`,
        "assistant call c1",
        "tool result c1 false",
      ]);
    }),
  );

  it.effect("hands over nothing of a response that starts otherwise, and asks", () =>
    Effect.gen(function* () {
      const other: Answer = {
        parts: [start("b"), ...deltas("b", "Sure! Here is the rest."), ended("b"), finish("stop")],
      };
      const it = yield* step([broken, other]);
      assert.isFalse(it.isWhole);
      assert.strictEqual(it.text, before);
      assert.deepStrictEqual(it.history, ["user text go", `assistant text ${before}`]);
      assert.lengthOf(it.requests, 2);
    }),
  );

  it.effect("asks a person if the request demands a call", () =>
    Effect.gen(function* () {
      for (const choice of ["required", { tool: "bash" }, { mode: "required", oneOf: ["bash"] }] as const) {
        const it = yield* step([broken, goesOn], choice as never); // the names are those of the toolkit above
        assert.lengthOf(it.requests, 1);
        assert.strictEqual(it.text, before);
      }
    }),
  );
});
