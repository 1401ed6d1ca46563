/**
 * Opens pages in headless Chromium, and keeps an account of everything that they ask for.
 */
import { existsSync } from "node:fs";
import { Effect, type Scope } from "effect";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";

/** Why there is no browser here; undefined where there is one. */
export const missing: string | undefined = existsSync(executablePath)
  ? undefined
  : `${executablePath} does not exist: apt-get install chromium, or set CHROMIUM_PATH`;

/** Longest wait for something on a page, in milliseconds: two cores may be busy with other tests. */
const patienceMs = 20_000;

const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface Tab {
  readonly page: Page;
  /** Every address that the page asked for. */
  readonly requests: ReadonlyArray<string>;
  /** What its console said and what it threw. */
  readonly complaints: ReadonlyArray<string>;
}

/** Longest test in a browser, in milliseconds. */
export const browserTestMs = 60_000;

let started: Promise<Browser> | undefined;

/** One browser a test file, with a profile of its own; every tab has cookies, cache and downloads of its own. */
const browser = (): Promise<Browser> => {
  started ??= chromium.launch({ executablePath, args, timeout: browserTestMs });
  return started;
};

/** Ends the browser, if one was started: what a test file does last. */
export const closed = async (): Promise<void> => (await started)?.close();

/** Opens one tab that closes with the scope. */
export const tab = (options: BrowserContextOptions = {}): Effect.Effect<Tab, never, Scope.Scope> =>
  Effect.flatMap(profile(options), tabOf);

/** A profile of its own, which closes with the scope: its tabs share locks and channels, as those of a person do. */
export const profile = (options: BrowserContextOptions = {}): Effect.Effect<BrowserContext, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => (await browser()).newContext(options)),
    (it) => Effect.promise(() => it.close()),
  );

/** Opens one more tab of a profile. */
export const tabOf = (context: BrowserContext): Effect.Effect<Tab> =>
  Effect.gen(function* () {
    const page = yield* Effect.promise(() => context.newPage());
    page.setDefaultTimeout(patienceMs);
    const requests: Array<string> = [];
    const complaints: Array<string> = [];
    page.on("request", (request) => requests.push(request.url()));
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    return { page, requests, complaints };
  });

/** Runs steps in a tab. */
export const steps = <A>(play: () => Promise<A>): Effect.Effect<A> => Effect.promise(play);

/** Whether something of the page stands out on the right: a person would have to scroll sideways. */
export const overflow = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(`(() => {
    const width = document.documentElement.clientWidth;
    const wide = [...document.querySelectorAll("main *, header *, footer *")]
      .filter((it) => !it.closest("svg") && !it.closest(".sr") && it.getBoundingClientRect().right > width + 0.5)
      .map((it) => it.outerHTML.slice(0, 120));
    return document.documentElement.scrollWidth > width ? ["the document", ...wide] : wide;
  })()`);

/** Contrast of an element's text against what lies behind it (WCAG 2.2, 1.4.3), by the colours that are drawn. */
export const contrast = (page: Page, selector: string): Promise<number> =>
  page.evaluate(`((selector) => {
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((it) => it / 255).map((it) => (it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const element = document.querySelector(selector);
    let behind = element;
    while (behind !== null && (rgb(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(rgb(getComputedStyle(behind).backgroundColor))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  })(${JSON.stringify(selector)})`);
