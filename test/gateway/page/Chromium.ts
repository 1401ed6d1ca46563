/**
 * Opens pages in headless Chromium, and records everything that they request.
 */
import { existsSync } from "node:fs";
import { Effect, type Scope } from "effect";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";

/** The reason why there is no browser; undefined if there is one. */
export const missing: string | undefined = existsSync(executablePath)
  ? undefined
  : `${executablePath} does not exist: apt-get install chromium, or set CHROMIUM_PATH`;

/** Maximum wait for something on a page, in milliseconds. Two cores may be busy with other tests. */
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
  /** Every address that the page requested. */
  readonly requests: ReadonlyArray<string>;
  /** Its console messages and its errors. */
  readonly complaints: ReadonlyArray<string>;
}

/** Time limit of a browser test, in milliseconds. */
export const browserTestMs = 60_000;

let started: Promise<Browser> | undefined;

/** One browser per test file, with a separate profile. Every tab has its own cookies, cache and downloads. */
const browser = (): Promise<Browser> => {
  started ??= chromium.launch({ executablePath, args, timeout: browserTestMs });
  return started;
};

/** Ends the browser, if one was started. A test file calls it last. */
export const closed = async (): Promise<void> => (await started)?.close();

/** Opens one tab that closes with the scope. */
export const tab = (options: BrowserContextOptions = {}): Effect.Effect<Tab, never, Scope.Scope> =>
  Effect.flatMap(profile(options), tabOf);

/** A separate profile, which closes with the scope. Its tabs share locks and channels, like those of a person. */
export const profile = (options: BrowserContextOptions = {}): Effect.Effect<BrowserContext, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => (await browser()).newContext(options)),
    (it) => Effect.promise(() => it.close()),
  );

/** Opens another tab in a profile. */
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

export const steps = <A>(play: () => Promise<A>): Effect.Effect<A> => Effect.promise(play);

/** The elements that overflow the page on the right, so that a person would have to scroll sideways. */
export const overflow = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(`(() => {
    const width = document.documentElement.clientWidth;
    const wide = [...document.querySelectorAll("main *, header *, footer *")]
      .filter((it) => !it.closest("svg") && !it.closest(".sr") && it.getBoundingClientRect().right > width + 0.5)
      .map((it) => it.outerHTML.slice(0, 120));
    return document.documentElement.scrollWidth > width ? ["the document", ...wide] : wide;
  })()`);

/** Contrast of an element's text against its background (WCAG 2.2, 1.4.3), by the drawn colours. */
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
