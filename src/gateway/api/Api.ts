/**
 * Describes the API under `/recovery/api`: recorded runs, their questions, and operations to answer a question or cancel a run.
 * Its OpenAPI document is at `/recovery/api/openapi.json`.
 */
import { Schema } from "effect";
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api";
import { Choice, DecisionCall, Rule } from "../../domain/Decision.ts";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { Provider } from "../../domain/RunFacts.ts";
import { RunEnd, RunIncident } from "../../domain/RunIncident.ts";
import { RunExport } from "../../recorder/export/ExportDocument.ts";
import { Parked, RunRecord } from "../../recorder/RunRecord.ts";
import { PathView } from "./PathList.ts";
import { Totals } from "./Totals.ts";
import { AttachableRun } from "./Traffic.ts";

/** Maximum number of runs per page of a list. */
export const listRunsMax = 500;

/**
 * Header that answers, cancels and probes require. A page of another site could send it only after a preflight, and the server grants none.
 */
const answerHeader = "x-recovery-answer";

/** The named object does not exist. */
export class ApiNotFound extends Schema.TaggedError<ApiNotFound>()(
  "ApiNotFound",
  { reason: Schema.Literals(["unknown_run", "unknown_path", "unknown_address"]), message: Schema.String },
  { httpApiStatus: 404 },
) {}

/** The request is invalid. `field` names the invalid parameter, if there is one. */
export class ApiInvalid extends Schema.TaggedError<ApiInvalid>()(
  "ApiInvalid",
  { reason: Schema.Literals(["invalid_request"]), field: Schema.optionalKey(Label), message: Schema.String },
  { httpApiStatus: 400 },
) {}

/** An operation was refused and had no effect. `may_repeat`: the retry may run a call again, so the request has to confirm it. */
export class ApiRefused extends Schema.TaggedError<ApiRefused>()(
  "ApiRefused",
  {
    reason: Schema.Literals([
      "not_told",
      "run_ended",
      "no_question",
      "stale_revision",
      "already_answered",
      "not_offered",
      "facts_grown",
      "expired",
      "not_expired",
      "may_repeat",
    ]),
    message: Schema.String,
  },
  { httpApiStatus: 409 },
) {}

/** The record of runs cannot be read or written now, or contains a value that cannot be exported. */
export class ApiUnavailable extends Schema.TaggedError<ApiUnavailable>()(
  "ApiUnavailable",
  { reason: Label, message: Schema.String },
  { httpApiStatus: 503 },
) {}

/** An open question, as the API returns it. */
export const OpenQuestion = Schema.Struct({
  run_id: Label,
  provider: Provider,
  revision: Schema.Natural,
  rule: Rule,
  /** Description of the failure, of the tools that ran, and of the safe choices. */
  message: Schema.String,
  choices: Schema.Array(Choice),
  default_choice: Choice,
  asked_at: Schema.optionalKey(Milliseconds),
  expires_at: Schema.optionalKey(Milliseconds),
  /** Calls that a `retry` could run again. If there are any, a `retry` must be confirmed. */
  may_repeat: Schema.Array(Label),
  calls: Schema.Array(DecisionCall),
});
export type OpenQuestion = typeof OpenQuestion.Type;

/** A run, as it appears in a list. */
export const RunSummary = Schema.Struct({
  run_id: Label,
  provider: Provider,
  started_at: Milliseconds,
  state: RunRecord.fields.state,
  parked: Schema.optionalKey(Parked),
  attempts: Schema.Natural,
  incidents: Schema.Natural,
  /** True if the run broke and a later attempt completed it. */
  recovered: Schema.Boolean,
  /** True if the user cancelled the run while a tool ran, although the response was complete. */
  cancelled: Schema.optionalKey(Schema.Literal(true)),
  /** Tools that may have changed something and whose outcome is unknown. */
  unknown_outcomes: Schema.optionalKey(Schema.Array(Label)),
  /** Rule of the newest decision. */
  rule: Schema.optionalKey(Rule),
  retry_of: Schema.optionalKey(Label),
  end: Schema.optionalKey(RunEnd),
});
export type RunSummary = typeof RunSummary.Type;

/** Body of a request that answers a run's open question. */
export const AnswerGiven = Schema.Struct({
  revision: Schema.Natural,
  choice: Choice,
  /** Confirms that calls that ran or may have run may run again. */
  confirm_may_repeat: Schema.optionalKey(Schema.Boolean),
});

/** Response to a cancel. */
export const RunCancelled = Schema.Struct({
  /**
   * `here`: this process owned the run. `forwarded`: the owning process was notified. `unowned`: no process owned the run, so it was ended
   * in the record. `pending`: the owning process has not replied yet; it cancels the run as soon as it can.
   */
  outcome: Schema.Literals(["here", "forwarded", "unowned", "pending"]),
  /** Process that owned the run, if it was not this one. */
  driver: Schema.optionalKey(Label),
  /** The outcome as a sentence for a person. */
  message: Schema.String,
  run: RunSummary,
});

const PathTried = Schema.Struct({ path: Schema.String });

const Health = Schema.Struct({
  /** `degraded`: requests are served, but a dependency fails. */
  status: Schema.Literals(["ok", "degraded", "draining"]),
  /** `store`: its writes are slow or fail. */
  degraded: Schema.optionalKey(Schema.Literal("store")),
  /** State of the store's writes, with `reason` and `since` (milliseconds since the epoch) while they are slow or fail. */
  store: Schema.Struct({
    writes: Schema.Literals(["ok", "slow", "failing"]),
    reason: Schema.optionalKey(Label),
    since: Schema.optionalKey(Milliseconds),
  }),
  /** True if the record of a run outlives the process. */
  durable: Schema.Boolean,
  live: Schema.Natural,
  draining: Schema.Boolean,
});

const runId = { id: Label };
const lost = [ApiUnavailable] as const;
const found = [ApiNotFound, ApiUnavailable] as const;

const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }));

/** All parameters are strings, so that a refusal can name the invalid one. RunSearch.ts defines the valid values. */
const searched = {
  q: text("Text in the run's id, provider or model; ASCII letters match in either case"),
  model: text("Text in the model's name"),
  provider: text("Text in the provider's id"),
  since: text("Earliest start: ISO 8601, milliseconds since the epoch, or an age (30m, 1h, 7d)"),
  until: text("Started before this time, in the same forms as `since`"),
  state: text(`One of ${RunRecord.fields.state.literals.join(", ")}`),
  broken: text("true: only runs with an incident"),
  rule: text("The rule that decided an incident of the run"),
  end: text("How the run ended: completed, stopped, or the reason of its end"),
  before: text("Continues a list: `next` of the previous page, or a run's id"),
  limit: text(`Maximum runs per page, 1 to ${listRunsMax}; default 100`),
};

const runs = HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.get("list", "/runs", {
      query: searched,
      success: Schema.Struct({
        runs: Schema.Array(RunSummary),
        /** Value of `before` for the next page; missing on the last page. */
        next: Schema.optionalKey(Label),
      }),
      error: [ApiInvalid, ...lost],
    }).annotate(
      OpenApi.Description,
      "Runs, newest first. A page of a search by `rule` or `end` may have fewer runs than `limit` and still have a `next`",
    ),
    HttpApiEndpoint.get("run", "/runs/:id", { params: runId, success: RunRecord, error: found }),
    HttpApiEndpoint.get("incidents", "/runs/:id/incidents", {
      params: runId,
      success: Schema.Struct({ incidents: Schema.Array(RunIncident) }),
      error: found,
    }),
    HttpApiEndpoint.get("export", "/runs/:id/export", { params: runId, success: RunExport, error: found }).annotate(
      OpenApi.Description,
      "A run as JSON that is safe to share: no secret, prompt, path or id",
    ),
    HttpApiEndpoint.get("questions", "/questions", {
      success: Schema.Struct({ questions: Schema.Array(OpenQuestion) }),
      error: lost,
    }),
    HttpApiEndpoint.post("answer", "/runs/:id/answer", {
      params: runId,
      headers: { [answerHeader]: Schema.Literal("1") },
      payload: AnswerGiven,
      success: RunSummary,
      error: [ApiInvalid, ApiRefused, ...found],
    }).annotate(
      OpenApi.Description,
      "Answers a run's open question, once, and only if nothing has happened since it was asked",
    ),
    HttpApiEndpoint.post("cancel", "/runs/:id/cancel", {
      params: runId,
      headers: { [answerHeader]: Schema.Literal("1") },
      success: RunCancelled,
      error: [ApiInvalid, ApiRefused, ...found],
    }).annotate(
      OpenApi.Description,
      "Ends a run as if its user had cancelled it, in whichever process owns it. A run without an owner is ended as cancelled, too",
    ),
    HttpApiEndpoint.get("paths", "/paths", {
      success: Schema.Struct({ paths: Schema.Array(PathView) }),
    }).annotate(
      OpenApi.Description,
      "The paths to upstreams that this process knows: first those that are down, then those that runs wait for",
    ),
    HttpApiEndpoint.post("tryPath", "/paths/try", {
      headers: { [answerHeader]: Schema.Literal("1") },
      payload: PathTried,
      success: PathView,
      error: [ApiInvalid, ApiNotFound],
    }).annotate(
      OpenApi.Description,
      "Probes a path now, with a connection and never with a request, and releases its runs if it is up",
    ),
    HttpApiEndpoint.get("streams", "/streams", {
      success: Schema.Struct({ streams: Schema.Array(AttachableRun) }),
    }).annotate(
      OpenApi.Description,
      "The runs whose responses a client may attach to, oldest first, including those that continue without their client",
    ),
    HttpApiEndpoint.get("totals", "/totals", { success: Totals, error: lost }),
    HttpApiEndpoint.get("health", "/health", { success: Health, error: lost }),
  )
  .prefix("/recovery/api");

/** The HTTP API under `/recovery/api`. */
export class Api extends HttpApi.make("recovery")
  .add(runs)
  .annotateMerge(OpenApi.annotations({ title: "effect-stream-recovery", version: "1" })) {}
