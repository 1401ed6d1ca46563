/**
 * Turns the record of a run into JSON that may leave the house: no secret, prompt, path or id comes out.
 *
 * An allow-list encoder. Every field is named (`ExportValues`), every name is made of known words or numbered
 * (`ExportLabel`), messages are said anew from the fixed set of the policy, and the result is checked against the schema
 * of the document before it is given away. docs/incident-export.md describes the JSON.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { evidenceFirstMax, evidenceLastMax, incidentsMax } from "../../domain/Limits.ts";
import type { Evidence, RunIncident } from "../../domain/RunIncident.ts";
import { because } from "../../policy/Decisions.ts";
import { explain } from "../../policy/Explanation.ts";
import * as Situation from "../../policy/Situation.ts";
import { attemptsMax, type EvidenceLog, type RunRecord } from "../RunRecord.ts";
import { type ExportedIncident, exportVersion, IncidentExport, RunExport } from "./ExportDocument.ts";
import { ExportIds, ExportLabels } from "./ExportLabel.ts";
import * as Parts from "./ExportRun.ts";
import * as Values from "./ExportValues.ts";

export { IncidentExport, RunExport } from "./ExportDocument.ts";

/** Most bytes of the JSON of one export (1 MiB). A record of more loses its oldest attempts, then its oldest incidents. */
export const exportBytesMax = 1_048_576;

/** A value that cannot be exported. The error carries nothing of the value, which may hold a secret. */
export class IncidentExportError extends Schema.TaggedError<IncidentExportError>()("IncidentExportError", {
  reason: Schema.Literals(["not_a_record", "too_large"]),
  message: Schema.String,
}) {}

/** What may be exported beside known words. */
export interface ExportOptions {
  /**
   * Names of the caller's own program that come out as they are: its tools, models, policies. At most 64 letters, digits
   * and `_ . : + - /`; others are numbered. A name belongs here only when it stands in source code.
   */
  readonly names?: Iterable<string>;
}

/**
 * Exports a run: its attempts, every incident, recovered ones marked and the final one named, questions and evidence.
 *
 * @param record what the recorder gives
 * @throws IncidentExportError where an unchecked value is no record
 */
export const exportRun = (record: RunRecord, options: ExportOptions = {}): RunExport =>
  guarded(() => fitted(checked(decodeRun, runDocument(record, new ExportLabels(options.names)))));

/**
 * Exports one incident on its own.
 *
 * @param incident what the recorder gives
 * @throws IncidentExportError where an unchecked value is no incident, or holds more calls than an attempt can
 */
export const exportIncident = (incident: RunIncident, options: ExportOptions = {}): IncidentExport => {
  const document = () => ({
    export: "incident",
    export_version: exportVersion,
    incident: incidentValue(incident, new ExportLabels(options.names), new ExportIds()),
  });
  return guarded(() => checked(decodeIncident, document()));
};

/** The JSON of an export, on one line, its keys in the order of the schema. Equal exports give equal texts. */
export const encode = (document: RunExport | IncidentExport): string =>
  JSON.stringify(document.export === "run" ? encodeRun(document) : encodeIncident(document));

const decodeRun = Schema.decodeUnknownResult(RunExport);
const decodeIncident = Schema.decodeUnknownResult(IncidentExport);
const encodeRun = Schema.encodeSync(Schema.toCodecJson(RunExport));
const encodeIncident = Schema.encodeSync(Schema.toCodecJson(IncidentExport));

/** The document in the making; `checked` proves that it is one. */
const runDocument = (record: RunRecord, labels: ExportLabels) => {
  const ids = new ExportIds();
  const { end } = record;
  const final = end?.incident;
  const provider = Values.provider(record.provider, labels);
  const incidents = record.incidents.slice(-incidentsMax).map((it) => incidentValue(it, labels, ids));
  const attempts = record.attempts.slice(-attemptsMax);
  return {
    export: "run",
    export_version: exportVersion,
    provider,
    started_at: record.started_at,
    ...Parts.standing(record, labels),
    ...(end === undefined
      ? {}
      : { end: { state: end.state, reason: labels.of(end.reason), attempts: end.attempts, at: end.at } }),
    ...(final === undefined ? {} : { final_incident: ids.of(final) }),
    incidents,
    incidents_omitted: record.incidents_omitted + record.incidents.length - incidents.length,
    questions: Parts.questions(record.questions, ids),
    attempts: attempts.map((it) => Parts.attempt(it, labels)),
    attempts_omitted: record.attempts_omitted + record.attempts.length - attempts.length,
    calls: Parts.calls(record.calls, labels),
    evidence: evidenceValue(record.evidence, labels),
  };
};

const incidentValue = (incident: RunIncident, labels: ExportLabels, ids: ExportIds): ExportedIncident => {
  const { status, answer } = incident;
  const provider = Values.provider(incident.provider, labels);
  const input = Values.input(incident, labels);
  const forced = because(Situation.make(input), incident.decision.rule);
  const decision = Values.decision(incident.decision, forced, labels);
  return {
    id: ids.of(incident.id),
    attempt: incident.attempt,
    mode: incident.mode,
    at: incident.at,
    status,
    recovered: status === "recovered",
    message: explain(decision, input.failure, input.facts),
    provider,
    policy: labels.of(incident.policy),
    decision,
    ...(answer === undefined ? {} : { answer }),
    ...input,
  };
};

/** A log of another store may be longer. The same anchors are kept, and the rest is counted. */
const evidenceValue = (log: EvidenceLog, labels: ExportLabels): EvidenceLog => {
  const value = ({ at_ms, attempt, event, detail }: Evidence): Evidence => ({
    at_ms,
    attempt,
    event,
    ...(detail === undefined ? {} : { detail: labels.of(detail) }),
  });
  const first = log.first.slice(0, evidenceFirstMax);
  const last = log.last.slice(-evidenceLastMax);
  const cut = log.first.length - first.length + log.last.length - last.length;
  return { first: first.map(value), last: last.map(value), omitted: log.omitted + cut };
};

/** Cuts an export to its size: attempts go before incidents, old ones before new ones, the final incident never. */
const fitted = (document: RunExport): RunExport => {
  const bare = { ...document, incidents: [], attempts: [] };
  let left = exportBytesMax - countReserveBytes - bytesOf(encode(bare));
  const take = <A>(piece: A): boolean => {
    const bytes = bytesOf(JSON.stringify(piece)) + 1;
    if (bytes <= left) left -= bytes;
    else left = Math.min(left, 0);
    return left > 0;
  };
  const isFinal = ({ id }: ExportedIncident): boolean => id === document.final_incident;
  const incidents = new Set<unknown>(
    [...document.incidents.filter(isFinal), ...document.incidents.filter((it) => !isFinal(it)).reverse()].filter(take),
  );
  const attempts = new Set<unknown>([...document.attempts].reverse().filter(take));
  return {
    ...document,
    incidents: document.incidents.filter((it) => incidents.has(it)),
    incidents_omitted: document.incidents_omitted + document.incidents.length - incidents.size,
    attempts: document.attempts.filter((it) => attempts.has(it)),
    attempts_omitted: document.attempts_omitted + document.attempts.length - attempts.size,
  };
};

/** Bytes kept for the two omitted counts to grow into. */
const countReserveBytes = 64;

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

const checked = <A>(decode: (value: unknown) => Result.Result<A, Schema.SchemaError>, value: unknown): A =>
  Result.getOrThrowWith(decode(value), () => refused("not_a_record"));

const sentences = {
  not_a_record: "this is no record of a run or an incident, and nothing of it is exported",
  too_large: "the record holds more calls or choices than one attempt can have",
} as const;

const refused = (reason: keyof typeof sentences): IncidentExportError =>
  new IncidentExportError({ reason, message: sentences[reason] });

/** An error of a getter or a schema quotes the value that it saw. None passes: only the reason comes out. */
const guarded = <A>(build: () => A): A => {
  try {
    return build();
  } catch (error) {
    throw refused(error instanceof Values.TooMany ? "too_large" : "not_a_record");
  }
};
