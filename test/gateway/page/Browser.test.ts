/**
 * Uses the page like a person, in a real browser, with runs of the real processor.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Clock, Deferred, Effect, Fiber, Layer, Stream } from "effect";
import { ProviderClient } from "../../../src/client/ProviderClient.ts";
import { runDocument } from "../../../src/gateway/page/RunDocument.ts";
import * as AnthropicMessages from "../../../src/provider/anthropic/Decode.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../../src/testing/faults/FaultProvider.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { folded } from "../../recorder/Entries.ts";
import { browserTestMs, closed, contrast, missing, overflow, steps, tab } from "./Chromium.ts";
import * as Runs from "./PageRuns.ts";
import * as Seams from "./SeamRuns.ts";
import { pageServer, put } from "./Server.ts";

if (missing !== undefined) console.log(`the page is not tested in a browser: ${missing}`);

const memory = RunRecorder.layerMemory();

const processing = Layer.mergeAll(
  StreamProcessor.layer.pipe(Layer.provideMerge(UserDecisions.layerDurable()), Layer.provideMerge(memory)),
  ProviderClient.layer(),
);

/** A run of the real processor against a provider that breaks when `broken` is completed. */
const run = (script: FaultScriptInput, broken?: Deferred.Deferred<void>) =>
  Effect.gen(function* () {
    const provider = yield* FaultProvider.make({
      script,
      ...(broken === undefined ? {} : { beforeBreak: () => Deferred.await(broken) }),
    });
    const client = yield* ProviderClient;
    const events = (yield* StreamProcessor).run({
      provider: { id: "anthropic", model: "claude-sonnet-4-5", reasoning: false },
      tools: [],
      attempt: ({ bytes, delivery }) =>
        client.stream({
          protocol: AnthropicMessages.protocol,
          url: provider.endpoint("anthropic-messages"),
          headers: {},
          body: { stream: true, messages: [] },
          bytes,
          delivery,
        }),
      observe: AnthropicMessages.observe,
    });
    return yield* Effect.forkScoped(Effect.exit(Stream.runDrain(events)));
  });

const cutAfterText = {
  answers: [{ content: [{ text: 6 }], break: { kind: "rst", at: "terminal" } }, { content: [{ text: 6 }] }],
} as const;

describe.skipIf(missing !== undefined)("the page in a browser", { timeout: browserTestMs }, () => {
  afterAll(closed);

  it.live("shows a run from its start over its break to its recovery, without a reload", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { complaints, page, requests } = yield* tab();
      const broken = yield* Deferred.make<void>();
      yield* steps(() => page.goto(`${server.url}recovery/`));
      yield* steps(() => page.getByText("No run is on record yet").waitFor());
      const script = {
        answers: [{ content: [{ text: 3 }], break: { kind: "rst", at: "after_head" } }, { content: [{ text: 3 }] }],
      } as const;
      const fiber = yield* run(script, broken);
      yield* steps(() => page.locator(".runs .chip", { hasText: "running" }).waitFor());
      yield* Deferred.succeed(broken, undefined);
      yield* Fiber.join(fiber);
      yield* steps(() => page.locator(".runs .chip", { hasText: "recovered" }).waitFor());
      assert.strictEqual(yield* steps(() => page.locator(".totals .good dd").textContent()), "1");
      assert.strictEqual(yield* steps(() => page.locator("#feed").textContent()), "live");
      assert.strictEqual(requests.filter((url) => url.endsWith("/page.js")).length, 1);
      assert.deepStrictEqual(complaints, []);
    }).pipe(Effect.scoped, Effect.provide(processing)),
  );

  it.live("accepts an answer by click, and the waiting run continues at once", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { page } = yield* tab();
      yield* steps(() => page.goto(`${server.url}recovery/`));
      const fiber = yield* run(cutAfterText);
      yield* steps(() => page.getByRole("button", { name: "Retry" }).click());
      yield* steps(() => page.locator("#said", { hasText: "Answered: Retry" }).waitFor());
      yield* Fiber.join(fiber);
      yield* steps(() => page.locator(".runs .chip", { hasText: "recovered" }).waitFor());
      assert.strictEqual(yield* steps(() => page.getByRole("button", { name: "Retry" }).count()), 0);
      const [record] = yield* (yield* RunRecorder).runs();
      assert.deepStrictEqual([record?.questions[0]?.answer, record?.questions[0]?.answered_by], ["retry", "person"]);
    }).pipe(Effect.scoped, Effect.provide(processing)),
  );

  it.live("accepts an answer by keyboard alone, and shows the focus", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { page } = yield* tab();
      const fiber = yield* run(cutAfterText);
      yield* steps(() => page.goto(`${server.url}recovery/`));
      yield* steps(() => page.getByRole("button", { name: "Accept" }).waitFor());
      const focused = () => page.evaluate("document.activeElement.dataset.choice ?? ''");
      for (let presses = 0; (yield* steps(focused)) !== "accept"; presses += 1) {
        assert.isBelow(presses, 20, "the button is not reached by Tab");
        yield* steps(() => page.keyboard.press("Tab"));
      }
      const outline = yield* steps(() => page.evaluate("getComputedStyle(document.activeElement).outlineStyle"));
      assert.strictEqual(outline, "solid");
      yield* steps(() => page.keyboard.press("Enter"));
      yield* steps(() => page.locator(".runs .chip", { hasText: "stopped" }).waitFor());
      yield* Fiber.join(fiber);
      const [record] = yield* (yield* RunRecorder).runs();
      assert.strictEqual(record?.end?.reason, "accepted_partial");
      // The button is gone, and the focus is in the view, not at the beginning of the document.
      yield* steps(() => page.locator("#view:focus").waitFor());
    }).pipe(Effect.scoped, Effect.provide(processing)),
  );

  it.live("asks for a confirmation if a call may run again, and Escape declines it", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("run_a")]);
      const recorder = yield* RunRecorder;
      const server = yield* pageServer;
      const { page } = yield* tab();
      yield* steps(() => page.goto(`${server.url}recovery/?run=run_a`));
      const retry = page.getByRole("button", { name: "Retry", exact: true });
      yield* steps(() => retry.click());
      yield* steps(() => page.getByRole("dialog").getByText("bash (0.1)").waitFor());
      yield* steps(() => page.getByRole("dialog").getByText("gpt-5.1-codex, run run_a").waitFor());
      yield* steps(() => page.keyboard.press("Escape"));
      yield* steps(() => page.getByRole("dialog").waitFor({ state: "hidden" }));
      assert.isUndefined((yield* recorder.run("run_a"))?.questions[0]?.answer);
      yield* steps(() => retry.click());
      yield* steps(() => page.getByRole("button", { name: "Retry anyway" }).click());
      yield* steps(() => page.locator("#said", { hasText: "Answered" }).waitFor());
      assert.strictEqual((yield* recorder.run("run_a"))?.questions[0]?.answer, "retry");
      yield* steps(() => page.locator(".chip", { hasText: "waiting" }).waitFor());
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("cancels a run after a confirmation, and shows who has cancelled it", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const recorder = yield* RunRecorder;
      const { complaints, page } = yield* tab();
      const broken = yield* Deferred.make<void>();
      const fiber = yield* run(cutAfterText, broken);
      yield* steps(() => page.goto(`${server.url}recovery/`));
      yield* steps(() => page.locator(".runs .chip", { hasText: "running" }).click());
      const button = page.getByRole("button", { name: "Cancel run" });
      yield* steps(() => button.click());
      const dialog = page.getByRole("dialog");
      yield* steps(() => dialog.getByText("Cancel this run?").waitFor());
      yield* steps(() => page.keyboard.press("Escape"));
      yield* steps(() => dialog.waitFor({ state: "hidden" }));
      assert.strictEqual((yield* recorder.runs())[0]?.state, "live");
      assert.isAtLeast(yield* steps(() => contrast(page, "#cancel")), 4.5);
      yield* steps(() => button.click());
      yield* steps(() => page.getByRole("button", { name: "Cancel the run" }).click());
      yield* steps(() => page.locator("#said", { hasText: "The process that you asked owns the run" }).waitFor());
      yield* steps(() => page.locator(".run-head .chip", { hasText: "stopped" }).waitFor());
      assert.strictEqual(yield* steps(() => button.count()), 0);
      assert.strictEqual((yield* recorder.runs())[0]?.end?.reason, "user_cancelled");
      yield* Fiber.join(fiber);
      assert.deepStrictEqual(complaints, []);
    }).pipe(Effect.scoped, Effect.provide(processing)),
  );

  it.live("says why an answer was refused after another person's", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("run_a")]);
      const server = yield* pageServer;
      const { page } = yield* tab();
      const recorder = yield* RunRecorder;
      const first = recorder.answer({ run_id: "run_a", revision: 1, choice: "stop", by: "person" });
      // The other answer comes after the click, because a page that sees it first has no such button.
      yield* steps(() =>
        page.route("**/answer", async (route) => {
          await Effect.runPromise(first);
          await route.continue();
        }),
      );
      yield* steps(() => page.goto(`${server.url}recovery/?run=run_a`));
      yield* steps(() => page.getByRole("button", { name: "It ran", exact: true }).click());
      yield* steps(() => page.locator("#said[data-bad=true]", { hasText: "already answered" }).waitFor());
      yield* steps(() => page.getByRole("button", { name: "It ran", exact: true }).waitFor({ state: "detached" }));
      assert.strictEqual((yield* recorder.run("run_a"))?.questions[0]?.answer, "stop");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("polls while its feed is down", () =>
    Effect.gen(function* () {
      const server = yield* pageServer;
      const { page } = yield* tab();
      yield* steps(() => page.route("**/api/events*", (route) => route.abort()));
      yield* steps(() => page.goto(`${server.url}recovery/`));
      yield* steps(() => page.locator("#feed[data-feed=polling]").waitFor());
      yield* put([Runs.recovered()]);
      yield* steps(() => page.locator(".runs .chip", { hasText: "recovered" }).waitFor());
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  for (const javaScriptEnabled of [true, false]) {
    it.live(
      `finds a run by its form, ${javaScriptEnabled ? "and keeps what is being typed" : "without its script"}`,
      () =>
        Effect.gen(function* () {
          yield* put([Runs.recovered("run_a"), Runs.calm("run_b", Runs.now, Runs.gpt)]);
          const server = yield* pageServer;
          const { complaints, page } = yield* tab({ javaScriptEnabled });
          yield* steps(() => page.goto(`${server.url}recovery/`));
          yield* steps(() => page.getByLabel("Run, model or provider").fill("SONNET"));
          yield* steps(() => page.getByRole("button", { name: "Search" }).click());
          yield* steps(() => page.locator("#run-run_b").waitFor({ state: "detached" }));
          assert.deepStrictEqual(yield* steps(() => page.locator(".runs li").count()), 1);
          if (javaScriptEnabled) {
            yield* steps(() => page.locator("#feed[data-feed=live]").waitFor());
            yield* steps(() => page.getByText("More", { exact: true }).click());
            yield* steps(() => page.getByLabel("Model", { exact: true }).fill("son"));
            yield* put([Runs.recovered("run_c")]);
            yield* steps(() => page.locator("#run-run_c").waitFor());
            assert.strictEqual(yield* steps(() => page.getByLabel("Model", { exact: true }).inputValue()), "son");
            assert.deepStrictEqual(complaints, []);
          }
        }).pipe(Effect.scoped, Effect.provide(memory)),
    );
  }

  it.live("downloads the export and the picture of a run", () =>
    Effect.gen(function* () {
      yield* put([Runs.recovered("run_a")]);
      const server = yield* pageServer;
      const { page } = yield* tab();
      yield* steps(() => page.goto(`${server.url}recovery/?run=run_a`));
      const got = (id: string) =>
        steps(async () => {
          const [download] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
          return readFileSync(await download.path(), "utf8");
        });
      // The document is our own export.
      const exported = JSON.parse(yield* got("#export")) as {
        readonly export: string;
        readonly incidents: ReadonlyArray<unknown>;
      };
      assert.deepStrictEqual([exported.export, exported.incidents.length], ["run", 2]);
      assert.include(yield* got("#picture"), "<!doctype html>");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  for (const colorScheme of ["light", "dark"] as const) {
    it.live(`fits a phone, is readable in ${colorScheme} and requests nothing from other hosts`, () =>
      Effect.gen(function* () {
        const long = "x".repeat(128);
        const wide = { id: long, model: long };
        yield* put([
          ...Runs.album(),
          Runs.asking(`run_${"y".repeat(120)}`, Runs.now, wide, long),
          Runs.recovered("run_a"),
          Seams.joined("run_sewn"),
          Seams.unproven("run_unsewn"),
        ]);
        const server = yield* pageServer;
        const { complaints, page, requests } = yield* tab({ viewport: { width: 360, height: 740 }, colorScheme });
        for (const path of [
          "",
          "?run=run_a",
          "?run=run_sewn",
          "?run=run_unsewn",
          "?run=run_0600fi7n1w4d",
          `?run=run_${"y".repeat(120)}`,
        ]) {
          yield* steps(() => page.goto(`${server.url}recovery/${path}`));
          yield* steps(() => page.locator("#feed[data-feed=live]").waitFor());
          assert.deepStrictEqual(yield* steps(() => overflow(page)), [], path);
        }
        yield* steps(() => page.goto(`${server.url}recovery/?run=run_0600fi7n1w4d`));
        for (const selector of [
          ".sentence",
          ".chip.ask",
          ".chip.bad",
          ".counts",
          ".took",
          "button[data-choice=continue]",
          ".risk",
          ".phase",
        ]) {
          assert.isAtLeast(yield* steps(() => contrast(page, selector)), 4.5, selector);
        }
        const ground = yield* steps(() => page.evaluate("getComputedStyle(document.documentElement).backgroundColor"));
        assert.strictEqual(ground, colorScheme === "dark" ? "rgb(18, 22, 28)" : "rgb(246, 247, 249)");
        assert.deepStrictEqual(
          requests.filter((url) => !url.startsWith(server.url) && url !== "data:,"),
          [],
        );
        assert.deepStrictEqual(complaints, []);
      }).pipe(Effect.scoped, Effect.provide(memory)),
    );
  }

  it.live("draws a seam where text was continued, over the piece's beginning and visible on either background", () =>
    Effect.gen(function* () {
      yield* put([Seams.joined("run_sewn")]);
      const server = yield* pageServer;
      for (const colorScheme of ["light", "dark"] as const) {
        const { complaints, page } = yield* tab({ viewport: { width: 900, height: 900 }, colorScheme });
        yield* steps(() => page.goto(`${server.url}recovery/?run=run_sewn`));
        const figure = page.getByRole("figure", { name: "The text in pieces" });
        yield* steps(() => figure.waitFor());
        const middles = yield* steps(() =>
          page.evaluate(`[...document.querySelectorAll("figure.text .stitch:not(.under)")].map((it) => {
            const box = it.getBoundingClientRect();
            return box.x + box.width / 2;
          })`),
        );
        const edges = yield* steps(() =>
          page.evaluate(
            `[...document.querySelectorAll("figure.text rect.piece")].slice(1).map((it) => it.getBoundingClientRect().x)`,
          ),
        );
        const [drawn, begins] = [middles, edges] as ReadonlyArray<ReadonlyArray<number>>;
        assert.lengthOf(drawn ?? [], 2);
        for (const [index, at] of (begins ?? []).entries()) assert.closeTo(drawn?.[index] ?? 0, at, 1);
        const [stroke, ground] = (yield* steps(() =>
          page.evaluate(
            `[getComputedStyle(document.querySelector("figure.text .stitch:not(.under)")).stroke, getComputedStyle(document.querySelector(".card")).backgroundColor]`,
          ),
        )) as ReadonlyArray<string>;
        assert.notStrictEqual(stroke, ground);
        assert.deepStrictEqual(complaints, []);
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("opens the file of a run from disk, without a request or an error", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "run-picture-"))),
        (it) => Effect.sync(() => rmSync(it, { recursive: true })),
      );
      const file = join(folder, "run.html");
      writeFileSync(file, runDocument(folded(Runs.recovered()), Runs.now));
      for (const width of [360, 1_180]) {
        const { complaints, page, requests } = yield* tab({ viewport: { width, height: 740 } });
        yield* steps(() => page.goto(`file://${file}`));
        yield* steps(() => page.getByRole("figure").waitFor());
        const radius = yield* steps(() =>
          page.evaluate("getComputedStyle(document.querySelector('.card')).borderRadius"),
        );
        assert.strictEqual(radius, "12px", "the style inside is taken");
        assert.deepStrictEqual(yield* steps(() => overflow(page)), []);
        assert.deepStrictEqual([requests, complaints], [[`file://${file}`], []]);
      }
    }).pipe(Effect.scoped),
  );

  it.live("shows markup in labels as plain text", () =>
    Effect.gen(function* () {
      const evil = `"'><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
      const provider = { id: evil, model: evil };
      yield* put([
        Runs.asking("run_<script>alert(1)</script>", Runs.now, provider, evil),
        Runs.stopped(`run_"${evil}`, Runs.now, provider),
      ]);
      const server = yield* pageServer;
      const { complaints, page } = yield* tab();
      for (const { run_id } of yield* (yield* RunRecorder).runs()) {
        for (const path of ["", `?run=${encodeURIComponent(run_id)}`]) {
          yield* steps(() => page.goto(`${server.url}recovery/${path}`));
          yield* steps(() => page.locator("#feed[data-feed=live]").waitFor());
          assert.strictEqual(yield* steps(() => page.locator("main img, main script").count()), 0);
          assert.notStrictEqual(yield* steps(() => page.title()), "owned");
        }
      }
      yield* steps(() => page.goto(`${server.url}recovery/`));
      yield* steps(() => page.getByRole("button", { name: "It ran", exact: true }).click());
      yield* steps(() => page.locator("#said", { hasText: "Answered" }).waitFor());
      assert.deepStrictEqual(complaints, []);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.live("is photographed for the README", () =>
    Effect.gen(function* () {
      yield* put(Runs.album());
      const server = yield* pageServer;
      const { page } = yield* tab({ viewport: { width: 1_000, height: 780 }, colorScheme: "light" });
      yield* steps(() => page.goto(`${server.url}recovery/?run=run_0600fi7k2m9q`));
      yield* steps(() => page.locator("#feed[data-feed=live]").waitFor());
      const photo = yield* steps(() => page.screenshot());
      assert.isBelow(photo.length, 150 * 1024);
      if (process.env.UPDATE_SCREENSHOT === "1")
        writeFileSync(new URL("../../../docs/page.png", import.meta.url), photo);
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(memory, photographed))),
  );
});

/** Wall clock of the photograph, which must look the same each time. */
const photographed = Layer.effect(
  Clock.Clock,
  Effect.map(Clock.Clock, (clock) => ({
    currentTimeMillisUnsafe: () => Runs.now,
    currentTimeMillis: Effect.succeed(Runs.now),
    currentTimeNanosUnsafe: () => BigInt(Runs.now) * 1_000_000n,
    currentTimeNanos: Effect.succeed(BigInt(Runs.now) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration),
  })),
);
