/** Uses the page's section of paths like a person, in a real browser. */
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Layer } from "effect";
import type { PathStatus } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { browserTestMs, closed, contrast, missing, overflow, steps, tab } from "./Chromium.ts";
import * as Runs from "./PageRuns.ts";
import * as Paths from "./PathCases.ts";
import { pageServer, put } from "./Server.ts";

const memory = RunRecorder.layerMemory();

/** The cases, moved to another time. */
const at = (path: PathStatus, now: number): PathStatus => {
  const by = now - Runs.now;
  const next = path.nextProbeAt === undefined ? {} : { nextProbeAt: path.nextProbeAt + by };
  const cooldowns = path.cooldowns.map((it) => ({ ...it, until: it.until + by }));
  return { ...path, since: path.since + by, ...next, cooldowns };
};

const pictures = process.env.PAGE_PICTURES;

describe.skipIf(missing !== undefined)("the page's section of paths, in a browser", { timeout: browserTestMs }, () => {
  afterAll(closed);

  it.live("updates as paths change, without a reload; Try now probes the path and shows the result", () => {
    let list: ReadonlyArray<PathStatus> = [Paths.up];
    const tried: Array<string> = [];
    const paths = Paths.standing(
      () => list,
      (path) => {
        tried.push(path);
        if (tried.length === 2) list = [Paths.up];
      },
    );
    return Effect.gen(function* () {
      const server = yield* pageServer;
      const { complaints, page, requests } = yield* tab();
      yield* steps(() => page.goto(`${server.url}recovery/`));
      yield* steps(() => page.getByText("No run is on record yet").waitFor());
      const { path } = Paths.down;
      list = [Paths.up, at({ ...Paths.down, path: Paths.up.path }, yield* Clock.currentTimeMillis), Paths.down].slice(
        1,
      );
      yield* steps(() => page.locator(".paths .chip", { hasText: "down" }).nth(1).waitFor());
      const button = page.locator(".paths .card", { hasText: path }).getByRole("button", { name: "Try now" });
      yield* steps(() => button.click());
      yield* steps(() => page.locator("#said", { hasText: "It cannot be reached yet" }).waitFor());
      list = [Paths.down];
      yield* steps(() => page.locator(".paths .card").nth(1).waitFor({ state: "detached" }));
      list = [{ ...Paths.down, state: "returning" }, Paths.up];
      yield* steps(() => page.locator(".paths .chip", { hasText: "returning" }).waitFor());
      assert.strictEqual(yield* steps(() => page.getByRole("button", { name: "Try now" }).count()), 0);
      list = [Paths.up];
      yield* steps(() => page.locator(".paths").waitFor({ state: "detached" }));
      assert.deepStrictEqual(tried, [path]);
      assert.strictEqual(requests.filter((url) => url.endsWith("/page.js")).length, 1);
      assert.deepStrictEqual(complaints, []);
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(memory, paths)));
  });

  for (const colorScheme of ["light", "dark"] as const)
    it.live(`is readable at 400 px and at 1100 px, ${colorScheme}, beside open questions and waiting runs`, () => {
      let list: ReadonlyArray<PathStatus> = [];
      return Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        list = [Paths.down, Paths.returning, Paths.cooling, Paths.up].map((path) => at(path, now));
        yield* put([
          Runs.asking("run_a"),
          [...Runs.running("run_w"), { _tag: "RunWaited", waited_ms: 0, wait: { for: "path", since: now - 12_000 } }],
        ]);
        const server = yield* pageServer;
        for (const width of [400, 1_100]) {
          const { complaints, page } = yield* tab({ viewport: { width, height: 900 }, colorScheme });
          for (const view of ["", "?run=run_w"]) {
            yield* steps(() => page.goto(`${server.url}recovery/${view}`));
            yield* steps(() => page.locator(".waits").first().waitFor());
            assert.deepStrictEqual(yield* steps(() => overflow(page)), [], `${view} at ${width} px`);
            if (pictures !== undefined)
              yield* steps(() =>
                page.screenshot({
                  path: `${pictures}/${colorScheme}-${width}${view === "" ? "" : "-run"}.png`,
                  fullPage: true,
                }),
              );
            assert.isAtLeast(yield* steps(() => contrast(page, ".waits")), 4.5);
          }
          yield* steps(() => page.goto(`${server.url}recovery/`));
          assert.isAtLeast(yield* steps(() => contrast(page, ".paths dt")), 4.5);
          assert.isAtLeast(yield* steps(() => contrast(page, ".paths button")), 4.5);
          assert.strictEqual(yield* steps(() => page.locator(".asked .choice").count()), 6, "the question stays");
          assert.deepStrictEqual(complaints, []);
        }
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
});
