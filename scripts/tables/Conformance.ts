/**
 * Measures the tables of docs/conformance.md: every SDK in the conformance kit, with this package and without.
 */
import { Effect } from "effect";
import { PackageFolder } from "../../src/cli/conformance/Packages.ts";
import { subjectNames, subjects } from "../../src/cli/conformance/Subjects.ts";
import {
  type ConformanceScoreboard,
  conformanceLegend,
  conformanceTable,
  runConformance,
} from "../../src/testing/index.ts";
import setup, { sdkFolder } from "../sdks/Setup.ts";

/** Timeout for a stall, in milliseconds. It is longer than the silence of healthy responses and shorter than a turn's time limit. */
const stallMs = 15_000;

const columns = (name: (typeof subjectNames)[number]) =>
  Effect.gen(function* () {
    const { bare, withUs } = subjects[name];
    const settings = { reveal: "live", answer: "stop", stallMs } as const;
    const live = yield* withUs(`${name} with this package`, settings);
    const whole = yield* withUs(`${name}, on_complete`, { ...settings, reveal: "on_complete" });
    // Only the AI SDK can withdraw what it showed.
    const withdrawing = name === "ai-sdk" ? [yield* withUs(`${name}, retry`, { ...settings, answer: "retry" })] : [];
    const boards: Array<ConformanceScoreboard> = [];
    for (const runtime of [yield* bare(name), live, whole, ...withdrawing]) {
      console.error(`${runtime.name} …`);
      boards.push(yield* runConformance(runtime));
    }
    return boards;
  });

/** Prints a table for each SDK. The page itself explains the letters once, above the tables. */
export const conformance = async (): Promise<string> => {
  setup();
  const tables: Array<string> = [];
  for (const name of subjectNames) {
    const boards = await Effect.runPromise(Effect.provideService(columns(name), PackageFolder, sdkFolder));
    tables.push(conformanceTable(boards).replace(`${conformanceLegend}\n\n`, ""));
  }
  const about = `Measured by \`npm run tables -- --measure\` with Node ${process.versions.node} on loopback.`;
  return [about, ...tables].join("\n\n");
};
