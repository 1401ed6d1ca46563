/**
 * Describes the configuration file of a gateway: every key, what it holds and what it means. The published JSON Schema and the
 * table of keys in the documentation are printed from it.
 */
import { Schema } from "effect";
import { PrefillRule } from "../../provider/seam/Prefills.ts";
import { retentionDefault } from "../../recorder/retention/Retention.ts";
import { limitsDefault, lingerMaxMsDefault, maxOutageMsDefault } from "./GatewayOptions.ts";
import { pathPatternExpression, pathPatternForm, pathPatternsMax } from "./PathPattern.ts";
import { workersMax } from "./ProgramOptions.ts";

const said = (description: string) => ({ description });

/** Whole milliseconds that a timer takes. */
const milliseconds = (description: string) =>
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })).annotate(said(description));

const counted = (description: string) =>
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_147_483_647 })).annotate(said(description));

const dollars = (description: string) =>
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)).annotate(said(description));

const text = (description: string) => Schema.String.check(Schema.isMinLength(1)).annotate(said(description));

/** A secret, or where it stands. */
const secret = (description: string) =>
  Schema.Union([Schema.Struct({ env: Schema.String }), Schema.Struct({ file: Schema.String }), Schema.String]).annotate(
    {
      description: `${description}. \`{ "env": "NAME" }\` or \`{ "file": "PATH" }\`; the secret itself only in a file that others cannot read`,
      message: 'expected { "env": "NAME" } or { "file": "PATH" }',
    },
  );

const continueText = Schema.Literals(["auto", "ask"]);

const paths = (description: string) =>
  Schema.Array(Schema.String.check(Schema.isPattern(pathPatternExpression, { message: `expected ${pathPatternForm}` })))
    .check(Schema.isMaxLength(pathPatternsMax))
    .annotate(said(description));

const upstream = Schema.Struct({
  url: text("Base address as a client of this server would be given it: `http(s)://host[:port][/path]`"),
  protocols: Schema.optionalKey(
    Schema.Array(Schema.Literals(["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"])).annotate(
      said("What may be asked of it; left out, what its host's owner has, and anything of a server of your own"),
    ),
  ),
  paths: Schema.optionalKey(
    paths(
      "With a credential of its own: what clients may ask beside model requests, lists of models and token counts, as `GET /v1/files/*`; left out, nothing",
    ),
  ),
  headers: Schema.optionalKey(
    Schema.Record(Schema.String, secret("The value of a header")).annotate(
      said("Sent with each request, in place of the client's headers of those names"),
    ),
  ),
  credential: Schema.optionalKey(
    secret("The upstream's own credential, sent in place of every credential of the client"),
  ),
  proxy: Schema.optionalKey(
    secret(
      "The egress proxy, `http://[user:password@]host:port`, or `direct` for none; left out, the environment says it",
    ),
  ),
  ca: Schema.optionalKey(text("File of certificates (PEM) that are trusted beside Node's own")),
  client_cert: Schema.optionalKey(
    Schema.Struct({
      cert: text("File of the certificate and its chain (PEM)"),
      key: text("File of its key (PEM)"),
    }).annotate(said("Shown to a server that asks for a client's certificate")),
  ),
  http: Schema.optionalKey(
    Schema.Literal(1).annotate({
      description: "HTTP version to the provider: 1, the only one",
      message: "expected 1: the gateway speaks HTTP/1.1 to providers; leave `http` out",
    }),
  ),
  tolerance: Schema.optionalKey(
    Schema.Struct({
      done_without_finish: Schema.optionalKey(
        Schema.Boolean.annotate(said("`[DONE]` ends a chat also where its `finish_reason` never came")),
      ),
    }).annotate(said("How its healthy streams differ from its protocol")),
  ),
  state: Schema.optionalKey(
    text("Upstreams of one such name share a provider's account, and with it what a request is bound to"),
  ),
  linger_ms: Schema.optionalKey(
    counted("Its runs outlive their clients by so long, in ms; left out, the gateway's own `linger_ms`"),
  ),
  continue_text: Schema.optionalKey(
    continueText.annotate(
      said("Whether its shown text goes on by itself; left out, `continue_text` of the file says it"),
    ),
  ),
});

const route = Schema.Struct({
  id: Schema.optionalKey(
    text("Names it to clients (`x-recovery-route`), in logs and on record; the upstream's name where it is left out"),
  ),
  upstream: text("The name of the upstream that it leads to"),
  models: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(said("Requested models that it serves, `*` for any text; left out, all")),
  ),
  set: Schema.optionalKey(
    Schema.Struct({
      headers: Schema.optionalKey(
        Schema.Record(Schema.String, Schema.String).annotate(
          said("Headers in place of the client's of those names; a credential is the upstream's"),
        ),
      ),
      body: Schema.optionalKey(
        Schema.Record(Schema.String, Schema.Unknown).annotate(
          said("Fields of the body (`model`, or two with a dot between); a model that stands in the path is set there"),
        ),
      ),
    }).annotate(said("What a request has on this route")),
  ),
  drop: Schema.optionalKey(
    Schema.Struct({
      headers: Schema.optionalKey(Schema.Array(Schema.String).annotate(said("Names of headers"))),
      body: Schema.optionalKey(Schema.Array(Schema.String).annotate(said("Fields of the body"))),
    }).annotate(said("What a request does not have on this route")),
  ),
});

const reveal = Schema.Literals(["live", "on_complete"]);
const onBreak = Schema.Literals(["tell", "abort", "as_provider"]);

const client = Schema.Struct({
  match: Schema.optionalKey(
    Schema.Union([
      Schema.Struct({ user_agent: text("What its user agent begins with") }),
      Schema.Struct({
        header: text("A header that its requests have"),
        value: Schema.optionalKey(Schema.String.annotate(said("What that header's value begins with"))),
      }),
    ]).annotate({
      description: "How a client is recognised that has no row of its own in the table of clients",
      message: 'expected { "user_agent": "…" } or { "header": "…", "value": "…" }',
    }),
  ),
  as: Schema.optionalKey(text("The client of the table that it is treated as; `unknown` where it is left out")),
  reveal: Schema.optionalKey(reveal.annotate(said("What is held back from this client"))),
  on_break: Schema.optionalKey(onBreak.annotate(said("What it gets where a shown response breaks for good"))),
  patience_ms: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 240_000 })).annotate(
      said("A head is withheld from it so long at most, in ms"),
    ),
  ),
  hold_max_ms: Schema.optionalKey(counted("A held response is handed over as live after so long, in ms")),
  status: Schema.optionalKey(
    Schema.Literals([400, 424]).annotate(said("Status of a run that is given up before its head")),
  ),
  ending: Schema.optionalKey(Schema.Literals(["clean", "broken"]).annotate(said("What follows its error event"))),
  first_no_op: Schema.optionalKey(
    Schema.Literals(["event", "comment"]).annotate(said("What keeps it waiting before any event of the response")),
  ),
});

const token = Schema.Struct({
  token: secret("What its clients send: at least 16 letters, digits and `-._~`"),
  upstreams: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(said("Names of the upstreams that it permits; left out, all")),
  ),
  paths: Schema.optionalKey(
    paths("What it may ask of upstreams with a credential of their own, beside what these permit by their own `paths`"),
  ),
  page: Schema.optionalKey(Schema.Boolean.annotate(said("Permits the page and its API; left out, no"))),
  metrics: Schema.optionalKey(Schema.Boolean.annotate(said("Permits `/metrics`; left out, no"))),
});

const clock = (description: string) =>
  Schema.optionalKey(
    Schema.Union([Schema.Literal("off"), milliseconds("")]).annotate({
      description,
      message: 'expected whole milliseconds from 1 to 2147483647, or "off"',
    }),
  );

const clocks = Schema.Struct({
  connect: Schema.optionalKey(
    milliseconds("Until there is a connection: name lookup, proxy, TCP and TLS together; never `off`"),
  ),
  first_progress: clock("From the request to the first progress"),
  idle: clock("From progress to progress"),
  silence: clock("Without any byte, where the provider sends keep-alives"),
  attempt: clock("The whole attempt"),
  run: clock("The whole run, over its attempts"),
});

const budget = Schema.Struct({
  max_auto_retries: Schema.optionalKey(counted("Automatic retries over all modes")),
  max_not_processed: Schema.optionalKey(
    counted("Retries of requests that the provider did not process, or that were not sent"),
  ),
  max_after_shown: Schema.optionalKey(counted("Replays after something was shown")),
  max_after_stall: Schema.optionalKey(counted("Replays after a stall")),
  max_elapsed_ms: Schema.optionalKey(counted("Time since the first failure, in ms")),
  max_retry_after_ms: Schema.optionalKey(counted("Longest Retry-After that is waited for, in ms")),
  max_moves: Schema.optionalKey(counted("Times that a run moves to another route")),
  max_wasted_tokens: Schema.optionalKey(
    counted("Tokens that broken responses of a run may cost, with those that a retry would repeat; left out, no limit"),
  ),
  max_group_retries: Schema.optionalKey(
    counted("Automatic retries that the runs of a group (`x-recovery-group`) share; left out, no limit"),
  ),
  max_group_wasted_tokens: Schema.optionalKey(
    counted("Tokens that broken responses of a group's runs may cost together; left out, no limit"),
  ),
  max_outage_ms: Schema.optionalKey(
    Schema.Union([Schema.Literal("forever"), counted("")]).annotate({
      description: `All waits of a run for a way to its provider and for announced cooldowns together, in ms, or \`forever\`; ${maxOutageMsDefault} where it is left out`,
      message: 'expected whole milliseconds from 0 to 2147483647, or "forever"',
    }),
  ),
});

const limit = (description: string, byDefault: number) =>
  Schema.optionalKey(milliseconds(`${description}; ${byDefault} where it is left out`));

const limits = Schema.Struct({
  max_body_bytes: limit("Longest body of a model request", limitsDefault.maxBodyBytes),
  max_bodies_bytes: limit("Bodies of all model requests at one time", limitsDefault.maxBodiesBytes),
  max_passed_bytes: limit("Longest body of a request that passes through", limitsDefault.maxPassedBytes),
  max_header_bytes: limit("Longest head of a request", limitsDefault.maxHeaderBytes),
  max_connections: limit("Most connections of clients", limitsDefault.maxConnections),
  head_ms: limit("Time to send a head", limitsDefault.headMs),
  request_ms: limit("Time to send a request", limitsDefault.requestMs),
  slow_client_ms: limit("A client that takes no byte for so long is given up", limitsDefault.slowClientMs),
  idle_connection_ms: limit("A connection without a request is closed after so long", limitsDefault.idleConnectionMs),
  drain_ms: limit("A shutdown waits so long for what runs", limitsDefault.drainMs),
});

const listen = Schema.Struct({
  host: Schema.optionalKey(text("Address to listen on; any but this machine's own needs a token")),
  port: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })).annotate(
      said("Port to listen on; 0 takes any free one"),
    ),
  ),
  tls: Schema.optionalKey(
    Schema.Struct({
      cert: text("File of the certificate and its chain (PEM)"),
      key: text("File of its key (PEM)"),
    }).annotate(said("Listens with TLS")),
  ),
});

/** The whole file. */
export const ConfigSchema = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String.annotate(said("Where this schema stands, for editors"))),
  listen: Schema.optionalKey(listen.annotate(said("Where it listens"))),
  upstreams: Schema.optionalKey(
    Schema.Record(Schema.String, upstream).annotate(
      said("By name. `openai`, `anthropic` and `gemini` need no prefix; any other is reached under `/u/NAME/`"),
    ),
  ),
  routes: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Array(route)).annotate(
      said("By the name of the upstream that requests go to: where they move when it fails, in this order"),
    ),
  ),
  moves_on: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Array(Schema.Literals(["refused", "empty", "model_length"]))).annotate(
      said(
        "By the name of an upstream with routes: finishes that are failures, so that the next route takes the request",
      ),
    ),
  ),
  tokens: Schema.optionalKey(
    Schema.Record(Schema.String, token).annotate(
      said("By name, which stands in logs and metrics in the token's place"),
    ),
  ),
  allowed_hosts: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(said("Names besides this machine's own that a request's Host may say")),
  ),
  reveal: Schema.optionalKey(
    reveal.annotate(said("What is held back from clients; left out, each client's row says it")),
  ),
  on_break: Schema.optionalKey(
    onBreak.annotate(said("What a client gets where a shown response breaks for good; left out, its row says it")),
  ),
  continue_text: Schema.optionalKey(
    continueText.annotate(
      said(
        "Whether text that was shown goes on by itself where the seam can be proven (`auto`), or the response breaks (`ask`); `ask` where it is left out",
      ),
    ),
  ),
  prefills: Schema.optionalKey(
    Schema.Array(PrefillRule).annotate(
      said(
        "Which providers go on with a text that a request ends with, by origin and model (`*` stands for any text), before those that are known; the first that fits counts",
      ),
    ),
  ),
  on_question: Schema.optionalKey(
    Schema.Literals(["fail", "hold"]).annotate(said("Whether a client waits for an answer to a question")),
  ),
  hold_ms: Schema.optionalKey(milliseconds("A held question stops after so long, in ms")),
  hold_max_ms: Schema.optionalKey(counted("A held response is handed over as live after so long, in ms")),
  linger_ms: Schema.optionalKey(
    counted(
      "A run outlives its client by so long, in ms, so that the client may come back to it; 0, the default, is off",
    ),
  ),
  linger_max_ms: Schema.optionalKey(
    milliseconds(
      `The longest that a request may ask for by \`x-recovery-linger\`, in ms; ${lingerMaxMsDefault} where it is left out`,
    ),
  ),
  delivery_log: Schema.optionalKey(
    Schema.Boolean.annotate(
      said("With PostgreSQL: a client of a run that lingers may come back to any gateway over it; left out, no"),
    ),
  ),
  comment_ms: Schema.optionalKey(milliseconds("A client that waits hears something every so often, in ms")),
  clients: Schema.optionalKey(
    Schema.Record(Schema.String, client).annotate(
      said("By name: a client of the table or `unknown` changes that row, any other name makes a row of its own"),
    ),
  ),
  clocks: Schema.optionalKey(clocks.annotate(said("Clocks of an attempt, in ms, or `off`"))),
  budget: Schema.optionalKey(budget.annotate(said("What a run may spend"))),
  prices: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        input: dollars("A million tokens of requests, in US dollars"),
        output: dollars("A million tokens of responses, in US dollars"),
      }),
    ).annotate(
      said(
        "By model, or by the beginning of its name with `*` behind: money on the page, in metrics and in `runs list`",
      ),
    ),
  ),
  policy: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Literals(["ask_user", "do_not_retry"])).annotate(
      said("By rule: a stricter action than the default policy's"),
    ),
  ),
  limits: Schema.optionalKey(limits.annotate(said("Limits: sizes in bytes, times in ms"))),
  log: Schema.optionalKey(
    Schema.Struct({
      format: Schema.optionalKey(
        Schema.Literals(["text", "json"]).annotate(said("How a line is written; text where it is left out")),
      ),
      access: Schema.optionalKey(Schema.Boolean.annotate(said("Whether each request gets a line"))),
    }).annotate(said("What is logged, and how")),
  ),
  require_store: Schema.optionalKey(
    Schema.Boolean.annotate(said("`/readyz` says 503 while the store takes no writes; left out, no")),
  ),
  retry_empty: Schema.optionalKey(
    Schema.Boolean.annotate(said("Whether a response with nothing in it is asked for again; left out, yes")),
  ),
  keep_runs: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^(?:\d{1,6}[smhdw]|forever)$/)).annotate({
      description:
        "How long ended runs are kept, as `30d`, `12h` or `2w`, or `forever`; 30d where it is left out. A run that has not ended stays",
      message: "expected a duration such as 30d, 12h or 2w, or forever",
    }),
  ),
  keep_runs_max: Schema.optionalKey(
    counted(
      `Most ended runs that are kept, those that ended last, and none goes within a minute of its end; ${retentionDefault.runs} where it is left out, and all with \`keep_runs: "forever"\``,
    ),
  ),
  db: Schema.optionalKey(text("SQLite file with the runs, `postgres://…`, or `memory`")),
  workers: Schema.optionalKey(
    Schema.Union([
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: workersMax })),
      Schema.Literal("auto"),
    ]).annotate({
      description: "Processes that serve behind the one port; `auto` is one a core, and 1 where it is left out",
      message: `expected 1 to ${workersMax}, or "auto"`,
    }),
  ),
  lease_ms: Schema.optionalKey(milliseconds("So long after the death of a gateway its runs are recovered, in ms")),
});
export type ConfigSchema = typeof ConfigSchema.Type;

/** The file as JSON Schema, draft 2020-12, in which an unknown key is wrong as it is here. */
export const jsonSchema = (): object => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(ConfigSchema);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of stream-recovery serve",
    ...strict(schema),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
  };
};

const strict = (schema: object): object =>
  Object.fromEntries(
    Object.entries(schema).map(([key, value]): [string, unknown] => {
      if (key === "additionalProperties" && value === true && "properties" in schema) return [key, false];
      return [key, closed(value)];
    }),
  );

const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed);
  return typeof value === "object" && value !== null ? strict(value) : value;
};
