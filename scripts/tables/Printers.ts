/**
 * Prints the tables of README and docs, each from its source.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { connectMsDefault } from "../../src/client/ProviderClient.ts";
import { defaultBudget } from "../../src/domain/RunFacts.ts";
import { boundRows, toolRow, unsearched } from "../../src/gateway/routes/BoundRows.ts";
import { type WireExample, wires } from "../../src/gateway/wires/Wires.ts";
import { moveMarkdown, markdown as policy } from "../../src/policy/PolicyTable.ts";
import * as Writes from "../../src/recorder/Writes.ts";
import * as Clocks from "../../src/runtime/contract/Clocks.ts";
import { markdown as errors } from "../../test/failure/provoked/Markdown.ts";
import { expectedOf } from "../../test/failure/provoked/Section.ts";
import { sections } from "../../test/failure/provoked/Sections.ts";
import { printCases } from "../../test/field/Cases.ts";
import { laws } from "../../test/Laws.ts";
import { printScale } from "../scale/ScaleTables.ts";
import { followTable } from "../size/FollowStream.ts";
import { clients, ownEvents } from "./Clients.ts";
import { configTable, keyedFlags } from "./ConfigKeys.ts";
import { costTable } from "./Costs.ts";
import { type Named, Sources } from "./Docstrings.ts";
import { commands, flags } from "./Flags.ts";
import { code, table } from "./Markdown.ts";
import { faultTable, prefillTable, refusalTable } from "./Seams.ts";
import type { Printer } from "./Sections.ts";
import { setups } from "./Setups.ts";

/**
 * Creates the printer of each kind of section.
 *
 * @param root the root of the repository
 */
export const printers = (root: string): ReadonlyMap<string, Printer> => {
  const sources = new Sources(root);
  return new Map<string, Printer>([
    ["policy", () => policy()],
    ["moves", () => moveMarkdown()],
    ["laws", lawTable],
    ["protocols", () => protocolTable(root)],
    ["clocks", () => clockTable(sources)],
    ["budget", () => budgetTable(sources)],
    ["ends", () => wordTable("reason", sources.wordsOf("class RunInterrupted"))],
    ["options", ([name = "", folder]) => optionTable(sources.fieldsOf(name, folder))],
    ["fields", ([name = "", folder]) => fieldTable(sources.fieldsOf(name, folder))],
    ["commands", commands],
    ["flags", (path) => flags(path, keyedFlags)],
    ["config", () => configTable()],
    ["errors", errorTables],
    ["clients", clients],
    ["own-events", ownEvents],
    ["setups", setups],
    ["wires", wireTable],
    ["follow", followTable],
    ["cases", () => printCases()],
    ["bound", boundTable],
    ["writes", ([of = ""]) => writeTable(of)],
    ["seam-refusals", refusalTable],
    ["seam-words", faultTable],
    ["prefills", prefillTable],
    ["scale", ([of = ""]) => printScale(of)],
    ["cost", () => costTable(readFileSync(join(root, "docs/bench.md"), "utf8"))],
    ["example", ([path = ""]) => example(readFileSync(join(root, path), "utf8"))],
  ]);
};

/** The treatment of each wire, from the registry that the gateway uses. */
const wireTable = (): string =>
  table(
    ["wire", "requests, for example", "treatment", "note"],
    wires.map(({ examples, name, note, reason, treatment }) => [
      name,
      examples.map(exampleWords).join(" · "),
      reason === undefined ? treatment : `${treatment}: ${code(reason)}`,
      note,
    ]),
  );

const exampleWords = ({ body, method, target }: WireExample): string => {
  const field = body === undefined ? "" : ` with ${code(`stream: ${body.stream}`)}`;
  return `${code(`${method} ${target}`)}${field}`;
};

/** The fields that bind a request to its provider's account, by protocol. */
const boundTable = (): string =>
  table(
    ["what a request has", "refers to", "in"],
    [
      ...[...boundRows, toolRow].map(({ field, protocols, refersTo }) => [
        code(field),
        refersTo,
        protocols.map(code).join(" · "),
      ]),
      [code(unsearched.field), unsearched.refersTo, "all"],
    ],
  );

/** The laws. Test files are formatted as code and not as links, because the package does not contain them. */
const lawTable = (): string =>
  table(
    ["law", "statement", "tests"],
    Object.entries(laws).map(([law, { name, statement, tests }]) => [
      `${law} ${name}`,
      statement,
      tests.map(code).join(" · "),
    ]),
  );

/** The protocols, described by the docstring of each `protocol`. */
const protocolTable = (root: string): string =>
  table(
    ["protocol", "id", "complete when", "tolerated, and declared"],
    globSync("src/provider/{*/Decode,bedrock/{Converse,Invoke}}.ts", { cwd: root })
      .sort()
      .map((path) => protocolRow(path, readFileSync(join(root, path), "utf8"))),
  );

const protocolRow = (path: string, text: string): ReadonlyArray<string> => {
  const [, comment = ""] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export const protocol\b/.exec(text) ?? [];
  const [, id = ""] = /^(?:export const id = | {2}id: )"([^"]+)"/m.exec(text) ?? [];
  const words = comment
    .replace(/^\s*\* ?/gm, "")
    .replace(/\s+/g, " ")
    .trim();
  const [, name, complete, tolerated] = /^(.*?)\.? Complete when: (.*) Tolerated: (.*)$/.exec(words) ?? [];
  if (name === undefined || complete === undefined || tolerated === undefined)
    throw new Error(`${path}: the docstring of protocol does not say "Complete when:" and "Tolerated:"`);
  return [name, code(id), complete, tolerated];
};

const clockTable = (sources: Sources): string => {
  const plain = Clocks.make({ id: "", reasoning: false }, true);
  const unknown = Clocks.make({ id: "" }, true);
  const named = (key: string): string => {
    const of = (clocks: Clocks.Clocks) => clocks[key as keyof Clocks.Clocks]; // Safe: the fields of the interface are the keys.
    const one = ms(of(plain));
    return of(plain) === of(unknown) ? one : `${one}; ${ms(of(unknown))} if the model reasons, or if that is not known`;
  };
  return table(
    ["clock", "default, ms", "what it measures"],
    [
      [
        "`connect`",
        ms(connectMsDefault),
        "From the name lookup until TLS is done (`ProviderClient.layer({ connectMs })`).",
      ],
      ...sources.fieldsOf("Clocks").map(({ docstring, name }) => [code(name), named(name), docstring]),
    ],
  );
};

const budgetTable = (sources: Sources): string =>
  table(
    ["limit", "default", "what it limits"],
    sources.keysOf("Budget").map(({ docstring, name }) => {
      return [code(name), limitOf(name as keyof typeof defaultBudget), docstring]; // Safe: the keys of the schema are those of the budget.
    }),
  );

const limitOf = (name: keyof typeof defaultBudget): string => {
  const limit = defaultBudget[name];
  return limit === undefined ? "off" : typeof limit === "number" ? number(limit) : limit;
};

const wordTable = (head: string, words: ReadonlyArray<Named>): string =>
  table(
    [head, "meaning"],
    words.map(({ docstring, name }) => [code(name), docstring]),
  );

const optionTable = (fields: ReadonlyArray<Named>): string =>
  table(
    ["option", "meaning"],
    fields.map(({ docstring, name, optional }) => [`${code(name)}${optional ? "" : ", required"}`, docstring]),
  );

const fieldTable = (fields: ReadonlyArray<Named>): string =>
  table(
    ["field", "meaning"],
    fields.map(({ docstring, name, optional }) => [`${code(name)}${optional ? "" : ", always"}`, docstring]),
  );

/** One row for each occasion. The first one of a write also names its content. */
const writeTable = (of: string): string => {
  if (of === "away") return wordTable("store unavailable", named(Writes.away));
  const writes: Readonly<Record<string, Writes.Write>> = of === "calls" ? Writes.calls : Writes.entries;
  return table(
    [of === "calls" ? "call" : "entry", "holds", "when", "before", "store unavailable"],
    Object.entries(writes).flatMap(([name, { holds, occasions }]) =>
      occasions.map(({ away, before, isForEveryRun, when }, index) => {
        const row = [when, isForEveryRun === true ? `${before} (every run)` : before, away];
        return index === 0 ? [code(name), holds, ...row] : ["", "", ...row];
      }),
    ),
  );
};

const named = (words: Readonly<Record<string, string>>): ReadonlyArray<Named> =>
  Object.entries(words).map(([name, docstring]) => ({ name, docstring, optional: false }));

/** The error messages of clients, as the tests of test/failure/provoked expect and find them. */
const errorTables = (): string =>
  errors(
    sections,
    new Map(sections.flatMap((section) => section.faults.map((fault) => [fault, expectedOf(section, fault)]))),
  );

/** A program in the form that a user writes it: without its header comment and without paths of this repository. */
const example = (text: string): string => {
  const program = text
    .replace(/^\/\*\*[\s\S]*?\*\/\n/, "")
    .replace(/"(?:\.\.\/)+src\/(\w+)\/index\.ts"/, '"effect-stream-recovery/$1"');
  return `\`\`\`ts\n${program}\`\`\``;
};

const ms = (value: number): string => (Number.isFinite(value) ? number(value) : "off");

const number = (value: number): string => value.toLocaleString("en-US");
