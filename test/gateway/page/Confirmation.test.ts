/**
 * Answers the same questions on the page, through the API and on the command line. A retry that may run something again needs a
 * confirmation in each of them, and no other answer does.
 */
import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Option, type Scope } from "effect";
import { answer } from "../../../src/cli/runs/answer.ts";
import { plainScreen } from "../../../src/cli/terminal/Screen.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { failure, printed } from "../../cli/Printed.ts";
import * as E from "../../recorder/Entries.ts";
import * as Runs from "./PageRuns.ts";
import { pageServer, put } from "./Server.ts";

const id = "run_a";

/** The question of a broken attempt with these facts. */
const question = (facts: Parameters<typeof Runs.facts>[0]): ReadonlyArray<Entry> => {
  const its = Runs.facts(facts);
  const incident = Runs.broken(id, 1, Runs.now, { provider: Runs.gpt, facts: its });
  return [
    Runs.begun(id, Runs.gpt, Runs.now - 100),
    Runs.attempted(1, its, 0),
    { _tag: "IncidentOpened", incident },
    E.questionOf(incident),
    E.parked("question"),
  ];
};

const provided = { ...Runs.call(0, "web_search", "mutating", "input_complete"), executor: "provider" } as const;

/** Questions, and the calls that their retry may run again. */
const questions: Readonly<Record<string, readonly [ReadonlyArray<Entry>, ReadonlyArray<string>]>> = {
  "a tool that started": [Runs.asking(id, Runs.now - 100), ["read_file (0.0)", "bash (0.1)"]],
  "tools that the provider may have run unseen": [
    Runs.unprovable(id, Runs.now - 100),
    ["tools that the provider runs"],
  ],
  "a tool of the provider that began": [question({ tools: [provided] }), ["web_search (0.0)"]],
  "text alone": [question({ shown: "text", text_through: 1 }), []],
};

/** Requests a retry everywhere, without and with a confirmation, each time with an unanswered record. */
const everywhere = (entries: ReadonlyArray<Entry>, sure: boolean) => {
  const fresh = <A, E2>(run: Effect.Effect<A, E2, RunRecorder | Scope.Scope | NodeServices.NodeServices>) =>
    Effect.andThen(put([entries]), run).pipe(
      Effect.scoped,
      Effect.provide(Layer.fresh(Layer.merge(RunRecorder.layerMemory(), NodeServices.layer))),
    );
  const answered = Effect.flatMap(RunRecorder, (recorder) =>
    Effect.map(recorder.run(id), (record) => record?.questions[0]?.answer === "retry"),
  );
  const api = Effect.gen(function* () {
    const { handle } = yield* pageServer;
    const response = yield* handle(`/recovery/api/runs/${id}/answer`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-recovery-answer": "1" },
      body: JSON.stringify({ revision: 1, choice: "retry", ...(sure ? { confirm_may_repeat: true } : {}) }),
    });
    const text = yield* Effect.promise(async () => response?.text());
    return { taken: yield* answered, words: text ?? "" };
  });
  const cli = Effect.gen(function* () {
    const options = { choice: Option.some("retry"), revision: Option.none(), yes: sure, json: false };
    const told = yield* printed(answer(id, options, plainScreen(Runs.now)));
    return { taken: yield* answered, words: told.exit._tag === "Failure" ? failure(told)[1] : told.stdout };
  });
  return Effect.all({ api: fresh(api), cli: fresh(cli) });
};

/** The text that the page's button must confirm; undefined if it needs no confirmation. */
const pageConfirms = (entries: ReadonlyArray<Entry>, path: string) =>
  Effect.gen(function* () {
    yield* put([entries]);
    const { handle } = yield* pageServer;
    const response = yield* handle(path);
    const text = yield* Effect.promise(async () => response?.text());
    const [button = ""] = /<button[^>]*data-choice="retry"[^>]*>/.exec(text ?? "") ?? [];
    assert.notStrictEqual(button, "");
    return /data-confirm="([^"]*)"/.exec(button)?.[1];
  }).pipe(Effect.scoped, Effect.provide(Layer.fresh(RunRecorder.layerMemory())));

describe("a retry", () => {
  for (const [what, [entries, repeats]] of Object.entries(questions)) {
    const isRisky = repeats.length > 0;
    it.effect(`over ${what} ${isRisky ? "is confirmed" : "needs no confirmation"} everywhere`, () =>
      Effect.gen(function* () {
        const plain = yield* everywhere(entries, false);
        assert.deepStrictEqual([plain.api.taken, plain.cli.taken], [!isRisky, !isRisky]);
        for (const path of ["/recovery/", `/recovery/?run=${id}`]) {
          const confirm = yield* pageConfirms(entries, path);
          assert.strictEqual(confirm, isRisky ? repeats.join(", ") : undefined, path);
        }
        for (const named of repeats) {
          const key = /\(([\d.]+)\)/.exec(named)?.[1] ?? named;
          assert.include(plain.api.words, key);
          assert.include(plain.cli.words, named);
        }
        const sure = yield* everywhere(entries, true);
        assert.deepStrictEqual([sure.api.taken, sure.cli.taken], [true, true]);
      }),
    );
  }
});
