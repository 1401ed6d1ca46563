/**
 * Requests every address of the page with every method.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Stream } from "effect";
import { StoreHealth, type StoreState } from "../../../src/gateway/api/StoreHealth.ts";
import { Traffic, type TrafficStatus } from "../../../src/gateway/api/Traffic.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Runs from "./PageRuns.ts";
import { pageServer, put } from "./Server.ts";

const memory = RunRecorder.layerMemory();

const got = (path: string, init?: RequestInit) =>
  Effect.gen(function* () {
    const { handle } = yield* pageServer;
    const response = yield* handle(path, init);
    if (response === undefined) return undefined;
    const text = yield* Effect.promise(() => response.text());
    return { status: response.status, headers: response.headers, text };
  });

describe("the page", () => {
  it.effect("is served at its own addresses, and nowhere else", () =>
    Effect.gen(function* () {
      yield* put([Runs.recovered("run_a")]);
      const types: ReadonlyArray<readonly [string, number, string]> = [
        ["/recovery/", 200, "text/html"],
        ["/recovery/?run=run_a", 200, "text/html"],
        ["/recovery/?run=none", 404, "text/html"],
        ["/recovery/page.css", 200, "text/css"],
        ["/recovery/page.js", 200, "text/javascript"],
        ["/recovery/picture.html?run=run_a", 200, "text/html"],
        ["/recovery/picture.html", 404, "text/html"],
        ["/recovery/api/totals", 200, "application/json"],
        ["/metrics", 200, "text/plain; version=0.0.4"],
      ];
      for (const [path, status, type] of types) {
        const answer = yield* got(path);
        assert.deepStrictEqual([path, answer?.status], [path, status]);
        assert.include(answer?.headers.get("content-type"), type);
      }
      for (const path of ["/", "/recoveryx", "/recovery/nothing", "/metrics/", "/recovery/constructor"]) {
        assert.isUndefined(yield* got(path), path);
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("allows nothing to be loaded, framed, cached or guessed", () =>
    Effect.gen(function* () {
      for (const path of ["/recovery/", "/recovery/?run=none", "/metrics", "/recovery/api/runs"]) {
        const { headers, text } = (yield* got(path)) ?? {};
        const policy = headers?.get("content-security-policy") ?? "";
        assert.include(policy, "default-src 'none'; script-src 'self'; style-src 'self'");
        assert.notMatch(policy, /unsafe|\*|https?:/);
        assert.include(policy, "frame-ancestors 'none'");
        assert.strictEqual(headers?.get("x-content-type-options"), "nosniff");
        assert.strictEqual(headers?.get("cache-control"), "no-store");
        assert.strictEqual(headers?.get("referrer-policy"), "no-referrer");
        assert.notMatch(text ?? "", /\s(?:on\w+|style)="/);
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("uses relative addresses only, so that a token's prefix stays before them", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("run_a"), Runs.recovered("run_b")]);
      for (const path of ["/recovery/", "/recovery/?run=run_a", "/recovery/?run=run_b", "/recovery/?filter=broken"]) {
        const addresses = [...((yield* got(path))?.text ?? "").matchAll(/\s(?:href|src)="([^"]*)"/g)].map(
          ([, it]) => it ?? "",
        );
        assert.isAbove(addresses.length, 3);
        for (const it of addresses) assert.notMatch(it, /^(?:\/|[a-z]+:(?!,$))/, path);
      }
      const moved = yield* got("/recovery");
      assert.deepStrictEqual([moved?.status, moved?.headers.get("location")], [308, "recovery/"]);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("is read-only", () =>
    Effect.gen(function* () {
      for (const method of ["POST", "PUT", "DELETE"]) {
        for (const path of ["/recovery/", "/metrics", "/recovery/api/events"]) {
          const answer = yield* got(path, { method });
          assert.deepStrictEqual([answer?.status, answer?.headers.get("allow")], [405, "GET, HEAD"]);
        }
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("answers HEAD with the head only, even for the feed", () =>
    Effect.gen(function* () {
      for (const path of ["/recovery/", "/metrics", "/recovery/api/events"]) {
        const answer = yield* got(path, { method: "HEAD" });
        assert.deepStrictEqual([answer?.status, answer?.text], [200, ""]);
        assert.isNotNull(answer?.headers.get("content-type"));
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("pages through runs and filters them, and ignores invalid parameters", () =>
    Effect.gen(function* () {
      yield* put(Array.from({ length: 45 }, (_, n) => Runs.calm(`run_${n}`, Runs.now)));
      yield* put([Runs.recovered("run_broken")]);
      const rows = (text = "") => [...text.matchAll(/<li id="run-([^"]+)"/g)].map(([, it]) => it);
      const first = yield* got("/recovery/");
      assert.deepStrictEqual([rows(first?.text).length, rows(first?.text)[0]], [40, "run_broken"]);
      const [, older = ""] = /href="\.\/(\?before=[^"]+)">Older/.exec(first?.text ?? "") ?? [];
      const second = yield* got(`/recovery/${older}`);
      assert.deepStrictEqual([rows(second?.text).length, rows(second?.text).at(-1)], [6, "run_0"]);
      assert.notInclude(second?.text, "Older runs");
      assert.deepStrictEqual(rows((yield* got("/recovery/?filter=broken"))?.text), ["run_broken"]);
      assert.lengthOf(rows((yield* got("/recovery/?filter=<script>"))?.text), 40);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("finds runs with its form, keeps the query from page to page, and names the invalid field", () =>
    Effect.gen(function* () {
      yield* put(Array.from({ length: 45 }, (_, n) => Runs.calm(`run_${n}`, Runs.now, Runs.gpt)));
      yield* put([Runs.recovered("run_healed", Runs.now), Runs.stopped("run_stopped", Runs.now)]);
      const rows = (text = "") => [...text.matchAll(/<li id="run-([^"]+)"/g)].map(([, it]) => it);
      const found = (query: string) => Effect.map(got(`/recovery/?${query}`), (it) => rows(it?.text));
      assert.deepStrictEqual(yield* found("q=SONNET"), ["run_healed"]);
      assert.deepStrictEqual(yield* found("model=sonnet&provider=openai"), []);
      assert.deepStrictEqual(yield* found("rule=not_retryable"), ["run_stopped"]);
      assert.deepStrictEqual(yield* found("end=stopped&filter=ended"), ["run_stopped"]);
      assert.deepStrictEqual(yield* found("end=stopped&filter=live"), []);
      assert.deepStrictEqual(yield* found("until=2000-01-01"), []);
      assert.lengthOf(yield* found("since=2000-01-01&q=&model="), 40);
      const first = (yield* got("/recovery/?q=codex&end=completed"))?.text ?? "";
      assert.include(first, 'name="q" value="codex"');
      assert.include(first, '<option value="completed" selected>');
      const [, older = ""] = /href="\.\/\?([^"]+)#runs">Older/.exec(first) ?? [];
      assert.deepStrictEqual(rows((yield* got(`/recovery/?${older.replaceAll("&amp;", "&")}`))?.text).length, 5);
      assert.include((yield* got("/recovery/?q=none"))?.text, "No run on record matches the search.");
      const bad = yield* got("/recovery/?since=%3Cscript%3E&q=run");
      assert.deepStrictEqual([bad?.status, rows(bad?.text)], [400, []]);
      assert.include(bad?.text, 'name="since" value="&lt;script&gt;"');
      assert.match(bad?.text ?? "", /aria-invalid="true" aria-describedby="search-invalid"/);
      assert.match(bad?.text ?? "", /role="alert">Not searched\. since: expected a time/);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("says that a run continues without its client, and until when, while it is live", () =>
    Effect.gen(function* () {
      yield* put([Runs.running("run_alone"), Runs.running("run_read"), Runs.calm("run_over", Runs.now - 60_000)]);
      const absence = { since: Runs.now - 12_000, until: Runs.now + 48_000 };
      const status: TrafficStatus = {
        live: ["run_alone", "run_read"],
        // A run that has ended meanwhile waits for no client.
        absent: [
          { run_id: "run_alone", ...absence },
          { run_id: "run_over", ...absence },
        ],
        connections: 1,
        draining: false,
        since: 0,
        requests: { relayed: 0, passed_through: 0, refused: 0 },
        tokens: {},
      };
      const shown = (path: string) =>
        Effect.map(
          got(path).pipe(Effect.provideService(Traffic, { status: Effect.succeed(status), changes: Stream.empty })),
          (it) => it?.text ?? "",
        );
      const words = "continues without its client until 2026-11-22 09:30:48 UTC";
      const list = yield* shown("/recovery/");
      assert.strictEqual(list.split(words).length, 2);
      assert.include(list.slice(list.indexOf('id="run-run_alone"')).split("</li>")[0], words);
      assert.include(yield* shown("/recovery/?run=run_alone"), words);
      for (const other of ["run_read", "run_over"]) assert.notInclude(yield* shown(`/recovery/?run=${other}`), words);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("orders questions by urgency, each with its distinguishing details", () =>
    Effect.gen(function* () {
      const expiring = (run_id: string, expires_at: number) =>
        Runs.asking(run_id).map((entry) =>
          entry._tag === "QuestionAsked" ? { ...entry, question: { ...entry.question, expires_at } } : entry,
        );
      yield* put([
        expiring("run_late", Runs.now + 900_000),
        Runs.asking("run_old", Runs.now - 400_000),
        expiring("run_soon", Runs.now + 60_000),
        Runs.asking("run_new", Runs.now - 20_000, Runs.gpt, "write_file"),
      ]);
      const text = (yield* got("/recovery/"))?.text ?? "";
      const cards = [...text.matchAll(/<article class="card" id="question-([^"]+)"/g)].map(([, it]) => it);
      assert.deepStrictEqual(cards, ["run_soon", "run_late", "run_new", "run_old"]);
      assert.include(text, "<title>(4) Runs</title>");
      assert.include((yield* got("/recovery/?run=run_old"))?.text, "<title>(4) Run run_old</title>");
      assert.isBelow(text.indexOf('id="totals-title"'), text.indexOf('id="questions-title"'));
      assert.include(text, "4 questions are open");
      const card = text.slice(text.indexOf('id="question-run_new"'), text.indexOf('id="question-run_old"'));
      for (const words of ["write_file", "outcome unknown", "912 characters", "8.2 s into the run", "?run=run_new"]) {
        assert.include(card, words);
      }
      assert.include(card, 'data-of="gpt-5.1-codex, run run_new"');
      assert.include(text, "then it chooses “Stop”");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect(
    "shows on every view that the store accepts no writes, and that the gateway shuts down, and otherwise neither",
    () =>
      Effect.gen(function* () {
        yield* put([Runs.calm("run_a", Runs.now)]);
        const failing: StoreState = { writes: "failing", reason: "disk_full", since: 0 };
        const draining: TrafficStatus = {
          live: [],
          connections: 1,
          draining: true,
          since: 0,
          requests: { relayed: 0, passed_through: 0, refused: 0 },
          tokens: {},
        };
        for (const path of ["/recovery/", "/recovery/?run=run_a"]) {
          assert.notInclude((yield* got(path))?.text, 'class="notice');
          const told = yield* got(path).pipe(
            Effect.provideService(StoreHealth, { state: Effect.succeed(failing), now: () => failing }),
            Effect.provideService(Traffic, { status: Effect.succeed(draining), changes: Stream.empty }),
          );
          assert.include(told?.text, "does not accept writes (<code>disk_full</code>)");
          assert.include(told?.text, "The gateway is shutting down");
        }
      }).pipe(Effect.scoped, Effect.provide(memory)),
  );
});
