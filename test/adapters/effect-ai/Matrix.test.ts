/**
 * The matrix of the adapter, on real sockets: kind of break × moment × content × protocol, in two steps of one chat.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Break, FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { type Played, play, writtenIds, wrongs } from "./Cells.ts";

type Content = NonNullable<NonNullable<FaultScriptInput["answers"]>[number]["content"]>;

interface Shape {
  readonly name: string;
  readonly first: Content;
  readonly calls: number;
  /** Text, or reasoning that is not held, stands before the calls: a break behind it was seen by a caller that cannot discard. */
  readonly spoken: boolean;
  readonly reasoning: "live" | "held";
}

const thoughts: Content = [{ reasoning: 2 }, { tool: "bash", input: { cmd: "ls" } }, { tool: "read_file" }];

const shapes: ReadonlyArray<Shape> = [
  { name: "thoughts held back, two calls", first: thoughts, calls: 2, spoken: false, reasoning: "held" },
  { name: "thoughts and two calls", first: thoughts, calls: 2, spoken: true, reasoning: "live" },
  {
    name: "a call alone",
    first: [{ tool: "bash", input: { cmd: "rm ü" } }],
    calls: 1,
    spoken: false,
    reasoning: "live",
  },
  { name: "text and a call", first: [{ text: 3 }, { tool: "bash" }], calls: 1, spoken: true, reasoning: "live" },
];

const kinds = ["rst", "fin", "end", "stall", "keep_alive"] as const;
const moments: ReadonlyArray<Pick<Break, "at" | "n">> = [
  { at: "accept", n: 0 },
  { at: "request", n: 20 },
  { at: "before_head", n: 0 },
  { at: "after_head", n: 0 },
  { at: "event", n: 1 },
  { at: "event", n: 2 },
  { at: "event", n: 4 },
  { at: "byte", n: 300 },
  { at: "tool_arguments", n: 0 },
  { at: "terminal", n: 0 },
];
const headless = new Set(["accept", "request", "before_head"]);

interface Cell {
  readonly name: string;
  readonly shape: Shape;
  readonly broken: Break;
}

const cells: ReadonlyArray<Cell> = shapes.flatMap((shape) =>
  kinds.flatMap((kind) =>
    moments
      .filter(({ at }) => !headless.has(at) || (kind !== "end" && kind !== "keep_alive"))
      .map((moment) => ({
        name: `${shape.name}: ${kind} at ${moment.at} ${moment.n}`,
        shape,
        broken: { kind, ...moment },
      })),
  ),
);

/** The first step breaks, is asked again, and its tools run; then the second step breaks before its first word. */
const scriptOf = ({ broken, shape }: Cell): FaultScriptInput => ({
  answers: [
    { content: shape.first, break: broken },
    { content: shape.first },
    { content: [{ text: 3 }], break: { kind: "rst", at: "after_head", n: 0 } },
    { content: [{ text: 3 }] },
  ],
  after: "error",
});

const clocks = { first_progress: 1_000, idle: 1_000 } as const;

const serials = (text: string): ReadonlyArray<string> => text.match(/r\d+\.\d+·/g) ?? [];

const check = ({ name, shape }: Cell, played: Played): void => {
  const seen = serials(played.text);
  assert.strictEqual(new Set(seen).size, seen.length, `${name}: text was shown twice`);
  assert.strictEqual(new Set(played.ran).size, played.ran.length, `${name}: a call ran twice`);
  assert.strictEqual(played.cut, 0, `${name}: cut arguments ran`);
  assert.deepStrictEqual(wrongs(played.prompt), [], `${name}: the history`);
  assert.strictEqual(played.finished, played.error === undefined, `${name}: a silent truncation`);
  if (played.error !== undefined) {
    // Only what was seen may be lost, and it is said.
    assert.isTrue(shape.spoken, `${name}: ${played.rule} ${String(played.error)}`);
    assert.isTrue(
      seen.length > 0 || played.reasoned > 0,
      `${name}: nothing was shown and it was not recovered: ${String(played.error)}`,
    );
    assert.deepStrictEqual(played.ran, [], `${name}: a call of a broken answer ran`);
    return;
  }
  // A break that came too late broke nothing, and the answer of the step's next request is another step's.
  assert.isAtLeast(played.ran.length, shape.calls, `${name}: calls ran`);
  assert.isAbove(seen.length, 2, `${name}: the last answer is whole`);
};

describe("EffectAi through Chat, on real sockets", () => {
  for (const id of writtenIds) {
    it.live(`${id}: ${cells.length} cells without a duplicate, a second run, a cut argument or a silent end`, () =>
      Effect.gen(function* () {
        const all = yield* Effect.forEach(
          cells,
          (cell) =>
            Effect.map(play(id, scriptOf(cell), { clocks, reasoning: cell.shape.reasoning }), (played) => ({
              cell,
              played,
            })),
          { concurrency: 32 },
        );
        for (const { cell, played } of all) check(cell, played);
        const recovered = all.filter(({ played }) => played.error === undefined);
        assert.isAbove(recovered.length, cells.length * 0.6);
      }),
    );
  }

  it.live("a break in a later step never runs an earlier step's tool again, whatever the protocol", () =>
    Effect.gen(function* () {
      const answers: FaultScriptInput["answers"] = [
        { content: [{ tool: "bash" }] },
        { content: [{ tool: "bash" }], break: { kind: "rst", at: "tool_arguments", n: 0 } },
        { content: [{ tool: "bash" }] },
        { content: [{ reasoning: 2 }, { text: 2 }], break: { kind: "end", at: "event", n: 1 } },
        { content: [{ text: 2 }] },
      ];
      for (const id of writtenIds) {
        const played = yield* play(id, { answers, after: "error" }, { reasoning: "held" });
        assert.isTrue(played.finished, `${id}: ${played.rule} ${String(played.error)}`);
        assert.deepStrictEqual(played.ran, ["r1.t1", "r3.t1"]);
        assert.deepStrictEqual(wrongs(played.prompt), []);
      }
    }),
  );

  it.live("an unknown tool that the provider ran is never asked for twice; a search is", () =>
    Effect.gen(function* () {
      for (const id of ["openai-responses", "anthropic-messages", "openai-chat"] as const) {
        const script = (provider_tool: string): FaultScriptInput => ({
          answers: [
            { content: [{ provider_tool }, { text: 2 }], break: { kind: "end", at: "terminal", n: 0 } },
            { content: [{ text: 2 }] },
          ],
          after: "error",
        });
        const unknown = yield* play(id, script("launch"), { reveal: "on_complete" });
        assert.strictEqual(unknown.rule, "provider_tool_activity", id);
        assert.strictEqual(unknown.requests, 1);
        const search = yield* play(id, script("web_search"), { reveal: "on_complete" });
        assert.isTrue(search.finished, `${id}: ${search.rule}`);
        assert.strictEqual(search.requests, 2);
      }
    }),
  );

  it.live("answers that are handed over whole are recovered at every moment", () =>
    Effect.gen(function* () {
      const all = yield* Effect.forEach(
        cells.filter(({ broken, shape }) => shape.spoken && broken.kind === "rst"),
        (cell) =>
          Effect.map(play("anthropic-messages", scriptOf(cell), { reveal: "on_complete" }), (played) => ({
            cell,
            played,
          })),
        { concurrency: 16 },
      );
      for (const { cell, played } of all) {
        check(cell, played);
        assert.isTrue(played.finished, `${cell.name}: ${played.rule}`);
      }
    }),
  );

  it.live("an answer that was refused says so with the provider's reason", () =>
    Effect.gen(function* () {
      const played = yield* play("anthropic-messages", { answers: [{ status: 401 }] });
      assert.strictEqual(played.requests, 1);
      const { error } = played;
      assert.isTrue(typeof error === "object" && error !== null && "reason" in error);
      assert.include(String(error), "InvalidKey");
    }),
  );
});
