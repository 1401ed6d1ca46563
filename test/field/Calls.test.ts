/**
 * Plays what the field's servers do to tool calls. Each row names the reports that it stands for.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import { layer, type Step } from "../adapters/relay/RelayCases.ts";
import { type Got, good, played, protocols, type Said, written } from "./Wires.ts";

const half: Said = { call: "run", pieces: ['{"cmd":"rm', " -rf"], open: true };
const other: Said = { call: "run", pieces: ['{"cmd":"rm', " -r x"], open: true };
const third: Said = { call: "run", pieces: ['{"cmd":"rm', " -r y"], open: true };
const last: Said = { call: "run", pieces: ['{"cmd":"rm', " -r z"], open: true };
const end = "end" as const;

/** The steps of a response whose text has left before the rest comes. */
const textFirst = (stream: string): ReadonlyArray<Step> => {
  const behind = stream.indexOf("\n\n", stream.indexOf("So.")) + 2;
  return [stream.slice(0, behind), 2000, stream.slice(behind), end];
};

/** One case: what the provider sends to each request, and what its client has to get. */
interface Row {
  readonly name: string;
  readonly reports: string;
  readonly play: (protocol: ProtocolId) => ReturnType<typeof played>;
  readonly requests: number;
  /** How the client's response ends, and whether text of the call is in it. */
  readonly ends: string;
  readonly has?: string;
}

const rows: ReadonlyArray<Row> = [
  {
    name: "arguments that the request's own limit cuts are paid once and withheld",
    reports: "vllm #53270, #46303",
    play: (it) => played(it, [[written(it, [half], { tokens: 16 }), end]], { limit: 16, reveal: "on_complete" }),
    requests: 1,
    ends: "not_retryable",
  },
  {
    name: "arguments that the request's own limit cuts behind shown text are paid once and withheld",
    reports: "vllm #53270, #46303",
    play: (it) => played(it, [textFirst(written(it, [{ text: "So." }, half], { tokens: 16 }))], { limit: 16 }),
    requests: 1,
    ends: "not_retryable",
    has: "So.",
  },
  {
    name: "arguments that are cut at the same place twice are paid twice and withheld",
    reports: "pi #9897, agenc-core #1714",
    play: (it) => played(it, [[written(it, [half]), end]], { reveal: "on_complete" }),
    requests: 2,
    ends: "budget_exhausted",
  },
  {
    name: "arguments that are cut at another place each time are withheld after the last retry",
    reports: "pi #9897",
    play: (it) =>
      played(
        it,
        [half, other, third, last].map((call) => [written(it, [call]), end]),
      ),
    requests: 4,
    ends: "budget_exhausted",
  },
  {
    name: "a cut call is asked for again unseen",
    reports: "vllm #53270",
    play: (it) =>
      played(it, [
        [written(it, [half]), end],
        [good(it), end],
      ]),
    requests: 2,
    ends: "end",
    has: "GOOD",
  },
  {
    name: "a cut call behind shown text is withheld, and the text stays",
    reports: "vllm #53270",
    play: (it) => played(it, [textFirst(written(it, [{ text: "So." }, half]))]),
    requests: 1,
    ends: "text_shown",
    has: "So.",
  },
  {
    name: "a cut call behind shown text is no clean end, also where the client is to get the provider's own",
    reports: "vllm #53270",
    play: (it) => played(it, [textFirst(written(it, [{ text: "So." }, half]))], { ending: "as_provider" }),
    requests: 1,
    ends: "text_shown",
    has: "So.",
  },
];

const check = (got: Got, row: Pick<Row, "requests" | "ends" | "has">): void => {
  assert.deepStrictEqual({ requests: got.requests, end: got.end }, { requests: row.requests, end: row.ends });
  assert.notInclude(got.text, "rm", "no part of the cut call leaves");
  if (row.has !== undefined) assert.include(got.text, row.has);
};

describe("Calls of the field that are cut under a finish of whole calls", () => {
  for (const row of rows)
    for (const protocol of protocols)
      it.effect(`${protocol}: ${row.name} (${row.reports})`, () =>
        Effect.gen(function* () {
          check(yield* row.play(protocol), row);
        }).pipe(Effect.scoped, Effect.provide(layer)),
      );
});

const chunk = (tool_calls: ReadonlyArray<object>, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { role: "assistant", tool_calls }, finish_reason }] })}\n\n`;
const begins = (index: number, id: string, name: string, args = "") => ({
  index,
  id,
  type: "function",
  function: { name, arguments: args },
});
const piece = (index: number, args: string, id?: string) => ({
  index,
  ...(id === undefined ? {} : { id }),
  function: { arguments: args },
});
const done = `${chunk([], "tool_calls")}data: [DONE]\n\n`;

/** Responses of chat servers whose indices do not say which call a fragment belongs to. */
const drifts: ReadonlyArray<readonly [name: string, reports: string, ...chunks: ReadonlyArray<object>]> = [
  [
    "the rest of the arguments comes under the next index",
    "dirac #215, pipecat #4688",
    begins(0, "a", "run"),
    piece(0, '{"cm'),
    piece(1, 'd":"ls"}'),
  ],
  [
    "every fragment has an index of its own",
    "dirac #215",
    begins(0, "a", "run", "{"),
    piece(1, '"cmd":'),
    piece(2, '"ls"'),
    piece(3, "}"),
  ],
  [
    "the fragments of the second call come under the index of the first",
    "pi #9897",
    begins(0, "a", "run", '{"cmd":"ls"}'),
    begins(1, "b", "read"),
    piece(0, '{"path":'),
    piece(0, '"x"}'),
  ],
  [
    "two calls share an index, and the ids say whose a fragment is",
    "agno #8880",
    begins(0, "a", "run"),
    begins(0, "b", "read"),
    piece(0, '{"cmd":"ls"}', "a"),
    piece(0, '{"path":"x"}', "b"),
  ],
  [
    "a fragment repeats its call's id under another index",
    "agno #8880",
    begins(0, "a", "run"),
    begins(1, "b", "read"),
    piece(4, '{"cmd":"ls"}', "a"),
    piece(5, '{"path":"x"}', "b"),
  ],
  ["the first call begins at index 1", "pipecat #5342", begins(1, "a", "run"), piece(1, '{"cmd":'), piece(1, '"ls"}')],
];

describe("Calls of the field whose indices drift or collide", () => {
  for (const [name, reports, ...chunks] of drifts)
    it.effect(`openai-chat: ${name}: paid once, handed over as it came (${reports})`, () =>
      Effect.gen(function* () {
        const stream = chunks.map((it) => chunk([it])).join("") + done;
        assert.deepStrictEqual(yield* played("openai-chat", [[stream, end]]), {
          requests: 1,
          text: stream,
          end: "end",
        });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );

  const lost: ReadonlyArray<readonly [ProtocolId, string]> = [
    [
      "anthropic-messages",
      written("anthropic-messages", [{ call: "run", pieces: ['{"cmd":', '"ls"}'] }]).replace(
        '"index":0,"delta":{"type":"input_json_delta","partial_json":"\\"ls\\"}"}',
        '"index":7,"delta":{"type":"input_json_delta","partial_json":"\\"ls\\"}"}',
      ),
    ],
    [
      "openai-responses",
      written("openai-responses", [{ call: "run", pieces: ['{"cmd":', '"ls"}'] }]).replace(
        '"output_index":0,"item_id":"i0","delta":"\\"ls\\"}"',
        '"output_index":7,"item_id":"i0","delta":"\\"ls\\"}"',
      ),
    ],
  ];
  for (const [protocol, stream] of lost)
    it.effect(`${protocol}: a fragment under an index that began nothing belongs to the open call`, () =>
      Effect.gen(function* () {
        assert.include(stream, '7,"');
        assert.deepStrictEqual(yield* played(protocol, [[stream, end]]), { requests: 1, text: stream, end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );
});
