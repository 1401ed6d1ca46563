/**
 * `stream-recovery demo`: breaks streams of a provider on this machine and shows the result of each.
 */

import { Clock, Console, Effect, Option, Random, References, Result, Runtime, Schema } from "effect";
import { Command, Flag } from "effect/cli";
import { failing } from "./command/CommandFailed.ts";
import { dbFlag } from "./command/Store.ts";
import * as DemoStore from "./demo/DemoStore.ts";
import { formatTable, summary, totalsOf } from "./demo/DemoTable.ts";
import { exchanges, exchangesOfRunsMax } from "./demo/ExchangeTable.ts";
import { choose, formatStory, toDocument } from "./demo/IncidentStory.ts";
import { playRecordings } from "./demo/recordings/Player.ts";
import { Recordings } from "./demo/recordings/Recordings.ts";
import * as RecordingsTable from "./demo/recordings/Table.ts";
import { scenariosAnthropic } from "./demo/scenarios/Anthropic.ts";
import { scenariosGemini } from "./demo/scenarios/Gemini.ts";
import { judge } from "./demo/scenarios/Judge.ts";
import { scenariosChat } from "./demo/scenarios/OpenAiChat.ts";
import { scenariosResponses } from "./demo/scenarios/OpenAiResponses.ts";
import { play } from "./demo/scenarios/Player.ts";
import type { Scenario } from "./demo/scenarios/Scenario.ts";
import { layer } from "./demo/stage/ScriptedPerson.ts";
import { inkFor } from "./terminal/Ink.ts";
import * as Progress from "./terminal/Progress.ts";
import { program } from "./terminal/Screen.ts";

/** Maximum concurrent runs. They mostly wait and use little CPU. */
export const runsAtOnce = 12;

const fail = failing("demo");

/** Some runs did not match their expectation. The output names each; the exit code is 1. */
export class Unexpected extends Schema.TaggedError<Unexpected>()("Unexpected", {
  reason: Schema.Literal("not_as_expected"),
  runs: Schema.Natural,
}) {
  override readonly [Runtime.errorExitCode] = 1;
  override readonly [Runtime.errorReported] = false;
}

const flags = {
  db: dbFlag.pipe(
    Flag.withDescription(
      "SQLite file or postgres://… that keeps the runs (default: $STREAM_RECOVERY_DB, else runs.db in the user's state folder), or `memory`",
    ),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON document instead of a table"),
    Flag.withDefault(false),
  ),
  only: Flag.String("only").pipe(
    Flag.withDescription(
      "Play only runs whose name or protocol contains this; repeat it, or separate several with commas",
    ),
    Flag.atLeast(0),
  ),
  streams: Flag.String("streams").pipe(
    Flag.withDescription(
      "Play the recordings in this folder (with its manifest.json) instead, complete and broken at seeded places",
    ),
    Flag.optional,
  ),
  seed: Flag.Int("seed").pipe(
    Flag.withDescription(
      "Seed for the jitter of waits and the places of breaks; if omitted, chosen at random and printed",
    ),
    Flag.optional,
  ),
  cuts: Flag.Int("cuts").pipe(
    Flag.withDescription(
      "With --streams: the number of breaks of each kind (reset, FIN, clean end, stall) per recording",
    ),
    Flag.withDefault(2),
    Flag.filter(
      (cuts) => cuts >= 1 && cuts <= cutsMax,
      (cuts) => `Expected 1 to ${cutsMax}, got ${cuts}`,
    ),
  ),
};

/** Maximum breaks of each kind per recording. */
const cutsMax = 1_000;

/** The `demo` command: plays the runs, prints the results, and fails if one is not as expected. */
export const demoCommand = Command.make("demo", flags, ({ cuts, db, json, only, seed, streams }) =>
  Effect.gen(function* () {
    const chosen = Option.isSome(seed) ? seed.value : yield* Random.nextIntBetween(1, 1_000_000);
    const kept = yield* DemoStore.open(db, Option.isNone(streams));
    const played = Option.isSome(streams)
      ? runRecordings(streams.value, only, chosen, cuts, json)
      : runScenarios(only, chosen, json, kept);
    return yield* played.pipe(Effect.provide(layer), Effect.provideContext(kept.recorder));
  }).pipe(
    Effect.scoped,
    Effect.catchTag("ClientConfigError", ({ message }) => fail("refused", message)),
    // The table reports every retry and stop. Only defects are logged.
    Effect.provideService(References.MinimumLogLevel, "Error"),
  ),
).pipe(
  Command.withDescription("Break streams of a local provider, and show for each what the caller saw and why"),
  Command.withExamples([
    {
      command: "stream-recovery demo",
      description: "Play all runs, print a table, and explain one incident in plain words",
    },
    {
      command: "stream-recovery demo --only arguments,late-error --json",
      description: "Play some runs and print JSON",
    },
    { command: "stream-recovery demo --streams ./streams --seed 7", description: "Play recordings of real providers" },
  ]),
);

const runScenarios = Effect.fn("demo.scenarios")(function* (
  only: ReadonlyArray<string>,
  seed: number,
  json: boolean,
  kept: DemoStore.DemoStore,
) {
  const selected = select(only);
  if (Result.isFailure(selected)) return yield* fail("refused", selected.failure);
  const progress = Progress.make(process.stderr, selected.success.length);
  const playOne = (scenario: Scenario) =>
    Effect.gen(function* () {
      const outcome = yield* play(scenario, kept.runId(scenario.name), seed);
      const row = judge(scenario, outcome);
      yield* progress.report(scenario.name, row.problems.length === 0);
      return { row, outcome };
    });
  const [took, played] = yield* measure(Effect.forEach(selected.success, playOne, { concurrency: runsAtOnce }));
  yield* progress.done;
  const rows = played.map((it) => it.row);
  const totals = totalsOf(rows);
  const chosen = choose(played);
  if (json) {
    const incident = chosen === undefined ? {} : { incident: chosen.incident, decide: toDocument(chosen.incident) };
    const ok = totals.as_expected === totals.runs;
    yield* Console.log(JSON.stringify({ ok, seed, duration_ms: took, totals, rows, ...incident }, null, 2));
  } else {
    const ink = inkFor(process.stdout);
    yield* Console.log(`\n${formatTable(rows, ink)}\n\n${summary(totals, took / 1_000, seed, ink)}`);
    if (only.length > 0 && rows.length <= exchangesOfRunsMax) yield* Console.log(`\n${exchanges(rows, ink)}`);
    if (chosen !== undefined) yield* Console.log(`\n${formatStory(chosen, program(), ink)}`);
    const farewell = DemoStore.listNextCommands(kept, chosen?.incident.run_id);
    if (farewell !== "") yield* Console.log(`\n${farewell}`);
  }
  const wrong = totals.runs - totals.as_expected;
  if (wrong > 0) return yield* new Unexpected({ reason: "not_as_expected", runs: wrong });
});

const runRecordings = Effect.fn("demo.recordings")(function* (
  folder: string,
  only: ReadonlyArray<string>,
  seed: number,
  cuts: number,
  json: boolean,
) {
  const read = yield* Effect.result(Recordings.read(folder, only));
  if (Result.isFailure(read)) return yield* fail("refused", read.failure.message);
  const [took, results] = yield* measure(playRecordings(read.success, seed, cuts));
  const totals = RecordingsTable.totalsOf(results);
  if (json) {
    yield* Console.log(JSON.stringify(RecordingsTable.report(results, totals, seed, cuts, took), null, 2));
  } else {
    yield* Console.log(`\n${RecordingsTable.formatTable(results, totals, seed, took / 1_000, inkFor(process.stdout))}`);
  }
  if (totals.failures > 0) return yield* new Unexpected({ reason: "not_as_expected", runs: totals.failures });
});

const measure = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [number, A], E, R> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const before = clock.currentTimeMillisUnsafe();
    const value = yield* effect;
    return [clock.currentTimeMillisUnsafe() - before, value] as const;
  });

/** Every scenario, by protocol. */
export const scenarios: ReadonlyArray<Scenario> = [
  ...scenariosAnthropic,
  ...scenariosChat,
  ...scenariosResponses,
  ...scenariosGemini,
];

/**
 * Selects the scenarios that the user asked for.
 *
 * @param only names, or parts of names or protocols, possibly comma-separated; empty for all
 * @returns the scenarios in their order, or a one-line error
 */
const select = (only: ReadonlyArray<string>): Result.Result<ReadonlyArray<Scenario>, string> => {
  const asked = only
    .flatMap((value) => value.split(","))
    .map((value) => value.trim())
    .filter((value) => value !== "");
  if (asked.length === 0) {
    return only.length === 0 ? Result.succeed(scenarios) : Result.fail("--only: expected a name, got nothing");
  }
  const unknown = asked.find((value) => !scenarios.some((scenario) => isMatch(scenario, value)));
  if (unknown !== undefined) {
    const names = scenarios.map((scenario) => scenario.name).join(", ");
    return Result.fail(`--only: unknown run "${unknown}"; expected ${names}`);
  }
  return Result.succeed(scenarios.filter((scenario) => asked.some((value) => isMatch(scenario, value))));
};

/** An exact name matches only that scenario, even if it is part of another name. */
const isMatch = ({ name, protocol }: Scenario, asked: string): boolean =>
  scenarios.some((it) => it.name === asked) ? name === asked : name.includes(asked) || protocol.includes(asked);
