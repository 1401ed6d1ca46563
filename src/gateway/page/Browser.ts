/**
 * Runs in the browser: keeps the page up to date and sends answers. It is served as it stands, its types taken away, so it
 * imports nothing, and builds no HTML: the server draws every view, and what has changed is taken over into the document.
 */
import type { FeedMessage } from "../api/Feed.ts";
import type { Asked, PageDocument, PageElement, PageEvents, PageNode, PageWindow, Said } from "./BrowserDom.ts";

declare const document: PageDocument;
declare const window: PageWindow;
declare const location: { readonly href: string; readonly search: string };
declare const DOMParser: new () => { parseFromString(text: string, type: "text/html"): PageDocument };
declare const EventSource: new (address: string) => PageEvents;

/** Between two looks while no news come, in milliseconds. */
const pollMs = 3_000;

/** Between two looks of a tab that is not seen, in milliseconds: its title tells of open questions. */
const hiddenPollMs = 30_000;

/** Longest wait for a view, in milliseconds: a server that hangs must not keep the page from asking again. */
const viewMs = 10_000;

/** The feed sends something about every second. After so many milliseconds without, it counts as silent. */
const silentMs = 5_000;

/** After so many milliseconds of silence the feed is opened anew: the connection may have died in a sleep. */
const deafMs = 15_000;

/** Between two looks at the clock, in milliseconds; the tab that leads tells the others as often that it is there. */
const tickMs = 1_000;

/** Most runs that the feed is asked to look at; the server takes no more. */
const shownMax = 8;

/** After so many messages without news, about one a second, a view is drawn anew for its "3 min ago". */
const quietMax = 30;

/** How long something that was said stands, in milliseconds. */
const saidMs = 6_000;

const shown = new URLSearchParams(location.search).get("run");

/** Why the last look failed, in words; undefined where it did not. */
let refusal: string | undefined;

let refreshing = false;
let again = false;

/** Takes the server's newest view over. Of several wishes at once one more look is enough. */
const refresh = async (): Promise<void> => {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  do {
    again = false;
    last.looked = clock();
    refusal = await look();
    if (refusal === undefined) last.seen = clock();
  } while (again);
  refreshing = false;
  badge();
};

/** Looks once; what went wrong, in words. A view without the run, or of a search that is not valid, is a view. */
const look = async (): Promise<string | undefined> => {
  try {
    const signal = AbortSignal.timeout(viewMs);
    const response = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store", signal });
    if (!response.ok && response.status !== 404 && response.status !== 400) return `the server says ${response.status}`;
    take(await response.text());
    return undefined;
  } catch (error) {
    // `AbortSignal.timeout` gives its own reason.
    const isLate = error instanceof Error && error.name === "TimeoutError";
    return isLate ? "the server does not answer" : "the server cannot be reached";
  }
};

const take = (text: string): void => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const [from, to] = [fresh.getElementById("view"), document.getElementById("view")];
  if (from === null || to === null) return;
  document.title = fresh.title;
  become(to, from);
};

/** Makes one element like another, keeping every node that stays: focus, selection and scrolling are the reader's. */
const become = (to: PageElement, from: PageElement): void => {
  // What the reader has opened stays open.
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
    const match = matching(at, wanted);
    if (match === null) {
      to.insertBefore(document.adoptNode(wanted), at);
      continue;
    }
    while (at !== null && at !== match) at = removed(to, at);
    if (isElement(match) && isElement(wanted)) become(match, wanted);
    else if (match.nodeValue !== wanted.nodeValue) match.nodeValue = wanted.nodeValue;
    at = match.nextSibling;
  }
  while (at !== null) at = removed(to, at);
};

const removed = (parent: PageElement, node: PageNode): PageNode | null => {
  const next = node.nextSibling;
  parent.removeChild(node);
  return next;
};

/** The node that becomes the wanted one: the next of its kind, or the one with its id wherever it stands behind. */
const matching = (at: PageNode | null, wanted: PageNode): PageNode | null => {
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

const say = (text: string, bad: boolean): void => {
  const said = document.getElementById("said");
  if (said === null) return;
  said.dataset.bad = String(bad);
  said.textContent = text;
  if (silence !== undefined) window.clearTimeout(silence);
  silence = window.setTimeout(() => {
    said.textContent = "";
  }, saidMs);
};

const retries = (calls: string, run: string): Asked => ({
  ...{ title: "This may run again", run, no: "Do not retry", yes: "Retry anyway" },
  text: `These calls ran or may have run, and a retry may run them once more: ${calls}.`,
});

const ends = (run: string): Asked => ({
  ...{ title: "Cancel this run?", run, no: "Let it go on", yes: "Cancel the run" },
  text: "It ends in its user’s name, whichever process drives it. Its client gets nothing more, its running tools are interrupted, and nothing of it is sent again.",
});

/** Asks twice; whether the second answer was yes. Escape is no. */
const sure = (asked: Asked): Promise<boolean> =>
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
  if (confirm !== undefined && !(await sure(retries(confirm, of)))) return;
  const given = { revision: Number(revision), choice, ...(confirm === undefined ? {} : { confirm_may_repeat: true }) };
  await post(button, `runs/${encodeURIComponent(run)}/answer`, given, ({ ok, told }) =>
    say(ok ? `Answered: ${button.textContent}` : `Not answered: ${messageOf(told)}`, !ok),
  );
};

/** Ends a run in its user's name. */
const cancel = async (button: PageElement): Promise<void> => {
  const { cancel: run = "", of = "" } = button.dataset;
  if (!(await sure(ends(of)))) return;
  say("Cancelling …", false);
  await post(button, `runs/${encodeURIComponent(run)}/cancel`, {}, ({ ok, told }) =>
    say(ok ? messageOf(told) : `Not cancelled: ${messageOf(told)}`, !ok),
  );
};

/** Has a path asked now. */
const tryPath = async (button: PageElement): Promise<void> => {
  say("Asking …", false);
  await post(button, "paths/try", { path: button.dataset.path }, ({ ok, told }) => {
    const isBack = typeof told === "object" && told !== null && "state" in told && told.state !== "down";
    if (!ok) say(`Not asked: ${messageOf(told)}`, true);
    else say(isBack ? "It can be reached again" : "It cannot be reached yet", !isBack);
  });
};

/** Sends what a button is for to the API, once at a time. */
const post = async (
  button: PageElement,
  path: string,
  body: object,
  answered: (answered: { readonly ok: boolean; readonly told: unknown }) => void,
): Promise<void> => {
  button.disabled = true;
  try {
    const headers = { "content-type": "application/json", "x-recovery-answer": "1" };
    const response = await fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    answered({ ok: response.ok, told: await response.json() });
  } catch {
    say("No answer: the server cannot be reached", true);
  }
  button.disabled = false;
  // What a button has done is in the view that is taken over now.
  await refresh();
  // A reader whose button is gone goes on from the view, not from the beginning of the document.
  if (document.activeElement === document.body) document.getElementById("view")?.focus();
};

const messageOf = (told: unknown): string =>
  typeof told === "object" && told !== null && "message" in told ? String(told.message) : "the server refused";

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button === null) return;
  if (button.dataset.choice !== undefined) void answer(button);
  if (button.dataset.path !== undefined) void tryPath(button);
  if (button.dataset.cancel !== undefined) void cancel(button);
  if (button.id === "confirm-yes") document.querySelector("dialog")?.close("yes");
  if (button.id === "confirm-no") document.querySelector("dialog")?.close("no");
});

/** How new the page is. */
type Standing = "start" | "live" | "silent" | "polling" | "lost";

/** Milliseconds of a clock that is never set. */
const clock = (): number => performance.now();

/** When the feed last said something, when the tab that leads did, when this tab last looked, and when it last saw anything new. */
const last = { fed: clock(), led: clock(), looked: clock(), seen: clock() };

let feed: "start" | "open" | "down" = "start";

/** Whether this tab has looked since it takes part in the feed. */
let isCaughtUp = false;

let isLeading = false;

let quiet = 0;

/** Something is new, or time has passed for a bar that grows, or much time for a view where nothing does. */
const concerns = ({ paths, runs }: FeedMessage): boolean => {
  if (paths === true && shown === null) return true;
  if (runs.length === 0) {
    quiet += 1;
    return document.getElementById("view")?.dataset.live === "true" || quiet % quietMax === 0;
  }
  return shown === null || runs.includes(shown);
};

/** The runs that other tabs show, and when each was last said; a tab that is closed or not seen says nothing. */
const followed = new Map<string, number>();

/** The runs that the feed is asked to look at: this tab's, and those of the tabs that follow it. */
const wanted = (): ReadonlyArray<string> => {
  for (const [run, at] of followed) if (clock() - at > silentMs) followed.delete(run);
  return [...new Set([...(shown === null ? [] : [shown]), ...followed.keys()])].slice(0, shownMax);
};

/** Takes what the feed said, wherever it is open, and what a tab shows. */
const hear = (said: Said): void => {
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
  if (isNew || (message !== undefined && concerns(message))) void refresh();
  badge();
};

/**
 * Holds the one feed of this browser.
 *
 * @returns ends it
 */
const listen = (tell: (said: Said) => void): (() => void) => {
  const opened = () => {
    const runs = wanted();
    const source = new EventSource(`api/events?${runs.map((run) => `run=${encodeURIComponent(run)}`).join("&")}`);
    source.addEventListener("open", () => tell({ open: true, opened: true }));
    source.addEventListener("error", () => tell({ open: false, opened: false }));
    source.addEventListener("message", ({ data }) => {
      // The feed is our own server's, and says what its type says.
      tell({ open: true, opened: false, message: JSON.parse(data) as FeedMessage });
    });
    return { source, runs, at: clock() };
  };
  let now = opened();
  const timer = window.setInterval(() => {
    const isDeaf = clock() - Math.max(now.at, last.fed) > deafMs;
    // A feed that was refused is over: the browser does not try again by itself.
    const isOver = now.source.readyState === 2 && clock() - now.at > pollMs;
    const isNarrow = wanted().some((run) => !now.runs.includes(run));
    if (isDeaf || isOver || isNarrow) {
      now.source.close();
      now = opened();
    }
    // One that is opened for another run is as good as open until it is.
    if (!isNarrow) tell({ open: now.source.readyState === 1, opened: false });
  }, tickMs);
  return () => {
    window.clearInterval(timer);
    now.source.close();
  };
};

/** One name for all tabs of this gateway and token, and for no other of the same origin: the feed's own address. */
const shared = `stream-recovery ${new URL("api/events", location.href).pathname}`;

/** Ends this tab's part in the feed; undefined while it has none. */
let leave: (() => void) | undefined;

/**
 * Takes part in the feed: the tab that holds the lock has it open and tells the others. Where there are no locks, every tab
 * that is seen has its own.
 *
 * @param steal takes the lead from a tab that has fallen silent
 */
const join = (steal: boolean): void => {
  leave?.();
  const { BroadcastChannel, navigator } = window;
  const { locks } = navigator;
  const channel = locks === undefined || BroadcastChannel === undefined ? undefined : new BroadcastChannel(shared);
  channel?.addEventListener("message", ({ data }) => hear(data));
  const part = new AbortController();
  const timer = window.setInterval(() => {
    if (shown !== null && !isLeading) channel?.postMessage({ shows: shown });
    tick();
  }, tickMs);
  leave = () => {
    leave = undefined;
    isLeading = false;
    window.clearInterval(timer);
    part.abort();
    channel?.close();
  };
  [feed, isCaughtUp, last.led] = ["start", false, clock()];
  const held = (): Promise<void> =>
    new Promise((resolve) => {
      if (part.signal.aborted) return resolve();
      isLeading = true;
      const end = listen((told) => {
        channel?.postMessage(told);
        hear(told);
      });
      part.signal.addEventListener("abort", () => {
        end();
        resolve();
      });
    });
  if (locks === undefined || channel === undefined) return void held();
  locks.request(shared, steal ? { steal } : { signal: part.signal }, held).catch(() => {
    // Another tab took the lead, because this one was silent: it follows now.
    if (!part.signal.aborted) join(false);
  });
};

/** Once a second: a leader that is gone without a word is replaced, and while no news come the page looks by itself. */
const tick = (): void => {
  if (!isLeading && clock() - last.led > silentMs) join(true);
  if (standing() !== "live" && clock() - last.looked >= pollMs) void refresh();
  badge();
};

const standing = (): Standing => {
  if (refusal !== undefined) return "lost";
  if (feed !== "open") return feed === "start" ? "start" : "polling";
  return clock() - last.fed > silentMs ? "silent" : "live";
};

const words: Readonly<Record<Standing, string>> = {
  start: "connecting",
  live: "live",
  silent: "the live feed is silent; looking every 3 s",
  polling: "no live feed; looking every 3 s",
  lost: "",
};

/** Says how new the page is. Its words change seldom, and a screen reader says them; the age changes every second. */
const badge = (): void => {
  const [place, said, age] = ["feed", "feed-words", "feed-age"].map((id) => document.getElementById(id));
  if (!place || !said || !age) return;
  const now = standing();
  const text = refusal ?? words[now];
  place.dataset.feed = now;
  if (said.textContent !== text) said.textContent = text;
  const old = now === "live" || now === "start" ? "" : `last news ${rough(clock() - last.seen)} ago`;
  if (age.textContent !== old) age.textContent = old;
};

const rough = (ms: number): string => {
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
};

let hiddenTimer: number | undefined;

/** A tab that is seen takes part in the feed. One that is not holds no connection, and looks now and then for its title. */
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

// A page that is kept for the way back holds no lock and no connection.
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
