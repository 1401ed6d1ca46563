/**
 * Reads the figures of the scale tables in docs/bench.md: measurements, settings of this version, and assumptions.
 */
import { readFileSync } from "node:fs";
import { Schema } from "effect";

const measuredNames = [
  "pacedEventUs",
  "streamUs",
  "recordUs",
  "openKiB",
  "lingerKiB",
  "walBytes",
  "tableBytes",
  "fileCommitUs",
  "serverUs",
] as const;

const setNames = [
  "writes",
  "connections",
  "beatSeconds",
  "lookSeconds",
  "lingerSeconds",
  "lingerRuns",
  "lingerMiB",
  "keptRuns",
] as const;

const assumedNames = [
  "eventsPerSecond",
  "eventBytes",
  "requestBytes",
  "utilisation",
  "processMiB",
  "machineCores",
  "commitMs",
  "primaryWalMB",
  "primaryTransactions",
  "primaryCores",
  "primaryLookRows",
  "primaryConnections",
  "poolerClients",
  "linkGbit",
  "coreDollars",
  "gibDollars",
  "diskDollars",
  "trafficDollars",
  "tokenDollars",
] as const;

/** The name of a figure. */
export type Name = (typeof measuredNames)[number] | (typeof setNames)[number] | (typeof assumedNames)[number];

/** One number per figure. */
export type Values = Readonly<Record<Name, number>>;

const positive = Schema.Finite.check(Schema.isGreaterThan(0));

const Measured = Schema.Struct({
  what: Schema.String,
  value: positive,
  /** The worst measured value of the same quantity. */
  worst: positive,
  unit: Schema.String,
  source: Schema.String,
  load: Schema.String,
});

const Assumed = Schema.Struct({ what: Schema.String, value: positive, unit: Schema.String, why: Schema.String });

const Figures = Schema.Struct({
  measured: Schema.Record(Schema.Literals(measuredNames), Measured),
  set: Schema.Record(Schema.Literals(setNames), Assumed),
  assumed: Schema.Record(Schema.Literals(assumedNames), Assumed),
});

/** Measurements, settings of this version, and assumptions. */
export type Figures = typeof Figures.Type;

/** Reads the figures of the repository. */
export const read = (): Figures =>
  Schema.decodeSync(Schema.fromJsonString(Figures))(readFileSync(new URL("./figures.json", import.meta.url), "utf8"));

/**
 * Reduces each figure to one number.
 *
 * @param worst true for the worst measured value, if it differs
 */
export const valuesOf = ({ assumed, measured, set }: Figures, worst: boolean): Values => {
  const of = <Key extends string>(of: Readonly<Record<Key, { readonly value: number; readonly worst?: number }>>) =>
    // Safe: the schema has validated that the record's keys are those of its type.
    Object.fromEntries(
      Object.entries<{ readonly value: number; readonly worst?: number }>(of).map(([name, it]) => [
        name,
        worst ? (it.worst ?? it.value) : it.value,
      ]),
    ) as Record<Key, number>;
  return { ...of(measured), ...of(set), ...of(assumed) };
};

/**
 * Replaces some figures, for example with `eventsPerSecond=20`.
 *
 * @throws Error if a name is unknown or a number is not above zero
 */
export const withOthers = (values: Values, others: ReadonlyArray<string>): Values => {
  const changed: Record<string, number> = {};
  for (const other of others) {
    const [name = "", text = ""] = other.split("=");
    const value = Number(text);
    if (!Object.hasOwn(values, name)) throw new Error(`--set ${other}: no figure is named ${name}`);
    if (!(value > 0 && Number.isFinite(value))) throw new Error(`--set ${other}: expected a number above 0`);
    changed[name] = value;
  }
  return { ...values, ...changed };
};
