/**
 * Asks for every address of the page, by every method.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
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
  it.effect("stands where it says it does, and nowhere else", () =>
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

  it.effect("lets nothing be loaded, framed, kept or guessed at", () =>
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

  it.effect("has relative addresses only, so that a token's prefix stays before them", () =>
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

  it.effect("is read, never written to", () =>
    Effect.gen(function* () {
      for (const method of ["POST", "PUT", "DELETE"]) {
        for (const path of ["/recovery/", "/metrics", "/recovery/api/events"]) {
          const answer = yield* got(path, { method });
          assert.deepStrictEqual([answer?.status, answer?.headers.get("allow")], [405, "GET, HEAD"]);
        }
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("answers HEAD with the head alone, the feed's too", () =>
    Effect.gen(function* () {
      for (const path of ["/recovery/", "/metrics", "/recovery/api/events"]) {
        const answer = yield* got(path, { method: "HEAD" });
        assert.deepStrictEqual([answer?.status, answer?.text], [200, ""]);
        assert.isNotNull(answer?.headers.get("content-type"));
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("pages through runs and narrows them, and takes nonsense for nothing", () =>
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
});
