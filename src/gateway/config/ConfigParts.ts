/**
 * Schemas of the parts of a configuration file that name files, variables or each other: upstreams, routes, tokens and clients.
 * Options.ts defines their keys.
 */
import { Schema } from "effect";
import { patienceMaxMs } from "../clients/ClientOverrides.ts";
import { numberMax, wholeNumber } from "./Option.ts";
import { pathPatternExpression, pathPatternForm, pathPatternsMax } from "./PathPattern.ts";
import type { FinishFailure } from "./RouteSettings.ts";

const describe = (description: string) => ({ description });

const milliseconds = (description: string) => wholeNumber(0, numberMax).annotate(describe(description));

const text = (description: string) => Schema.String.check(Schema.isMinLength(1)).annotate(describe(description));

/** A secret, or a reference to one. */
const secret = (description: string) =>
  Schema.Union([Schema.Struct({ env: Schema.String }), Schema.Struct({ file: Schema.String }), Schema.String]).annotate(
    {
      description: `${description}. \`{ "env": "NAME" }\` or \`{ "file": "PATH" }\`; the secret itself only in a file that others cannot read`,
      message: 'expected { "env": "NAME" } or { "file": "PATH" }',
    },
  );

/** Continue shown text automatically, or break the response and possibly ask a person. */
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

/** A server that receives requests. */
export const upstream = Schema.Struct({
  url: text("Base address as a client of this server would be given it: `http(s)://host[:port][/path]`"),
  protocols: Schema.optionalKey(
    Schema.Array(Schema.Literals(["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"])).annotate(
      describe("What may be asked of it; left out, what its host's owner has, and anything of a server of your own"),
    ),
  ),
  paths: Schema.optionalKey(
    paths(
      "With a credential of its own: what clients may ask beside model requests, lists of models and token counts, as `GET /v1/files/*`; left out, nothing",
    ),
  ),
  headers: Schema.optionalKey(
    Schema.Record(Schema.String, secret("The value of a header")).annotate(
      describe("Sent with each request, in place of the client's headers of those names"),
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
    certificate.annotate(describe("Shown to a server that asks for a client's certificate")),
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
        Schema.Boolean.annotate(describe("`[DONE]` ends a chat also where its `finish_reason` never came")),
      ),
    }).annotate(describe("How its healthy streams differ from its protocol")),
  ),
  state: Schema.optionalKey(
    text("Upstreams of one such name share a provider's account, and with it what a request is bound to"),
  ),
  linger_ms: Schema.optionalKey(
    milliseconds("Its runs outlive their clients by so long, in ms; left out, the gateway's own `linger_ms`"),
  ),
  continue_text: Schema.optionalKey(
    Schema.Literals(continueText).annotate(
      describe("Whether its shown text is continued; left out, `continue_text` of the file decides"),
    ),
  ),
});

/** A further route of an upstream. */
export const route = Schema.Struct({
  id: Schema.optionalKey(
    text("Names it to clients (`x-recovery-route`), in logs and on record; the upstream's name where it is left out"),
  ),
  upstream: text("The name of the upstream that it leads to"),
  models: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(describe("Requested models that it serves, `*` for any text; left out, all")),
  ),
  set: Schema.optionalKey(
    Schema.Struct({
      headers: Schema.optionalKey(
        Schema.Record(Schema.String, Schema.String).annotate(
          describe("Headers in place of the client's of those names; a credential is the upstream's"),
        ),
      ),
      body: Schema.optionalKey(
        Schema.Record(Schema.String, Schema.Unknown).annotate(
          describe(
            "Fields of the body (`model`, or two with a dot between); a model that stands in the path is set there",
          ),
        ),
      ),
    }).annotate(describe("What a request has on this route")),
  ),
  drop: Schema.optionalKey(
    Schema.Struct({
      headers: Schema.optionalKey(Schema.Array(Schema.String).annotate(describe("Names of headers"))),
      body: Schema.optionalKey(Schema.Array(Schema.String).annotate(describe("Fields of the body"))),
    }).annotate(describe("What a request does not have on this route")),
  ),
});

/** Send parts to the client as they arrive, or after the response is proven complete. */
export const reveal = ["live", "on_complete"] as const;

/** Endings of a shown response that breaks permanently. */
export const onBreak = ["tell", "abort", "as_provider"] as const;

/** A row of the client table, or changes to one. */
export const client = Schema.Struct({
  match: Schema.optionalKey(
    Schema.Union([
      Schema.Struct({ user_agent: text("What its user agent begins with") }),
      Schema.Struct({
        header: text("A header that its requests have"),
        value: Schema.optionalKey(Schema.String.annotate(describe("What that header's value begins with"))),
      }),
    ]).annotate({
      description: "How a client is recognised that has no row of its own in the table of clients",
      message: 'expected { "user_agent": "…" } or { "header": "…", "value": "…" }',
    }),
  ),
  as: Schema.optionalKey(text("The client of the table that it is treated as; `unknown` where it is left out")),
  reveal: Schema.optionalKey(Schema.Literals(reveal).annotate(describe("What is held back from this client"))),
  on_break: Schema.optionalKey(
    Schema.Literals(onBreak).annotate(describe("What it gets where a shown response breaks for good")),
  ),
  patience_ms: Schema.optionalKey(
    wholeNumber(0, patienceMaxMs).annotate(describe("Maximum time that a head is withheld from it, in ms")),
  ),
  hold_max_ms: Schema.optionalKey(milliseconds("A held response is handed over as live after so long, in ms")),
  status: Schema.optionalKey(
    Schema.Literals([400, 424]).annotate(describe("Status of a run that is given up before its head")),
  ),
  ending: Schema.optionalKey(Schema.Literals(["clean", "broken"]).annotate(describe("What follows its error event"))),
  first_no_op: Schema.optionalKey(
    Schema.Literals(["event", "comment"]).annotate(describe("What keeps it waiting before any event of the response")),
  ),
});

/** A client token. */
export const token = Schema.Struct({
  token: secret("What its clients send: at least 16 letters, digits and `-._~`"),
  upstreams: Schema.optionalKey(
    Schema.Array(Schema.String).annotate(describe("Names of the upstreams that it permits; left out, all")),
  ),
  paths: Schema.optionalKey(
    paths("What it may ask of upstreams with a credential of their own, beside what these permit by their own `paths`"),
  ),
  page: Schema.optionalKey(Schema.Boolean.annotate(describe("Permits the page and its API; left out, no"))),
  metrics: Schema.optionalKey(Schema.Boolean.annotate(describe("Permits `/metrics`; left out, no"))),
});

/** The parts of a file that the reader resolves. */
export interface ConfigParts {
  readonly clients?: { readonly [name: string]: typeof client.Type };
  readonly listen?: { readonly tls?: typeof certificate.Type };
  readonly moves_on?: { readonly [upstream: string]: ReadonlyArray<FinishFailure> };
  readonly routes?: { readonly [upstream: string]: ReadonlyArray<typeof route.Type> };
  readonly tokens?: { readonly [name: string]: typeof token.Type };
  readonly upstreams?: { readonly [name: string]: typeof upstream.Type };
}
