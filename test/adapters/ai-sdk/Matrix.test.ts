import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { CallInterrupted } from "../../../src/adapters/ai-sdk/AiSdk.ts";
import { FaultJudge } from "../../../src/testing/index.ts";
import type { Break, FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { type ProviderName, providerNames } from "./Providers.ts";
import { type Played, play } from "./Turn.ts";

const contents = {
  text: [{ text: 4 }],
  "reasoning, text": [{ reasoning: 2 }, { text: 3 }],
  "text, call": [{ text: 2 }, { tool: "bash", input: { cmd: "ls -l /" } }],
  call: [{ tool: "bash", input: { cmd: "ls -l /" } }],
  "two calls": [
    { tool: "bash", input: { cmd: "ls" } },
    { tool: "bash", input: { cmd: "pwd" } },
  ],
} as const;

const kinds = ["rst", "fin", "end"] as const;

const places: ReadonlyArray<Pick<typeof Break.Encoded, "at" | "n">> = [
  { at: "before_head" },
  { at: "after_head" },
  ...[1, 2, 3, 5, 8].map((n) => ({ at: "event" as const, n })),
  { at: "tool_arguments" },
  { at: "terminal" },
];

interface Cell {
  readonly name: string;
  readonly script: FaultScriptInput;
}

/** Every content broken at every place in every way, and the answers that are errors. The healthy answer follows. */
const cells: ReadonlyArray<Cell> = Object.entries(contents).flatMap(([said, content]) => {
  const rest = [{ content }, { content: [{ text: 2 }] }];
  const broken = kinds.flatMap((kind) =>
    places
      .filter(({ at }) => at !== "before_head" || kind !== "end")
      .filter(({ at }) => at !== "tool_arguments" || said.includes("call"))
      .map((place) => ({
        name: `${said}: ${kind} at ${place.at}${place.n === undefined ? "" : ` ${place.n}`}`,
        script: { answers: [{ content, break: { kind, ...place } }, ...rest] },
      })),
  );
  const inBand = [0, 1].map((before) => ({
    name: `${said}: overloaded in the stream after ${before} blocks`,
    script: { answers: [{ content: [...content.slice(0, before), { error: "overloaded" as const }] }, ...rest] },
  }));
  return [...broken, ...inBand];
});

const statuses: ReadonlyArray<Cell> = [429, 500, 502, 503, 529].map((status) => ({
  name: `status ${status}`,
  script: { answers: [{ status }, { content: contents.call }, { content: [{ text: 2 }] }] },
}));

/** Why a played cell is not what was promised; undefined when it is. */
const wrong = (cell: Cell, played: Played): string | undefined => {
  const { completed, dangling, error, log, text, transcript, verdict } = played;
  const first = log[0];
  const nothingShown =
    first === undefined || first.text.length + (played.reasoning === "" ? 0 : first.reasoning.length) === 0;
  const problem = (() => {
    if (!FaultJudge.isClean(verdict)) return `judged ${JSON.stringify(verdict)}`;
    if (dangling.length > 0) return `calls without a result: ${dangling.join()}`;
    if (completed && "value" in text && !transcript.endsWith(text.value)) return `result.text is ${text.value}`;
    if (completed && error !== undefined) return `completed with an error: ${String(error)}`;
    if (!completed && !(error instanceof CallInterrupted)) return `ended without an error of ours: ${String(error)}`;
    if (error instanceof CallInterrupted && error.isRetryable) return "left to the SDK to repeat";
    if (nothingShown && !completed) return `nothing was shown and it was not recovered: ${String(error)}`;
    return undefined;
  })();
  return problem === undefined ? undefined : `${cell.name}: ${problem} after ${log.length} requests`;
};

const playAll = (provider: ProviderName) =>
  Effect.gen(function* () {
    const all = [...cells, ...statuses];
    const played = yield* Effect.forEach(
      all,
      (cell) => Effect.map(play({ provider, script: cell.script }), (result) => ({ cell, result })),
      { concurrency: 16 },
    );
    const faults = played.flatMap(({ cell, result }) => wrong(cell, result) ?? []);
    assert.deepEqual(faults, []);
    const recovered = played.filter(({ result }) => result.completed).length;
    // A matrix in which nothing was recovered, or nothing could not be, proves nothing.
    assert.isAbove(recovered, all.length / 3);
    assert.isBelow(recovered, all.length);
  });

describe("streamText with a tool, over every break of its first answer", () => {
  for (const provider of providerNames) {
    it.live(`${provider}: nothing twice, nothing cut, nothing lost in silence`, () => playAll(provider));
  }
});
