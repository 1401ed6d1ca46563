/**
 * Runs in the browser: keeps the page up to date and sends answers. The server removes only the types from this file, so it must not import
 * anything. It builds no HTML either: the server renders every view, and this script merges the changes into the document.
 */
import type { FeedMessage } from "../api/Feed.ts";
import type { Asked, PageDocument, PageElement, PageEvents, PageNode, PageWindow, Said } from "./BrowserDom.ts";

declare const document: PageDocument;
declare const window: PageWindow;
declare const location: { readonly href: string; readonly search: string };
declare const DOMParser: new () => { parseFromString(text: string, type: "text/html"): PageDocument };
declare const EventSource: new (address: string) => PageEvents;

/** Polling interval without a live feed, in milliseconds. */
const pollMs = 3_000;

/** Polling interval of a hidden tab, in milliseconds. The tab's title shows the number of open questions. */
const hiddenPollMs = 30_000;

/** Timeout for fetching a view, in milliseconds. A server that hangs must not stop the polling. */
const viewMs = 10_000;

/**
 * Time without a message after which the page shows that the feed is silent, in milliseconds. The feed sends about one message per second.
 */
const silentMs = 5_000;

/** Time without a message after which the feed is reopened, in milliseconds. Its connection may have died while the computer slept. */
const deafMs = 15_000;

/** Interval of the timers, in milliseconds. The leading tab also sends a message to the other tabs at this interval. */
const tickMs = 1_000;

/** Maximum number of runs that the feed watches. The server has the same limit. */
const shownMax = 8;

/** Number of messages without news, about one per second, after which a view is refreshed so that relative times are right. */
const quietMax = 30;

/** Time for which a message is displayed, in milliseconds. */
const saidMs = 6_000;

const shown = new URLSearchParams(location.search).get("run");

/** Error of the last fetch; undefined if the fetch succeeded. */
let refusal: string | undefined;

let refreshing = false;
let again = false;

/** Fetches the newest view from the server. All calls during a fetch together cause one more fetch. */
const refresh = async (): Promise<void> => {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  do {
    again = false;
    last.looked = clock();
    refusal = await poll();
    if (refusal === undefined) last.seen = clock();
  } while (again);
  refreshing = false;
  updateBadge();
};

/**
 * Fetches a view once. Returns an error message on failure. Responses with status 404 (no such run) and 400 (invalid search) contain a view
 * too.
 */
const poll = async (): Promise<string | undefined> => {
  try {
    const signal = AbortSignal.timeout(viewMs);
    const response = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store", signal });
    if (!response.ok && response.status !== 404 && response.status !== 400)
      return `the server returned status ${response.status}`;
    applyPage(await response.text());
    return undefined;
  } catch (error) {
    // `AbortSignal.timeout` aborts with a `TimeoutError`.
    const isLate = error instanceof Error && error.name === "TimeoutError";
    return isLate ? "the server does not respond" : "the server cannot be reached";
  }
};

const applyPage = (text: string): void => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const [from, to] = [fresh.getElementById("view"), document.getElementById("view")];
  if (from === null || to === null) return;
  document.title = fresh.title;
  morph(to, from);
};

/** Makes one element equal to another. Existing nodes are reused, so that focus, selection and scroll position are kept. */
const morph = (to: PageElement, from: PageElement): void => {
  // The user may have opened these details, so they stay open.
  const isKept = (name: string) => name === "open" && to.nodeName === "DETAILS";
  for (const name of to.getAttributeNames()) {
    if (from.getAttribute(name) === null && !isKept(name)) to.removeAttribute(name);
  }
  for (const name of from.getAttributeNames()) {
    const value = from.getAttribute(name) ?? "";
    if (to.getAttribute(name) !== value) to.setAttribute(name, value);
  }
  let at = to.firstChild;
  let next = from.firstChild;
  while (next !== null) {
    const wanted = next;
    next = next.nextSibling;
    const match = findMatch(at, wanted);
    if (match === null) {
      to.insertBefore(document.adoptNode(wanted), at);
      continue;
    }
    while (at !== null && at !== match) at = removeNode(to, at);
    if (isElement(match) && isElement(wanted)) morph(match, wanted);
    else if (match.nodeValue !== wanted.nodeValue) match.nodeValue = wanted.nodeValue;
    at = match.nextSibling;
  }
  while (at !== null) at = removeNode(to, at);
};

const removeNode = (parent: PageElement, node: PageNode): PageNode | null => {
  const next = node.nextSibling;
  parent.removeChild(node);
  return next;
};

/** Finds the node to reuse: the next node if it is of the same kind, or a later one with the same id. */
const findMatch = (at: PageNode | null, wanted: PageNode): PageNode | null => {
  const id = isElement(wanted) ? wanted.id : "";
  for (let node = at; node !== null; node = node.nextSibling) {
    const own = isElement(node) ? node.id : "";
    if (node.nodeName === wanted.nodeName && own === id) return node;
    if (id === "" && node === at) return null;
  }
  return null;
};

const isElement = (node: PageNode): node is PageElement => node.nodeType === 1;

let silence: number | undefined;

const announce = (text: string, bad: boolean): void => {
  const said = document.getElementById("said");
  if (said === null) return;
  said.dataset.bad = String(bad);
  said.textContent = text;
  if (silence !== undefined) window.clearTimeout(silence);
  silence = window.setTimeout(() => {
    said.textContent = "";
  }, saidMs);
};

const retryPrompt = (calls: string, run: string): Asked => ({
  ...{ title: "This may run again", run, no: "Do not retry", yes: "Retry anyway" },
  text: `These calls ran or may have run, and a retry may run them again: ${calls}.`,
});

const cancelPrompt = (run: string): Asked => ({
  ...{ title: "Cancel this run?", run, no: "Let it continue", yes: "Cancel the run" },
  text: "The run ends as if its user had cancelled it, in whichever process owns it. Its client receives nothing more, its running tools are interrupted, and no request is sent again.",
});

/** Asks for confirmation. The Escape key means no. */
const confirmChoice = (asked: Asked): Promise<boolean> =>
  new Promise((resolve) => {
    const dialog = document.querySelector("dialog");
    if (dialog === null) return resolve(false);
    for (const [name, words] of Object.entries(asked)) {
      const place = document.getElementById(`confirm-${name}`);
      if (place !== null) place.textContent = words;
    }
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
    document.getElementById("confirm-no")?.focus();
  });

const answer = async (button: PageElement): Promise<void> => {
  const { choice, confirm, of = "", revision, run } = button.dataset;
  if (choice === undefined || run === undefined) return;
  if (confirm !== undefined && !(await confirmChoice(retryPrompt(confirm, of)))) return;
  const given = { revision: Number(revision), choice, ...(confirm === undefined ? {} : { confirm_may_repeat: true }) };
  await post(button, `runs/${encodeURIComponent(run)}/answer`, given, ({ ok, body }) =>
    announce(ok ? `Answered: ${button.textContent}` : `Not answered: ${messageOf(body)}`, !ok),
  );
};

const cancel = async (button: PageElement): Promise<void> => {
  const { cancel: run = "", of = "" } = button.dataset;
  if (!(await confirmChoice(cancelPrompt(of)))) return;
  announce("Cancelling …", false);
  await post(button, `runs/${encodeURIComponent(run)}/cancel`, {}, ({ ok, body }) =>
    announce(ok ? messageOf(body) : `Not cancelled: ${messageOf(body)}`, !ok),
  );
};

const tryPath = async (button: PageElement): Promise<void> => {
  announce("Asking …", false);
  await post(button, "paths/try", { path: button.dataset.path }, ({ ok, body }) => {
    const isBack = typeof body === "object" && body !== null && "state" in body && body.state !== "down";
    if (!ok) announce(`Not asked: ${messageOf(body)}`, true);
    else announce(isBack ? "It can be reached again" : "It cannot be reached yet", !isBack);
  });
};

/** Sends a button's request to the API. The button is disabled until the response has arrived. */
const post = async (
  button: PageElement,
  path: string,
  body: object,
  onAnswer: (answered: { readonly ok: boolean; readonly body: unknown }) => void,
): Promise<void> => {
  button.disabled = true;
  try {
    const headers = { "content-type": "application/json", "x-recovery-answer": "1" };
    const response = await fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    onAnswer({ ok: response.ok, body: await response.json() });
  } catch {
    announce("No response: the server cannot be reached", true);
  }
  button.disabled = false;
  // The refreshed view shows the effect of the request.
  await refresh();
  // If the focused button was removed, the focus moves to the view instead of the start of the document.
  if (document.activeElement === document.body) document.getElementById("view")?.focus();
};

const messageOf = (body: unknown): string =>
  typeof body === "object" && body !== null && "message" in body ? String(body.message) : "the server refused";

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button === null) return;
  if (button.dataset.choice !== undefined) void answer(button);
  if (button.dataset.path !== undefined) void tryPath(button);
  if (button.dataset.cancel !== undefined) void cancel(button);
  if (button.id === "confirm-yes") document.querySelector("dialog")?.close("yes");
  if (button.id === "confirm-no") document.querySelector("dialog")?.close("no");
});

/** Freshness of the page. */
type Standing = "start" | "live" | "silent" | "polling" | "lost";

/** Returns monotonic time, in milliseconds. */
const clock = (): number => performance.now();

/** Times of the last message from the feed, the last message from the leading tab, the last fetch of this tab, and the last news. */
const last = { fed: clock(), led: clock(), looked: clock(), seen: clock() };

let feed: "start" | "open" | "down" = "start";

/** True if this tab has refreshed its view since it joined the feed. */
let isCaughtUp = false;

let isLeading = false;

let quiet = 0;

/** True if a message requires a refresh: it reports a change, a running bar has to grow, or relative times are out of date. */
const isRefreshDue = ({ paths, runs }: FeedMessage): boolean => {
  if (paths === true && shown === null) return true;
  if (runs.length === 0) {
    quiet += 1;
    return document.getElementById("view")?.dataset.live === "true" || quiet % quietMax === 0;
  }
  return shown === null || runs.includes(shown);
};

/** Runs shown in other tabs, with the time of the last message from each tab. Closed and hidden tabs send no messages. */
const followed = new Map<string, number>();

/** Returns the runs that the feed should watch: those shown in this tab and in the tabs that follow it. */
const wantedRuns = (): ReadonlyArray<string> => {
  for (const [run, at] of followed) if (clock() - at > silentMs) followed.delete(run);
  return [...new Set([...(shown === null ? [] : [shown]), ...followed.keys()])].slice(0, shownMax);
};

/** Handles a message from the tab that holds the feed, or from a tab that shows a run. */
const onFeed = (said: Said): void => {
  if ("shows" in said) return void followed.set(said.shows, clock());
  const { message, open, opened } = said;
  last.led = clock();
  feed = open ? "open" : "down";
  if (opened || message !== undefined) {
    last.fed = last.led;
    last.seen = last.led;
  }
  const isNew = open && (opened || !isCaughtUp);
  if (isNew) isCaughtUp = true;
  if (isNew || (message !== undefined && isRefreshDue(message))) void refresh();
  updateBadge();
};

/**
 * Opens the feed. Only one tab of the browser does so.
 *
 * @returns a function that closes the feed
 */
const listen = (tell: (said: Said) => void): (() => void) => {
  const openSource = () => {
    const runs = wantedRuns();
    const source = new EventSource(`api/events?${runs.map((run) => `run=${encodeURIComponent(run)}`).join("&")}`);
    source.addEventListener("open", () => tell({ open: true, opened: true }));
    source.addEventListener("error", () => tell({ open: false, opened: false }));
    source.addEventListener("message", ({ data }) => {
      // The feed comes from our server, which sends messages of this type only, so the cast is safe.
      tell({ open: true, opened: false, message: JSON.parse(data) as FeedMessage });
    });
    return { source, runs, at: clock() };
  };
  let now = openSource();
  const timer = window.setInterval(() => {
    const isDeaf = clock() - Math.max(now.at, last.fed) > deafMs;
    // A browser does not reconnect a feed that the server refused.
    const isOver = now.source.readyState === 2 && clock() - now.at > pollMs;
    const isNarrow = wantedRuns().some((run) => !now.runs.includes(run));
    if (isDeaf || isOver || isNarrow) {
      now.source.close();
      now = openSource();
    }
    // While the feed is reopened to watch a further run, the tabs are not told that it is closed.
    if (!isNarrow) tell({ open: now.source.readyState === 1, opened: false });
  }, tickMs);
  return () => {
    window.clearInterval(timer);
    now.source.close();
  };
};

/**
 * Name of the Web Lock for the leading tab, and of the channel between the tabs. It contains the feed's address, because one origin may
 * serve several gateways or tokens.
 */
const shared = `stream-recovery ${new URL("api/events", location.href).pathname}`;

/** Leaves the feed; undefined if this tab has not joined. */
let leave: (() => void) | undefined;

/**
 * Joins the feed: the tab that holds the lock opens the feed and forwards messages to the others. In a browser without locks, every visible
 * tab opens its own feed.
 *
 * @param steal true to replace a leading tab that no longer sends messages
 */
const join = (steal: boolean): void => {
  leave?.();
  const { BroadcastChannel, navigator } = window;
  const { locks } = navigator;
  const channel = locks === undefined || BroadcastChannel === undefined ? undefined : new BroadcastChannel(shared);
  channel?.addEventListener("message", ({ data }) => onFeed(data));
  const part = new AbortController();
  const timer = window.setInterval(() => {
    if (shown !== null && !isLeading) channel?.postMessage({ shows: shown });
    onTick();
  }, tickMs);
  leave = () => {
    leave = undefined;
    isLeading = false;
    window.clearInterval(timer);
    part.abort();
    channel?.close();
  };
  [feed, isCaughtUp, last.led] = ["start", false, clock()];
  const becomeLeader = (): Promise<void> =>
    new Promise((resolve) => {
      if (part.signal.aborted) return resolve();
      isLeading = true;
      const end = listen((message) => {
        channel?.postMessage(message);
        onFeed(message);
      });
      part.signal.addEventListener("abort", () => {
        end();
        resolve();
      });
    });
  if (locks === undefined || channel === undefined) return void becomeLeader();
  locks.request(shared, steal ? { steal } : { signal: part.signal }, becomeLeader).catch(() => {
    // Another tab has taken the lead because this tab was silent, so this tab follows it.
    if (!part.signal.aborted) join(false);
  });
};

/** Runs every second: replaces a leading tab that is silent, and polls while there is no live feed. */
const onTick = (): void => {
  if (!isLeading && clock() - last.led > silentMs) join(true);
  if (standingOf() !== "live" && clock() - last.looked >= pollMs) void refresh();
  updateBadge();
};

const standingOf = (): Standing => {
  if (refusal !== undefined) return "lost";
  if (feed !== "open") return feed === "start" ? "start" : "polling";
  return clock() - last.fed > silentMs ? "silent" : "live";
};

const words: Readonly<Record<Standing, string>> = {
  start: "connecting",
  live: "live",
  silent: "the live feed is silent; polling every 3 s",
  polling: "no live feed; polling every 3 s",
  lost: "",
};

/**
 * Shows the freshness of the page. The words are in their own element, because screen readers announce each change of it, and the age
 * changes every second.
 */
const updateBadge = (): void => {
  const [place, said, age] = ["feed", "feed-words", "feed-age"].map((id) => document.getElementById(id));
  if (!place || !said || !age) return;
  const now = standingOf();
  const text = refusal ?? words[now];
  place.dataset.feed = now;
  if (said.textContent !== text) said.textContent = text;
  const old = now === "live" || now === "start" ? "" : `last update ${formatRoughly(clock() - last.seen)} ago`;
  if (age.textContent !== old) age.textContent = old;
};

const formatRoughly = (ms: number): string => {
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
};

let hiddenTimer: number | undefined;

/** Joins the feed if the tab is visible. A hidden tab holds no connection and polls slowly, for its title. */
const follow = (): void => {
  window.clearInterval(hiddenTimer);
  hiddenTimer = undefined;
  if (document.hidden) {
    leave?.();
    hiddenTimer = window.setInterval(() => void refresh(), hiddenPollMs);
  } else if (leave === undefined) join(false);
};

document.addEventListener("visibilitychange", () => {
  follow();
  if (!document.hidden) void refresh();
});

// A page in the back/forward cache must not hold the lock or a connection.
window.addEventListener("pagehide", () => {
  window.clearInterval(hiddenTimer);
  leave?.();
});

window.addEventListener("pageshow", () => {
  if (leave !== undefined || document.hidden) return;
  follow();
  void refresh();
});

window.addEventListener("online", () => void refresh());

follow();
