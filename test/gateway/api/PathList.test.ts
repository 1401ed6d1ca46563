/** Paths in the API, the metrics, the feed and the page. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Option } from "effect";
import { TestClock } from "effect/testing";
import * as Feed from "../../../src/gateway/api/Feed.ts";
import type { PathStatus } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Runs from "../page/PageRuns.ts";
import * as Paths from "../page/PathCases.ts";
import { pageServer, put } from "../page/Server.ts";

const memory = RunRecorder.layerMemory();

const asked = (path: string, init?: RequestInit) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Runs.now);
    const { handle } = yield* pageServer;
    const response = yield* handle(path, init);
    if (response === undefined) throw new Error(`nothing at ${path}`);
    return { status: response.status, text: yield* Effect.promise(() => response.text()) };
  });

const trying = (body: unknown, headers: Record<string, string> = { "x-recovery-answer": "1" }) =>
  asked("/recovery/api/paths/try", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const all = [Paths.up, Paths.cooling, Paths.down, Paths.returning];

describe("the API of paths", () => {
  it.effect("lists paths that are down first, then returning ones, then cooling ones", () =>
    Effect.gen(function* () {
      const { status, text } = yield* asked("/recovery/api/paths");
      assert.strictEqual(status, 200);
      const { paths } = JSON.parse(text);
      assert.deepStrictEqual(
        paths.map((it: { path: string }) => it.path),
        [Paths.down, Paths.returning, Paths.cooling, Paths.up].map(({ path }) => path),
      );
      const { nextProbeAt, ...down } = Paths.down;
      assert.deepStrictEqual(paths[0], { ...down, next_probe_at: nextProbeAt });
      assert.deepStrictEqual(paths[2].cooldowns, Paths.cooling.cooldowns);
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          memory,
          Paths.standing(() => all),
        ),
      ),
    ),
  );

  it.effect("has a path probed at once, returns the result, and knows no other path", () => {
    const tried: Array<string> = [];
    const list = () => (tried.includes(Paths.down.path) ? [{ ...Paths.down, state: "returning" as const }] : all);
    return Effect.gen(function* () {
      const found = yield* trying({ path: Paths.down.path });
      assert.deepStrictEqual([found.status, JSON.parse(found.text).state], [200, "returning"]);
      const none = yield* trying({ path: "https://elsewhere" });
      assert.deepStrictEqual([none.status, JSON.parse(none.text).reason], [404, "unknown_path"]);
      assert.deepStrictEqual(tried, [Paths.down.path, "https://elsewhere"]);
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          memory,
          Paths.standing(list, (path) => void tried.push(path)),
        ),
      ),
    );
  });

  it.effect("probes no path for a page of another site, nor for an invalid body", () => {
    const tried: Array<string> = [];
    return Effect.gen(function* () {
      assert.strictEqual((yield* trying({ path: Paths.down.path }, {})).status, 400);
      assert.strictEqual((yield* trying({ path: Paths.down.path }, { "x-recovery-answer": "0" })).status, 400);
      assert.strictEqual((yield* trying({ paths: [] })).status, 400);
      assert.deepStrictEqual(tried, []);
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          memory,
          Paths.standing(
            () => all,
            (path) => void tried.push(path),
          ),
        ),
      ),
    );
  });

  it.effect("is empty if the process has no paths, and probes none", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(JSON.parse((yield* asked("/recovery/api/paths")).text), { paths: [] });
      assert.strictEqual((yield* trying({ path: "https://api.openai.com" })).status, 404);
      assert.notInclude((yield* asked("/recovery/")).text, "Paths to providers");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );
});

describe("the metrics of paths", () => {
  it.effect("count paths by their state, and the runs that wait", () =>
    Effect.gen(function* () {
      const { text } = yield* asked("/metrics");
      for (const line of [
        'stream_recovery_gateway_paths{state="up"} 1',
        'stream_recovery_gateway_paths{state="cooling"} 1',
        'stream_recovery_gateway_paths{state="returning"} 1',
        'stream_recovery_gateway_paths{state="down"} 1',
        `stream_recovery_gateway_path_down{path="${Paths.down.path}"} 1`,
        `stream_recovery_gateway_path_down{path="${Paths.up.path}"} 0`,
        "stream_recovery_gateway_waiting_runs 44",
      ])
        assert.include(text.split("\n"), line);
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          memory,
          Paths.standing(() => all),
        ),
      ),
    ),
  );

  it.effect("have a bound: of a thousand paths, those that are down have their own gauge", () => {
    const many = Array.from({ length: 1_000 }, (_, n) => ({ ...Paths.up, path: `https://host-${n}` }));
    return Effect.gen(function* () {
      const gauges = (yield* asked("/metrics")).text.match(/^stream_recovery_gateway_path_down\{.*$/gm) ?? [];
      assert.lengthOf(gauges, 64);
      assert.include(gauges, `stream_recovery_gateway_path_down{path="${Paths.down.path}"} 1`);
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          memory,
          Paths.standing(() => [...many, Paths.down]),
        ),
      ),
    );
  });
});

describe("the page's section of paths", () => {
  it.effect(
    "says of each path that is down or cooling since when, why, what is being done, and how many runs wait",
    () =>
      Effect.gen(function* () {
        const { text } = yield* asked("/recovery/");
        for (const said of ["42 s ago", "nothing listens at its address", "17 times, next in 4 s", "12 runs", "31.0 s"])
          assert.include(text, said);
        assert.include(text, `data-path="${Paths.down.path}"`);
        assert.strictEqual(text.split("data-path=").length, 2, "only what is down can be tried");
        assert.notInclude(text, Paths.up.path);
        assert.include(text, 'data-live="true"');
      }).pipe(
        Effect.scoped,
        Effect.provide(
          Layer.merge(
            memory,
            Paths.standing(() => all),
          ),
        ),
      ),
  );

  it.effect("is absent if all is well, and bounded if nothing is", () => {
    let list: ReadonlyArray<PathStatus> = [Paths.up];
    return Effect.gen(function* () {
      assert.notInclude((yield* asked("/recovery/")).text, "Paths to providers");
      list = Array.from({ length: 500 }, (_, n) => ({ ...Paths.down, path: `https://host-${n}` }));
      const { text } = yield* asked("/recovery/");
      assert.include(text, "490 more paths");
      assert.isBelow(text.length, 60_000);
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          memory,
          Paths.standing(() => list),
        ),
      ),
    );
  });

  it.effect("shows what a waiting run waits for, since when and until when", () =>
    Effect.gen(function* () {
      yield* put([
        [
          ...Runs.running("run_w"),
          {
            _tag: "RunWaited",
            waited_ms: 3_000,
            wait: { for: "cooldown", since: Runs.now - 5_000, until: Runs.now + 9_000 },
          },
        ],
      ]);
      for (const path of ["/recovery/", "/recovery/?run=run_w"]) {
        const { text } = yield* asked(path);
        assert.include(text, "waits at the request of ", path);
        assert.include(text, "for 5.0 s, ends in 9 s at the latest", path);
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );
});

describe("the feed of paths", () => {
  it.effect("reports once that a path has changed, and nothing if only a probe was made", () => {
    let list: ReadonlyArray<PathStatus> = [Paths.up];
    return Effect.gen(function* () {
      const context = yield* Effect.context<never>();
      const body = Feed.make(yield* RunRecorder, Option.none(), context, { list: Effect.sync(() => list) });
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      yield* Effect.addFinalizer(() => Effect.promise(() => reader.cancel()));
      const next = Effect.gen(function* () {
        const read = reader.read();
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)));
        yield* TestClock.adjust(Feed.lookMs);
        return (yield* Effect.promise(() => read)).value ?? "";
      });
      const looks = Effect.map(Effect.all([next, next, next]), (all) =>
        all.filter((it) => it.includes('"paths":true')),
      );
      yield* next;
      assert.lengthOf(yield* looks, 0);
      list = [Paths.down];
      assert.deepStrictEqual(yield* looks, ['data: {"runs":[],"paths":true}\n\n']);
      list = [{ ...Paths.down, probes: 99, nextProbeAt: Runs.now + 9_000 }];
      assert.lengthOf(yield* looks, 0);
      list = [Paths.up];
      assert.lengthOf(yield* looks, 1);
    }).pipe(Effect.scoped, Effect.provide(memory));
  });
});
