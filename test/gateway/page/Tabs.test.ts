/**
 * Opens the page in many tabs of one browser: they share one feed, and keep it if a tab or the server goes away.
 */
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Page } from "playwright-core";
import { lookRunsMax } from "../../../src/gateway/api/Feed.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { browserTestMs, closed, missing, profile, steps, tab, tabOf } from "./Chromium.ts";
import * as Runs from "./PageRuns.ts";
import { type PageServer, pageServer, put } from "./Server.ts";

const memory = RunRecorder.layerMemory();

/** Waits until the server has `wanted` open feeds, and looks at every turn of the page. */
const feedsAre = ({ feeds }: PageServer, wanted: number, page: Page) =>
  steps(async () => {
    while (feeds() !== wanted) await page.evaluate("new Promise((resolve) => setTimeout(resolve, 20))");
  });

const isLive = (page: Page) => steps(() => page.locator("#feed[data-feed=live]").waitFor());

const shows = (page: Page, run: string) => steps(() => page.locator(`#run-${run}`).waitFor());

/** A headless browser hides no tab, so the test sends the tab the browser's event. */
const hide = (page: Page, isHidden: boolean) =>
  steps(() =>
    page.evaluate(`(() => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} });
      document.dispatchEvent(new Event("visibilitychange"));
    })()`),
  );

/** Waits until the feed is asked to poll these runs. */
const looksAt = ({ asked }: PageServer, runs: ReadonlyArray<string>, page: Page) =>
  steps(async () => {
    while (asked().join() !== runs.join()) await page.evaluate("new Promise((resolve) => setTimeout(resolve, 20))");
  });

const tabs = (url: string, amount: number) =>
  Effect.gen(function* () {
    const context = yield* profile();
    const pages: Array<Page> = [];
    for (let n = 0; n < amount; n += 1) {
      const { page } = yield* tabOf(context);
      yield* steps(() => page.goto(`${url}recovery/`));
      pages.push(page);
    }
    const [first] = pages;
    if (first === undefined) throw new Error("no tab");
    return { context, first, others: pages.slice(1) };
  });

describe.skipIf(missing !== undefined)("tabs of the page", { timeout: browserTestMs }, () => {
  afterAll(closed);

  it.live("share one feed, eight of them: all are live, and see new runs", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { first, others } = yield* tabs(server.url, 8);
      for (const page of [first, ...others]) yield* isLive(page);
      assert.strictEqual(server.feeds(), 1);
      yield* put([Runs.recovered("run_new")]);
      for (const page of [first, ...others]) yield* shows(page, "run_new");
      assert.strictEqual(server.feeds(), 1);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live(
    "have the feed look at the runs that they show, of any age: the leading tab asks for those of the others",
    () =>
      Effect.gen(function* () {
        yield* put([Runs.asking("run_old"), Runs.asking("run_older")]);
        const recorder = yield* RunRecorder;
        // They no longer wait for an answer, and newer runs precede them.
        for (const run_id of ["run_old", "run_older"]) {
          yield* recorder.answer({ run_id, revision: 1, choice: "continue", by: "person" });
        }
        yield* put(Array.from({ length: lookRunsMax }, (_, n) => Runs.calm(`run_new_${n}`, Runs.now)));
        const server = yield* pageServer;
        const { context, first } = yield* tabs(server.url, 1);
        yield* isLive(first);
        const { page } = yield* tabOf(context);
        yield* steps(() => page.goto(`${server.url}recovery/?run=run_old`));
        yield* looksAt(server, ["run_old"], page);
        yield* isLive(page);
        yield* feedsAre(server, 1, page);
        const stops = (run_id: string) =>
          recorder.write(run_id, [
            { _tag: "RunEnded", end: { state: "stopped", reason: "user_stopped", attempts: 1, at: Runs.now } },
          ]);
        yield* stops("run_old");
        yield* steps(() => page.locator(".run-head .chip", { hasText: "stopped" }).waitFor());
        // The leading tab may show one of them itself, and a run that is no longer shown is not requested.
        yield* steps(() => page.close());
        yield* steps(() => first.goto(`${server.url}recovery/?run=run_older`));
        yield* looksAt(server, ["run_older"], first);
        yield* stops("run_older");
        yield* steps(() => first.locator(".run-head .chip", { hasText: "stopped" }).waitFor());
      }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("continue when the leading tab is closed, hidden, or navigates away", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { first, others } = yield* tabs(server.url, 4);
      const [second, third, fourth] = others;
      if (second === undefined || third === undefined || fourth === undefined) throw new Error("no tabs");
      yield* isLive(first);
      yield* steps(() => first.close());
      yield* put([Runs.recovered("run_closed")]);
      for (const page of others) yield* shows(page, "run_closed");
      yield* hide(second, true);
      yield* put([Runs.recovered("run_hidden")]);
      for (const page of [third, fourth]) yield* shows(page, "run_hidden");
      yield* feedsAre(server, 1, fourth);
      yield* steps(() => third.goto("about:blank"));
      yield* put([Runs.recovered("run_left")]);
      yield* shows(fourth, "run_left");
      yield* feedsAre(server, 1, fourth);
      // It held nothing while it was hidden, and looks at once when it is visible again.
      yield* hide(second, false);
      yield* shows(second, "run_left");
      yield* isLive(second);
      yield* steps(() => third.goBack());
      yield* shows(third, "run_left");
      yield* isLive(third);
      assert.strictEqual(server.feeds(), 1);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("hold no connection while none is visible", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { first, others } = yield* tabs(server.url, 2);
      for (const page of [first, ...others]) {
        yield* isLive(page);
        yield* hide(page, true);
      }
      yield* feedsAre(server, 0, first);
      yield* hide(first, false);
      yield* isLive(first);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("replace a leader that is frozen and sends nothing", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { first, others } = yield* tabs(server.url, 2);
      const [second] = others;
      if (second === undefined) throw new Error("no tab");
      yield* isLive(second);
      // Its script stops, while it keeps the lock.
      yield* steps(() => first.context().newCDPSession(first)).pipe(
        Effect.flatMap((session) =>
          steps(async () => {
            await session.send("Debugger.enable");
            await session.send("Debugger.pause");
            void first.evaluate("1").catch(() => undefined);
          }),
        ),
      );
      yield* put([Runs.recovered("run_new")]);
      yield* shows(second, "run_new");
      yield* isLive(second);
      assert.strictEqual(server.feeds(), 2, "the one that stands still has not closed its own");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("have one feed each, while visible, if the browser has no locks", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const context = yield* profile();
      yield* steps(() => context.addInitScript("Object.defineProperty(navigator, 'locks', { value: undefined })"));
      const [one, two] = [(yield* tabOf(context)).page, (yield* tabOf(context)).page];
      for (const page of [one, two]) {
        yield* steps(() => page.goto(`${server.url}recovery/`));
        yield* isLive(page);
      }
      assert.strictEqual(server.feeds(), 2);
      yield* hide(one, true);
      yield* feedsAre(server, 1, two);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("of two tokens do not listen to each other", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { context, first } = yield* tabs(server.url, 1);
      yield* isLive(first);
      const { page } = yield* tabOf(context);
      yield* steps(() => page.goto(`${server.url.replace("t0ken", "0ther")}recovery/`));
      yield* isLive(page);
      assert.strictEqual(server.feeds(), 2);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("report when the server is silent, refuses its feed, or is gone, and are live again when it is back", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { page } = yield* tab();
      server.setFeed("silent");
      yield* steps(() => page.goto(`${server.url}recovery/`));
      const words = page.locator("#feed-words");
      yield* steps(() => page.locator("#feed[data-feed=silent]").waitFor());
      assert.strictEqual(yield* steps(() => words.textContent()), "the live feed is silent; polling every 3 s");
      assert.match((yield* steps(() => page.locator("#feed-age").textContent())) ?? "", /^last update \d s ago$/);
      yield* put([Runs.recovered("run_new")]);
      yield* shows(page, "run_new");
      server.setFeed("refuse");
      server.cut();
      yield* steps(() => page.locator("#feed[data-feed=polling]").waitFor());
      yield* put([Runs.recovered("run_newer")]);
      yield* shows(page, "run_newer");
      yield* steps(() => page.context().setOffline(true));
      yield* steps(() => page.locator("#feed[data-feed=lost]").waitFor());
      assert.strictEqual(yield* steps(() => words.textContent()), "the server cannot be reached");
      server.setFeed("serve");
      yield* steps(() => page.context().setOffline(false));
      yield* isLive(page);
      assert.strictEqual(yield* steps(() => page.locator("#feed").textContent()), "live");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );
});
