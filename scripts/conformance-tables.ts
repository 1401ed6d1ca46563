/**
 * Writes the measured tables of docs/conformance.md: runs the conformance command's columns for every SDK and puts their tables
 * between the markers `<!-- conformance-tables -->` and `<!-- /conformance-tables -->`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { Effect } from "effect";
import { subjectNames, subjects } from "../src/cli/conformance/Subjects.ts";
import {
  type ConformanceScoreboard,
  conformanceLegend,
  conformanceTable,
  runConformance,
} from "../src/testing/index.ts";

const file = new URL("../docs/conformance.md", import.meta.url);
const between = /<!-- conformance-tables -->\n[\s\S]*<!-- \/conformance-tables -->/;

/** Longer than the silence, so that nothing healthy is aborted, and shorter than a turn may take. */
const stallMs = 15_000;

const columns = (name: (typeof subjectNames)[number]) =>
  Effect.gen(function* () {
    const { bare, withUs } = subjects[name];
    const settings = { reveal: "live", answer: "stop", stallMs } as const;
    const live = yield* withUs(`${name} with us`, settings);
    const whole = yield* withUs(`${name}, on_complete`, { ...settings, reveal: "on_complete" });
    // Only AI SDK can take back what it showed.
    const withdrawing = name === "ai-sdk" ? [yield* withUs(`${name}, retry`, { ...settings, answer: "retry" })] : [];
    const boards: Array<ConformanceScoreboard> = [];
    for (const runtime of [yield* bare(name), live, whole, ...withdrawing]) {
      console.error(`${runtime.name} …`);
      boards.push(yield* runConformance(runtime));
    }
    return boards;
  });

const sections: Array<ReadonlyArray<ConformanceScoreboard>> = [];
for (const name of subjectNames) sections.push(await Effect.runPromise(columns(name)));

const about = `Measured by \`npm run conformance-tables\` with Node ${process.versions.node} on loopback.`;
const before = readFileSync(file, "utf8");
// The letters stand above the tables once.
const tables = [
  about,
  ...sections.map((boards) => conformanceTable(boards).replace(`${conformanceLegend}\n\n`, "")),
].join("\n\n");
writeFileSync(
  file,
  before.replace(between, () => `<!-- conformance-tables -->\n${tables}\n<!-- /conformance-tables -->`),
);
process.exit(0); // a client that was told to abort may keep a timer
