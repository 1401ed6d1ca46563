/**
 * Contains the schemas for the parts of a configuration file that name files, variables or each other: upstreams, routes, tokens and
 * clients. Options.ts defines their keys.
 */
import { Schema } from "effect";
import { protocols } from "../../provider/Protocols.ts";
import { patienceMaxMs } from "../clients/ClientOverrides.ts";
import { numberMax, wholeNumber } from "./Option.ts";
import { pathPatternExpression, pathPatternForm, pathPatternsMax } from "./PathPattern.ts";
import type { FinishFailure } from "./RouteSettings.ts";

const describe = (description: string) => ({ description });

const milliseconds = (description: string) => wholeNumber(0, numberMax).annotate(describe(description));

const text = (description: string) => Schema.String.check(Schema.isMinLength(1)).annotate(describe(description));

/** A secret as text, or a reference to a variable or file that contains it. */
const secret = (description: string) =>
  Schema.Union([Schema.Struct({ env: Schema.String }), Schema.Struct({ file: Schema.String }), Schema.String]).annotate(
    {
      description: `${description}. \`{ "env": "NAME" }\` or \`{ "file": "PATH" }\`; the secret itself is allowed only in a file that others cannot read`,
      message: 'expected { "env": "NAME" } or { "file": "PATH" }',
    },
  );

/** `auto` continues shown text automatically. `ask` ends the response with an error, or asks a person. */
export const continueText = ["auto", "ask"] as const;

const paths = (description: string) =>
  Schema.Array(Schema.String.check(Schema.isPattern(pathPatternExpression, { message: `expected ${pathPatternForm}` })))
    .check(Schema.isMaxLength(pathPatternsMax))
    .annotate(describe(description));

/** Paths of a certificate and its key. */
export const certificate = Schema.Struct({
  cert: text("File of the certificate and its chain (PEM)"),
  key: text("File of its key (PEM)"),
});

/** An upstream: a server to which the gateway forwards requests. */
export const upstream = Schema.Struct({
  url: text("Base URL, as a client of this server would use it: `http(s)://host[:port][/path]`"),
  protocols: Schema.optionalKey(
    Schema.Array(Schema.Literals(protocols.ids)).annotate(
      describe(
        "Protocols that it accepts; if omitted, those of the vendor that owns the host, and any for your own server",
      ),
    ),
  ),
  paths: Schema.optionalKey(
    paths(
      "If it has its own credential: paths that clients may use besides model requests, model lists and token counts, for example `GET /v1/files/*`; if omitted, none",
    ),
  ),
  headers: Schema.optionalKey(
    Schema.Record(Schema.String, secret("The value of a header")).annotate(
      describe("Sent with each request, replacing the client's headers of the same names"),
    ),
  ),
  credential: Schema.optionalKey(
    secret("The upstream's own credential, which replaces every credential of the client"),
  ),
  aws: Schema.optionalKey(
    Schema.Struct({
      access_key_id: secret("Id of the access key"),
      secret_access_key: secret("Its secret"),
      session_token: Schema.optionalKey(secret("Its session token, if the key is temporary")),
      region: Schema.optionalKey(text("Region of the signature; if omitted, that of the host")),
    }).annotate(
      describe("Access key of AWS, with which the gateway signs each request in place of the client (Amazon Bedrock)"),
    ),
  ),
  proxy: Schema.optionalKey(
    secret(
      "The egress proxy, `http://[user:password@]host:port`, or `direct` for none; if omitted, taken from the environment",
    ),
  ),
  ca: Schema.optionalKey(text("File of certificates (PEM) that are trusted in addition to Node's own")),
  client_cert: Schema.optionalKey(
    certificate.annotate(describe("Presented to a server that requests a client certificate")),
  ),
  http: Schema.optionalKey(
    Schema.Literal(1).annotate({
      description: "HTTP version to the provider; only 1 is supported",
      message: "expected 1: the gateway speaks HTTP/1.1 to providers; omit `http`",
    }),
  ),
  tolerance: Schema.optionalKey(
    Schema.Struct({
      done_without_finish: Schema.optionalKey(
        Schema.Boolean.annotate(describe("`[DONE]` ends a chat even if no `finish_reason` arrived")),
      ),
    }).annotate(describe("Deviations from its protocol that count as healthy")),
  ),
  state: Schema.optionalKey(
    text(
      "Name of the provider account. A request that refers to data of the account (files, stored responses) moves only between upstreams with the same account; these also share a client's key",
    ),
  ),
  linger_ms: Schema.optionalKey(
    milliseconds("How long its runs continue after their clients leave, in ms; if omitted, the gateway's `linger_ms`"),
  ),
  continue_text: Schema.optionalKey(
    Schema.Literals(continueText).annotate(
      describe(
        "Continues shown text of its broken responses (`auto`) or not (`ask`); if omitted, the file's `continue_text` decides",
      ),
    ),
  ),
});

/** A fallback route of an upstream. */
export const route = Schema.Struct({
  id: Schema.optionalKey(
    text("Its name for clients (`x-recovery-route`), in logs and on record; if omitted, the upstream's name"),
  ),
  upstream: text("The upstream that receives its requests"),
  models: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(
      describe("Requested models that it serves; `*` matches any text; if omitted, all"),
    ),
  ),
  set: Schema.optionalKey(
    Schema.Struct({
      headers: Schema.optionalKey(
        Schema.Record(Schema.String, Schema.String).annotate(
          describe(
            "Headers that replace the client's headers of the same names; set a credential on the upstream, not here",
          ),
        ),
      ),
      body: Schema.optionalKey(
        Schema.Record(Schema.String, Schema.Unknown).annotate(
          describe("Fields of the body (`model`, or two names joined by a dot); a model in the path is replaced there"),
        ),
      ),
    }).annotate(describe("Headers and fields to set in a request on this route")),
  ),
  drop: Schema.optionalKey(
    Schema.Struct({
      headers: Schema.optionalKey(Schema.Array(Schema.String).annotate(describe("Names of headers"))),
      body: Schema.optionalKey(Schema.Array(Schema.String).annotate(describe("Fields of the body"))),
    }).annotate(describe("Headers and fields to remove from a request on this route")),
  ),
});

/** `live` sends parts to the client as they arrive. `on_complete` sends them once the response is proven complete. */
export const reveal = ["live", "on_complete"] as const;

/** Endings of a shown response that broke and cannot be recovered. */
export const onBreak = ["tell", "abort", "as_provider"] as const;

/** A row of the client table, or changes to a row. */
export const client = Schema.Struct({
  match: Schema.optionalKey(
    Schema.Union([
      Schema.Struct({ user_agent: text("The beginning of its user agent") }),
      Schema.Struct({
        header: text("A header of its requests"),
        value: Schema.optionalKey(Schema.String.annotate(describe("The beginning of that header's value"))),
      }),
    ]).annotate({
      description: "Recognises a client that has no row in the table of clients",
      message: 'expected { "user_agent": "…" } or { "header": "…", "value": "…" }',
    }),
  ),
  as: Schema.optionalKey(text("The client of the table whose row applies; if omitted, `unknown`")),
  reveal: Schema.optionalKey(
    Schema.Literals(reveal).annotate(describe("When the gateway sends a response to this client")),
  ),
  on_break: Schema.optionalKey(
    Schema.Literals(onBreak).annotate(
      describe("How a response ends for this client if it breaks permanently after a part was shown"),
    ),
  ),
  patience_ms: Schema.optionalKey(
    wholeNumber(0, patienceMaxMs).annotate(
      describe("Maximum time that the gateway withholds the response head from it, in ms"),
    ),
  ),
  hold_max_ms: Schema.optionalKey(milliseconds("Time after which a held response continues as live, in ms")),
  status: Schema.optionalKey(
    Schema.Literals([400, 424]).annotate(
      describe("HTTP status that the client gets if a run fails permanently before a response head was sent"),
    ),
  ),
  ending: Schema.optionalKey(
    Schema.Literals(["clean", "broken"]).annotate(describe("How the body ends after its error event")),
  ),
  first_no_op: Schema.optionalKey(
    Schema.Literals(["event", "comment"]).annotate(
      describe("Sent before the first event of the response, so that the client does not time out"),
    ),
  ),
});

/** A token that clients of the gateway send. */
export const token = Schema.Struct({
  token: secret("The secret that its clients send: at least 16 letters, digits and `-._~`"),
  upstreams: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(describe("Names of the upstreams that it permits; if omitted, all")),
  ),
  paths: Schema.optionalKey(
    paths("Paths that it may use at upstreams with their own credential, in addition to those upstreams' `paths`"),
  ),
  page: Schema.optionalKey(Schema.Boolean.annotate(describe("Permits the page and its API; if omitted, no"))),
  metrics: Schema.optionalKey(Schema.Boolean.annotate(describe("Permits `/metrics`; if omitted, no"))),
});

/** The parts of a configuration file that refer to files, variables or each other. `ConfigFile` resolves these references. */
export interface ConfigParts {
  readonly clients?: { readonly [name: string]: typeof client.Type };
  readonly listen?: { readonly tls?: typeof certificate.Type };
  readonly moves_on?: { readonly [upstream: string]: ReadonlyArray<FinishFailure> };
  readonly routes?: { readonly [upstream: string]: ReadonlyArray<typeof route.Type> };
  readonly tokens?: { readonly [name: string]: typeof token.Type };
  readonly upstreams?: { readonly [name: string]: typeof upstream.Type };
}
