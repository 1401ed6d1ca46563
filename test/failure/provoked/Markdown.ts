/**
 * Prints the tables of docs/errors.md.
 */
import { effect, everyone, nodeHttp, overUndici } from "./clients/Names.ts";
import type { Fault } from "./Faults.ts";
import { type Outcome, telling } from "./Outcome.ts";
import type { Section } from "./Section.ts";

/** The outcomes of each fault by client. */
export type Rows = ReadonlyMap<Fault, ReadonlyArray<readonly [client: string, Outcome]>>;

/**
 * Prints one table per section; a row is a fault and the clients that report the same outcome.
 *
 * @param sections the sections, in order
 * @param rows outcomes by fault
 */
export const markdown = (sections: ReadonlyArray<Section>, rows: Rows): string =>
  sections.map((section) => table(section, rows)).join("\n\n");

const table = (section: Section, rows: Rows): string =>
  [
    `## ${section.title}`,
    "",
    section.about,
    "",
    "| what happens | client | kind | details | retryable | not processed |",
    "| --- | --- | --- | --- | --- | --- |",
    ...section.faults.flatMap((fault) => groups(section, fault, rows.get(fault) ?? [])),
  ].join("\n");

const groups = (
  section: Section,
  fault: Fault,
  said: ReadonlyArray<readonly [string, Outcome]>,
): ReadonlyArray<string> => {
  const byOutcome = new Map<string, Array<string>>();
  for (const [client, outcome] of said) {
    const cells = cellsOf(outcome);
    byOutcome.set(cells, [...(byOutcome.get(cells) ?? []), client]);
  }
  const everyClient = section.clients.map(({ name }) => name).filter((name) => fault.without?.includes(name) !== true);
  const all = fault.without === undefined ? "all" : "all that have it";
  return [...byOutcome].map(([cells, clients]) => `| ${fault.name} | ${named(clients, everyClient, all)} | ${cells} |`);
};

const cellsOf = (outcome: Outcome): string => {
  if (outcome === "no error") return "no error | the missing marker is `truncated` | | ";
  const { kind, retryable, not_processed } = outcome;
  const details = telling.flatMap((key) => {
    const value = outcome[key];
    return value === undefined ? [] : [isWord(key) ? `\`${value}\`` : `${key} ${value}`];
  });
  return [`\`${kind}\``, details.join(", "), retryable ? "yes" : "no", not_processed ? "yes" : "no"].join(" | ");
};

/** Fields whose value needs no name beside it. */
const isWord = (key: string): boolean => ["reason", "code", "http2_code"].includes(key);

const named = (clients: ReadonlyArray<string>, everyClient: ReadonlyArray<string>, all: string): string => {
  const is = (list: ReadonlyArray<string>) =>
    list.length === clients.length && clients.every((name) => list.includes(name));
  if (is(everyClient)) return everyClient.length === 1 ? (everyClient[0] ?? "") : all;
  if (is(nodeHttp)) return "all over node:http";
  if (is(overUndici)) return "all over undici";
  if (is(effect)) return "Effect HttpClient";
  const missing = everyone.filter((name) => !clients.includes(name));
  return missing.length <= 4 && clients.every((name) => everyone.includes(name))
    ? `all but ${short(missing)}`
    : short(clients);
};

/** Replaces Effect's three backends in a row with one name. */
const short = (clients: ReadonlyArray<string>): string =>
  clients.join(", ").replace(effect.join(", "), "Effect HttpClient");
