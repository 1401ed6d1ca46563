/**
 * Calls the API as any program does, by its addresses, its JSON and its statuses.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema } from "effect";
import { Totals } from "../../../src/gateway/api/Totals.ts";
import { RunExport } from "../../../src/recorder/export/ExportDocument.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { recorderThat } from "../../runtime/Scripted.ts";
import * as Runs from "../page/PageRuns.ts";
import { pageServer, put } from "../page/Server.ts";

const memory = RunRecorder.layerMemory();

const called = (path: string, init?: RequestInit) =>
  Effect.gen(function* () {
    const { handle } = yield* pageServer;
    const response = yield* handle(`/recovery/api${path}`, init);
    if (response === undefined) throw new Error(`nothing at ${path}`);
    const text = yield* Effect.promise(() => response.text());
    // The tests compare every field that they read with its expectation.
    return { status: response.status, headers: response.headers, body: JSON.parse(text) as Record<string, unknown> };
  });

const posted = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  called(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-recovery-answer": "1", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

const ids = ({ body }: { readonly body: Record<string, unknown> }) =>
  Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ run_id: Schema.String })))(body.runs).map((it) => it.run_id);

const decoded = <A, I>(schema: Schema.Codec<A, I>, body: unknown) =>
  Effect.orDie(Schema.decodeUnknownEffect(Schema.toCodecJson(schema))(body));

describe("the API", () => {
  it.effect("lists runs newest first, filtered and paged", () =>
    Effect.gen(function* () {
      yield* put([Runs.calm("a", Runs.now), Runs.recovered("b"), Runs.asking("c"), Runs.running("d")]);
      assert.deepStrictEqual(ids(yield* called("/runs")), ["d", "c", "b", "a"]);
      assert.deepStrictEqual(ids(yield* called("/runs?limit=2")), ["d", "c"]);
      assert.deepStrictEqual(ids(yield* called("/runs?limit=2&before=c")), ["b", "a"]);
      assert.deepStrictEqual(ids(yield* called("/runs?state=asking")), ["c"]);
      assert.deepStrictEqual(ids(yield* called("/runs?broken=true")), ["c", "b"]);
      assert.strictEqual((yield* called("/runs?limit=2")).body.next, "c");
      assert.isUndefined((yield* called("/runs?limit=2&before=c")).body.next);
      assert.deepStrictEqual(ids(yield* called("/runs?model=GPT&since=2026-11-22T09:00&until=2026-11-23")), ["c"]);
      assert.deepStrictEqual(ids(yield* called("/runs?rule=tool_outcome_unknown&q=c")), ["c"]);
      for (const query of ["limit=0", "limit=501", "limit=x", "state=gone", "since=soon", "until=x", "rule=luck"]) {
        const { body, status } = yield* called(`/runs?${query}`);
        const field = query.split("=")[0];
        assert.deepStrictEqual([query, status, body.reason, body.field], [query, 400, "invalid_request", field]);
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("returns one run, its incidents and its export, and nothing for an unknown one", () =>
    Effect.gen(function* () {
      yield* put([Runs.recovered("run/1 ?")]);
      const id = encodeURIComponent("run/1 ?");
      const record = yield* (yield* RunRecorder).run("run/1 ?");
      const { body } = yield* called(`/runs/${id}`);
      assert.deepStrictEqual(yield* decoded(RunRecord, body), record);
      const incidents = (yield* called(`/runs/${id}/incidents`)).body.incidents;
      assert.lengthOf(Array.isArray(incidents) ? incidents : [], 2);
      const exported = yield* called(`/runs/${id}/export`);
      assert.strictEqual((yield* decoded(RunExport, exported.body)).export, "run");
      for (const path of ["/runs/none", "/runs/none/incidents", "/runs/none/export"]) {
        const { body, status } = yield* called(path);
        assert.deepStrictEqual([path, status, body.reason], [path, 404, "unknown_run"]);
      }
      const nowhere = yield* called("/nowhere");
      assert.deepStrictEqual([nowhere.status, nowhere.body.reason], [404, "unknown_address"]);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("lists open questions and accepts an answer once", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("run_a")]);
      const { questions } = (yield* called("/questions")).body;
      const [question] = Array.isArray(questions) ? questions : [];
      assert.deepInclude(question, {
        run_id: "run_a",
        revision: 1,
        rule: "tool_outcome_unknown",
        may_repeat: ["0.0", "0.1"],
      });
      const stop = { revision: 1, choice: "stop" };
      const taken = yield* posted("/runs/run_a/answer", stop);
      assert.deepStrictEqual([taken.status, taken.body.state], [200, "ended"]);
      assert.strictEqual((yield* (yield* RunRecorder).run("run_a"))?.questions[0]?.answered_by, "person");
      const again = yield* posted("/runs/run_a/answer", stop);
      assert.deepStrictEqual([again.status, again.body.reason], [409, "run_ended"]);
      assert.deepStrictEqual((yield* called("/questions")).body.questions, []);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("names the reason for a refused answer, and changes nothing", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("run_a"), Runs.calm("run_b", Runs.now)]);
      const refusals: ReadonlyArray<readonly [string, unknown, number, string]> = [
        ["run_a", { revision: 2, choice: "stop" }, 409, "stale_revision"],
        ["run_a", { revision: 1, choice: "retry" }, 409, "may_repeat"],
        ["run_b", { revision: 1, choice: "stop" }, 409, "run_ended"],
        ["run_c", { revision: 1, choice: "stop" }, 404, "unknown_run"],
        ["run_a", { revision: 1, choice: "sing" }, 400, "invalid_request"],
        ["run_a", { choice: "stop" }, 400, "invalid_request"],
        ["run_a", "{", 400, "invalid_request"],
      ];
      for (const [run, body, status, reason] of refusals) {
        const refused = yield* posted(`/runs/${run}/answer`, body);
        assert.deepStrictEqual([run, body, refused.status, refused.body.reason], [run, body, status, reason]);
        assert.isString(refused.body.message);
      }
      assert.isUndefined((yield* (yield* RunRecorder).run("run_a"))?.questions[0]?.answer);
      const sure = { revision: 1, choice: "retry", confirm_may_repeat: true };
      assert.strictEqual((yield* posted("/runs/run_a/answer", sure)).status, 200);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("accepts a retry after which hosted tools may run again only with an explicit confirmation", () =>
    Effect.gen(function* () {
      yield* put([Runs.unprovable("run_a")]);
      const { questions } = (yield* called("/questions")).body;
      const [question] = Array.isArray(questions) ? questions : [];
      assert.deepInclude(question, {
        rule: "side_effects_unprovable",
        may_repeat: ["tools that the provider runs"],
        default_choice: "stop",
      });
      const plain = yield* posted("/runs/run_a/answer", { revision: 1, choice: "retry" });
      assert.deepStrictEqual([plain.status, plain.body.reason], [409, "may_repeat"]);
      assert.include(String(plain.body.message), "tools that the provider runs");
      const sure = { revision: 1, choice: "retry", confirm_may_repeat: true };
      assert.strictEqual((yield* posted("/runs/run_a/answer", sure)).status, 200);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("accepts no answer that a form of another site could have sent", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("run_a")]);
      const stop = { revision: 1, choice: "stop" };
      const forms: ReadonlyArray<RequestInit> = [
        { headers: { "content-type": "application/json" }, body: JSON.stringify(stop) },
        { headers: { "content-type": "text/plain" }, body: JSON.stringify(stop) },
        { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "revision=1&choice=stop" },
        { headers: { "content-type": "text/plain", "x-recovery-answer": "1" }, body: JSON.stringify(stop) },
      ];
      for (const form of forms) {
        const { status } = yield* called("/runs/run_a/answer", { method: "POST", ...form });
        assert.isTrue(status >= 400 && status < 500, `${status}`);
      }
      assert.isUndefined((yield* (yield* RunRecorder).run("run_a"))?.questions[0]?.answer);
      assert.strictEqual((yield* called("/runs/run_a/answer")).status, 404, "and no GET is one");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("describes itself as OpenAPI, with the header and the statuses of an answer", () =>
    Effect.gen(function* () {
      const { body, headers } = yield* called("/openapi.json");
      const text = JSON.stringify(body);
      assert.match(String(body.openapi), /^3\.1/);
      for (const path of ["/runs", "/runs/{id}", "/runs/{id}/answer", "/questions", "/totals", "/health"]) {
        assert.include(text, `"/recovery/api${path}"`);
      }
      const { paths } = yield* decoded(Schema.Struct({ paths: Schema.Record(Schema.String, Schema.Json) }), body);
      const answer = JSON.stringify(paths["/recovery/api/runs/{id}/answer"]);
      for (const word of ["x-recovery-answer", '"409"', '"404"', '"400"', '"503"']) assert.include(answer, word);
      assert.strictEqual(headers.get("x-content-type-options"), "nosniff");
      assert.strictEqual(headers.get("cross-origin-resource-policy"), "same-origin");
      assert.isNull(headers.get("access-control-allow-origin"));
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("reports its totals and its health", () =>
    Effect.gen(function* () {
      yield* put(Runs.album());
      const totals = yield* decoded(Totals, (yield* called("/totals")).body);
      assert.deepStrictEqual([totals.runs, totals.recovered, totals.asked, totals.stopped], [16, 3, 1, 1]);
      const { body, status } = yield* called("/health");
      assert.deepStrictEqual(
        [status, body],
        [200, { status: "ok", store: { writes: "ok" }, durable: false, live: 0, draining: false }],
      );
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("answers 503 with a reason, and so does the page, while the record cannot be read", () => {
    const locked = Effect.fail(new RecorderError({ reason: "unavailable", run_id: "", message: "locked" }));
    return Effect.gen(function* () {
      for (const path of ["/runs", "/runs/x", "/questions", "/totals", "/health"]) {
        const { body, status } = yield* called(path);
        assert.deepStrictEqual([path, status, body.reason], [path, 503, "unavailable"]);
      }
      const { handle } = yield* pageServer;
      for (const path of ["/recovery/", "/recovery/?run=x"]) assert.strictEqual((yield* handle(path))?.status, 503);
    }).pipe(Effect.scoped, Effect.provide(recorderThat({ run: () => locked, runs: () => locked })));
  });
});
