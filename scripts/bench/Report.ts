/**
 * Formats the measurements as a table for people and documents, or as JSON.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Row } from "./Row.ts";

/** The measurements, and the environment they were made in. */
export interface Report {
  readonly command: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly processes: number;
  readonly load: string;
  readonly groups: ReadonlyArray<{ readonly name: string; readonly rows: ReadonlyArray<Row> }>;
}

/** Creates a report with the machine and the versions of the compared packages. */
export const make = (command: string, processes: number, load: string, groups: Report["groups"]): Report => ({
  command,
  load,
  machine: `${cpus()[0]?.model.trim() ?? "unknown CPU"}, ${cpus().length} cores, ${process.platform} ${process.arch}`,
  versions: {
    node: process.version.slice(1),
    effect: versionOf("effect"),
    ai: versionOf("ai"),
    openai: versionOf("openai"),
    "effect-stream-recovery": manifestAt(new URL("../../package.json", import.meta.url)).version,
  },
  processes,
  groups,
});

const names: Readonly<Record<string, string>> = {
  saturated: "CPU per event, saturated, against raw `for await`",
  arrays: "CPU per event, a source of arrays, against raw `for await` of single events",
  paced: "CPU per event, one event per macrotask, against raw `for await` of the same source",
  idle: "10,000 idle runs",
  growth: "Growth",
  decide: "Policy",
  latency: "Latency",
  sqlite: "Runs in a SQLite file",
  adapters: "CPU that an adapter adds to a client, per part of a stream",
};

/** Formats groups of rows as one Markdown table. */
export const markdownOf = (groups: Report["groups"]): string =>
  [
    "| what | measured | bar | verdict |",
    "| --- | --- | --- | --- |",
    ...groups.flatMap(({ name, rows }) => [
      `| **${names[name] ?? name}** | | | |`,
      ...rows.map((row) => `| ${row.what} | ${row.value} | ${row.bar ?? ""} | ${row.verdict ?? ""} |`),
    ]),
  ].join("\n");

/** Formats a report as Markdown: one table, and its environment. */
export const markdown = (report: Report): string => {
  const versions = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`);
  return [
    markdownOf(report.groups),
    "",
    `\`${report.command}\` · ${versions.join(" · ")} · ${report.machine} · medians of ${report.processes} processes (min–max) · ${report.load}`,
  ].join("\n");
};

/** The rows that miss their bar. */
export const missed = (report: Report): ReadonlyArray<Row> =>
  report.groups.flatMap(({ rows }) => rows.filter((row) => row.verdict === "missed"));

/**
 * Writes a table into a document, between the markers `<!-- NAME -->` and `<!-- /NAME -->`.
 *
 * @throws Error if the document has no such markers
 */
export const write = (file: URL, name: string, table: string): void => {
  const document = readFileSync(file, "utf8");
  const between = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!between.test(document))
    throw new Error(`${file.pathname} needs a line <!-- ${name} --> and <!-- /${name} --> after it`);
  writeFileSync(
    file,
    document.replace(between, (_, from: string, to: string) => `${from}${table}\n${to}`),
  );
};

const versionOf = (name: string): string =>
  manifestAt(new URL(`../../node_modules/${name}/package.json`, import.meta.url)).version;

const manifestAt = (file: URL): { readonly version: string } =>
  // Safe: every package manifest contains a version.
  JSON.parse(readFileSync(file, "utf8")) as { readonly version: string };
