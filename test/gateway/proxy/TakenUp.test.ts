/**
 * A background response whose stream breaks is resumed with its cursor: its client sees one whole stream, its provider one post.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Json from "../../../src/domain/Json.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { Answers, type FaultProvider, type FaultProviderOptions } from "../../../src/testing/index.ts";
import { serverOf } from "../../Servers.ts";
import { front, fronted, type Got, post, recovery } from "../GatewayCases.ts";

type Script = NonNullable<FaultProviderOptions["script"]>;
type Played = NonNullable<Script["answers"]>;

const content = [{ reasoning: 2 }, { text: 3 }, { tool: "bash", input: { cmd: "ls" } }];
const background = { content, background: true };
const whole = Answers.render("openai-responses", 1, background);
const all = whole.map((_, index) => index);
const cut = (n: number, kind: "rst" | "end" = "rst") => ({ break: { kind, at: "event", n } }) as const;
const resume = { resume: {} };

/** Keep-alives are rare enough to stay out of the comparison. */
const program: GatewayProgram = { keepAliveMs: 60_000 };
const body = (more: object = { background: true, store: true }) => ({
  body: JSON.stringify({ model: "m", input: "x", stream: true, ...more }),
});

const numbers = (got: Got): ReadonlyArray<number | undefined> =>
  got.text
    .split("\n")
    .flatMap((line) => (line.startsWith("data: {") ? [line.slice("data: ".length)] : []))
    .map((data) => Json.natural(Json.record(Json.parse(data)?.json)?.sequence_number));

const requestsOf = (server: FaultProvider["Service"]) =>
  Effect.map(server.log, (rows) => rows.map(({ method, path }) => `${method} ${path}`));

const played = (answers: Played, more: GatewayProgram = {}, sent: object = { background: true }) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { server, url, runs } = yield* fronted({ answers }, { ...program, ...more });
      const got = yield* post(url, "openai-responses", body(sent));
      return { got, requests: yield* requestsOf(server), runs: yield* runs };
    }),
  );

const readOn = ["POST /v1/responses", "GET /v1/responses/resp_r1"];

describe.concurrent("A broken background response is resumed", () => {
  for (const reveal of ["live", "on_complete"] as const) {
    it.live(`cut after each of its ${all.length} events, its client in ${reveal} sees every event once and whole`, () =>
      Effect.gen(function* () {
        const uncut = yield* played([background], { reveal });
        assert.deepStrictEqual(numbers(uncut.got), all);
        const cuts = all.slice(1).flatMap((k) => [[k, "rst"] as const, [k, "end"] as const]);
        yield* Effect.forEach(
          cuts,
          Effect.fnUntraced(function* ([k, kind]) {
            const { got, requests } = yield* played([{ ...background, ...cut(k, kind) }, resume], { reveal });
            assert.strictEqual(got.text, uncut.got.text, `cut after ${k} by ${kind}`);
            assert.isFalse(got.broken, `cut after ${k} by ${kind}`);
            assert.deepStrictEqual(requests, readOn, `cut after ${k} by ${kind}`);
          }),
          { concurrency: 8 },
        );
      }),
    );
  }

  it.live("cut repeatedly, even after its call, it is resumed at each break", () =>
    Effect.gen(function* () {
      const answers = [{ ...background, ...cut(5) }, { ...resume, ...cut(1) }, { ...resume, ...cut(7) }, resume];
      const { got, requests } = yield* played(answers);
      assert.deepStrictEqual([numbers(got), got.broken], [all, false]);
      assert.deepStrictEqual(requests, [...readOn, ...Array(2).fill(readOn[1])]);
    }),
  );

  it.live("events that the provider repeats do not reach the client", () =>
    Effect.gen(function* () {
      for (const repeat of [1, 100]) {
        const { got } = yield* played([{ ...background, ...cut(6) }, { resume: { repeat } }]);
        assert.deepStrictEqual([numbers(got), got.broken], [all, false], `repeats ${repeat}`);
      }
    }),
  );

  it.live("a provider that fails to resume it is asked again, with its cursor", () =>
    Effect.gen(function* () {
      for (const status of [500, 503]) {
        const { got, requests } = yield* played([{ ...background, ...cut(9) }, { status }, resume]);
        assert.deepStrictEqual([numbers(got), got.broken], [all, false], `${status}`);
        assert.deepStrictEqual(requests, [...readOn, readOn[1]]);
      }
    }),
  );
});

describe.concurrent("A refused cursor is decided again without it", () => {
  const json = { raw: '{"id":"resp_r1","status":"completed"}', headers: { "content-type": "application/json" } };
  const refusals = [
    ["404", { status: 404 }],
    ["400", { status: 400 }],
    ["a gap", { resume: { skip: 1 } }],
    ["a document", json],
  ] as const;
  for (const [words, refusal] of refusals)
    it.live(`${words}: nothing is posted a second time, wherever it broke`, () =>
      Effect.forEach(
        [1, 4, 9, 12],
        Effect.fnUntraced(function* (k) {
          const answers = [{ ...background, ...cut(k) }, refusal, background];
          const { got, requests, runs } = yield* played(answers as Played);
          assert.deepStrictEqual(requests, readOn, `cut after ${k}`);
          assert.isFalse(numbers(got).length === all.length && got.status === 200 && !got.broken);
          const rules = runs[0]?.incidents.map(({ decision }) => decision.rule);
          assert.deepStrictEqual([rules?.[0], rules?.length], ["resume_cursor", 2], `cut after ${k}`);
        }),
        { concurrency: 4 },
      ),
    );
});

describe.concurrent("No other response is resumed", () => {
  it.live("a stored response ends with its connection at OpenAI, and is not requested by GET", () =>
    Effect.gen(function* () {
      const { requests } = yield* played([{ content, ...cut(12) }, { content }], {}, { store: true });
      assert.deepStrictEqual(requests, ["POST /v1/responses"]);
    }),
  );

  it.live("a background request that does not stream returns its document at once, from one post", () =>
    Effect.gen(function* () {
      const document = '{"id":"resp_1","object":"response","status":"queued","background":true,"output":[]}';
      let posts = 0;
      const upstream = yield* serverOf((request, response) => {
        posts += 1;
        request.resume().on("end", () => response.setHeader("content-type", "application/json").end(document));
      });
      const { url } = yield* front(upstream, program);
      const got = yield* post(url, "openai-responses", body({ background: true, stream: false }));
      assert.deepStrictEqual([got.status, got.text, posts], [200, document, 1]);
      assert.isDefined(recovery(got, "run"));
    }).pipe(Effect.scoped),
  );
});

const event = (json: object) => `data: ${JSON.stringify(json)}\n\n`;

describe.concurrent("Keep-alives of a resumed response", () => {
  const delta = (sequence_number: number, text: string) =>
    event({ type: "response.output_text.delta", sequence_number, delta: text });
  const alive = (sequence_number: number) => event({ type: "keepalive", sequence_number });
  const end = (sequence_number: number) =>
    event({ type: "response.completed", sequence_number, response: { id: "resp_1", status: "completed" } });
  const head = event({
    type: "response.created",
    sequence_number: 0,
    response: { id: "resp_1", background: true },
  });

  const readOnWith = (rest: string) =>
    Effect.gen(function* () {
      const seen: Array<string | undefined> = [];
      const upstream = yield* serverOf((request, response) => {
        seen.push(request.method);
        request.resume().on("end", () => {
          response.setHeader("content-type", "text/event-stream");
          if (request.method === "POST") response.write(head + delta(1, "Hello"), () => response.destroy());
          else response.end(rest);
        });
      });
      const { url } = yield* front(upstream, program);
      const got = yield* post(url, "openai-responses", body());
      return { broken: got.broken, seen, said: [...got.text.matchAll(/"delta":"(\w+)"/g)].map(([, text]) => text) };
    }).pipe(Effect.scoped);

  const whole = { broken: false, seen: ["POST", "GET"], said: ["Hello", "world"] };

  for (const [words, rest] of [
    [
      "that its provider counts with its events leave no gap",
      [alive(2), alive(3), delta(4, "world"), alive(5), end(6)],
    ],
    ["that have the number of the event behind them take nothing from it", [alive(2), delta(2, "world"), end(3)]],
    ["without a number are no event", [event({ type: "keepalive" }), ": alive\n\n", delta(2, "world"), end(3)]],
  ] as const)
    it.live(words, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* readOnWith(rest.join("")), whole);
      }),
    );

  it.live("that omit numbers do not hide what is missing", () =>
    Effect.gen(function* () {
      const { broken, said } = yield* readOnWith([alive(7), delta(8, "lost"), end(9)].join(""));
      assert.deepStrictEqual([broken, said], [true, ["Hello"]]);
    }),
  );
});

describe.concurrent("The request that resumes", () => {
  const created = event({ type: "response.created", sequence_number: 0, response: { id: "resp/1", background: true } });
  const text = event({ type: "response.output_text.delta", sequence_number: 1, delta: "Hello" });
  const completed = event({
    type: "response.completed",
    sequence_number: 2,
    response: { id: "resp/1", status: "completed" },
  });

  /** Breaks the post after its text, and sends the rest in pieces after a BOM. */
  const provider = (seen: Array<IncomingMessage>) => (request: IncomingMessage, response: ServerResponse) => {
    seen.push(request);
    request.resume().on("end", () => {
      response.setHeader("content-type", "text/event-stream");
      if (request.method === "POST") {
        response.write(created + text, () => response.destroy());
        return;
      }
      response.write(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(completed.slice(0, 9))]));
      setImmediate(() => response.end(completed.slice(9)));
    });
  };

  it.live("goes to the same upstream with the same credential and query, and carries nothing of a body", () =>
    Effect.gen(function* () {
      const seen: Array<IncomingMessage> = [];
      const upstream = yield* serverOf(provider(seen));
      const { url } = yield* front(upstream, program);
      const got = yield* post(url, "openai-responses", {
        ...body(),
        path: "/v1/responses?api-version=preview",
        headers: {
          "content-type": "application/json",
          authorization: "Bearer sk-of-the-client",
          "idempotency-key": "k",
          "x-trace": "t",
        },
      });
      assert.deepStrictEqual([got.text, got.broken], [created + text + completed, false]);
      const [first, then] = seen;
      assert.deepStrictEqual([seen.length, first?.method, then?.method], [2, "POST", "GET"]);
      assert.strictEqual(then?.url, "/v1/responses/resp%2F1?api-version=preview&stream=true&starting_after=1");
      const { authorization, "x-trace": trace } = then?.headers ?? {};
      assert.deepStrictEqual([authorization, trace], ["Bearer sk-of-the-client", "t"]);
      for (const name of ["content-type", "content-length", "transfer-encoding", "idempotency-key"])
        assert.notProperty(then?.headers, name);
    }).pipe(Effect.scoped),
  );
});
