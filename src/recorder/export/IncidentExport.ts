/**
 * Converts the record of a run to JSON that is safe to share: it contains no secret, prompt, path or id.
 *
 * The encoder is an allow-list. Every field is named (`ExportValues`), every name consists of known words or is numbered
 * (`ExportLabel`), messages are generated again from the policy's fixed set, and the result is validated against the document's
 * schema. docs/observability.md describes the JSON.
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

/**
 * Maximum size of the JSON of one export, in bytes (1 MiB). A larger record loses its oldest attempts first, then its oldest
 * incidents.
 */
export const exportBytesMax = 1_048_576;

/** A value that cannot be exported. The error quotes no part of the value, because it may contain a secret. */
export class IncidentExportError extends Schema.TaggedError<IncidentExportError>()("IncidentExportError", {
  reason: Schema.Literals(["not_a_record", "too_large", "incomplete"]),
  message: Schema.String,
}) {}

/** Names that may be exported in addition to known words. */
export interface ExportOptions {
  /**
   * Names from the caller's own program that are exported unchanged: its tools, models and policies. Maximum 64 letters, digits
   * and `_ . : + - /`; other names are numbered. Only list names that appear in source code.
   */
  readonly names?: Iterable<string>;
}

/**
 * Exports a run: its attempts, all incidents with the recovered and final ones marked, questions and evidence.
 *
 * @throws IncidentExportError if an unchecked value is not a record, or if the record may be incomplete because the process of a volatile
 *   run died
 */
export const exportRun = (record: RunRecord, options: ExportOptions = {}): RunExport => {
  if (record?.end?.assumed === true) throw incomplete;
  return hideCause(() => fitToSize(decodeOrThrow(decodeRun, runDocument(record, new ExportLabels(options.names)))));
};

const incomplete = new IncidentExportError({
  reason: "incomplete",
  message: "the process of this run was lost before its record was complete, so the run cannot be reported",
});

/**
 * Exports a single incident, without the run around it.
 *
 * @throws IncidentExportError if an unchecked value is not an incident, or has more calls than an attempt can have
 */
export const exportIncident = (incident: RunIncident, options: ExportOptions = {}): IncidentExport => {
  const toDocument = () => ({
    export: "incident",
    export_version: exportVersion,
    incident: incidentValue(incident, new ExportLabels(options.names), new ExportIds()),
  });
  return hideCause(() => decodeOrThrow(decodeIncident, toDocument()));
};

/** Returns the JSON of an export on one line, with keys in the order of the schema. Equal exports give equal JSON. */
export const encode = (document: RunExport | IncidentExport): string =>
  JSON.stringify(document.export === "run" ? encodeRun(document) : encodeIncident(document));

const decodeRun = Schema.decodeUnknownResult(RunExport);
const decodeIncident = Schema.decodeUnknownResult(IncidentExport);
const encodeRun = Schema.encodeSync(Schema.toCodecJson(RunExport));
const encodeIncident = Schema.encodeSync(Schema.toCodecJson(IncidentExport));

/** Builds the document, which `decodeOrThrow` then validates. */
const runDocument = (record: RunRecord, labels: ExportLabels) => {
  const ids = new ExportIds();
  const { end } = record;
  const final = end?.incident;
  const provider = Values.copyProvider(record.provider, labels);
  const incidents = record.incidents.slice(-incidentsMax).map((it) => incidentValue(it, labels, ids));
  const attempts = record.attempts.slice(-attemptsMax);
  return {
    export: "run",
    export_version: exportVersion,
    provider,
    started_at: record.started_at,
    ...Parts.copyStanding(record, labels),
    ...(end === undefined
      ? {}
      : { end: { state: end.state, reason: labels.of(end.reason), attempts: end.attempts, at: end.at } }),
    ...(final === undefined ? {} : { final_incident: ids.of(final) }),
    incidents,
    incidents_omitted: record.incidents_omitted + record.incidents.length - incidents.length,
    questions: Parts.copyQuestions(record.questions, ids),
    attempts: attempts.map((it) => Parts.copyAttempt(it, labels)),
    attempts_omitted: record.attempts_omitted + record.attempts.length - attempts.length,
    calls: Parts.copyCalls(record.calls, labels),
    evidence: evidenceValue(record.evidence, labels),
  };
};

const incidentValue = (incident: RunIncident, labels: ExportLabels, ids: ExportIds): ExportedIncident => {
  const { status, answer } = incident;
  const provider = Values.copyProvider(incident.provider, labels);
  const input = Values.copyInput(incident, labels);
  const forced = because(Situation.make(input), incident.decision.rule);
  const decision = Values.copyDecision(incident.decision, forced, labels);
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

/** Limits a log to its first and last entries, and counts the rest. The log of another store may be longer. */
const evidenceValue = (log: EvidenceLog, labels: ExportLabels): EvidenceLog => {
  const entryValue = ({ at_ms, attempt, event, detail }: Evidence): Evidence => ({
    at_ms,
    attempt,
    event,
    ...(detail === undefined ? {} : { detail: labels.of(detail) }),
  });
  const first = log.first.slice(0, evidenceFirstMax);
  const last = log.last.slice(-evidenceLastMax);
  const cut = log.first.length - first.length + log.last.length - last.length;
  return { first: first.map(entryValue), last: last.map(entryValue), omitted: log.omitted + cut };
};

/**
 * Reduces an export to its maximum size. Drops attempts before incidents, and the oldest of each first. Always keeps the final incident.
 */
const fitToSize = (document: RunExport): RunExport => {
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

/** Bytes reserved for growth of the two omitted counts. */
const countReserveBytes = 64;

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

const decodeOrThrow = <A>(decode: (value: unknown) => Result.Result<A, Schema.SchemaError>, value: unknown): A =>
  Result.getOrThrowWith(decode(value), () => exportError("not_a_record"));

const sentences = {
  not_a_record: "this is not a record of a run or an incident, so nothing of it is exported",
  too_large: "the record holds more calls or choices than one attempt can have",
} as const;

const exportError = (reason: keyof typeof sentences): IncidentExportError =>
  new IncidentExportError({ reason, message: sentences[reason] });

/** Hides the cause of an error and reports only the reason, because errors of getters and schemas quote the offending value. */
const hideCause = <A>(build: () => A): A => {
  try {
    return build();
  } catch (error) {
    throw exportError(error instanceof Values.TooMany ? "too_large" : "not_a_record");
  }
};
