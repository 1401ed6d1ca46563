/**
 * Runs in the browser: keeps the page up to date and sends answers. It is served as it stands, its types taken away, so it
 * imports nothing, and builds no HTML: the server draws every view, and what has changed is taken over into the document.
 *
 * What it needs of the DOM is declared here, so that the DOM's names stay out of the other sources.
 */
import type { FeedMessage } from "../api/Feed.ts";

interface PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  nodeValue: string | null;
  readonly firstChild: PageNode | null;
  readonly nextSibling: PageNode | null;
  insertBefore(node: PageNode, before: PageNode | null): void;
  removeChild(node: PageNode): void;
}

interface PageElement extends PageNode {
  id: string;
  textContent: string;
  disabled: boolean;
  readonly dataset: Record<string, string | undefined>;
  getAttributeNames(): ReadonlyArray<string>;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  closest(selector: string): PageElement | null;
  focus(): void;
}

interface PageDialog extends PageElement {
  returnValue: string;
  showModal(): void;
  close(value: string): void;
  addEventListener(name: "close", listener: () => void, options: { readonly once: true }): void;
}

interface PageDocument {
  title: string;
  readonly hidden: boolean;
  readonly body: PageElement;
  readonly activeElement: PageElement | null;
  getElementById(id: string): PageElement | null;
  querySelector(selector: "dialog"): PageDialog | null;
  adoptNode<N extends PageNode>(node: N): N;
  addEventListener(name: "click", listener: (event: { readonly target: PageElement }) => void): void;
  addEventListener(name: "visibilitychange", listener: () => void): void;
}

declare const document: PageDocument;
declare const window: {
  readonly setTimeout: (callback: () => void, ms: number) => number;
  readonly clearTimeout: (timer: number) => void;
};
declare const location: { readonly href: string; readonly search: string };
declare const DOMParser: new () => { parseFromString(text: string, type: "text/html"): PageDocument };
declare const EventSource: new (
  address: string,
) => {
  readonly readyState: number;
  close(): void;
  addEventListener(name: "open" | "error", listener: () => void): void;
  addEventListener(name: "message", listener: (event: { readonly data: string }) => void): void;
};

/** Between two looks while the feed is down, in milliseconds. */
const pollMs = 3_000;

/** After so many messages without news, about one a second, a view is drawn anew for its "3 min ago". */
const quietMax = 30;

/** How long something that was said stands, in milliseconds. */
const saidMs = 6_000;

const shown = new URLSearchParams(location.search).get("run");

const feedIs = (state: "live" | "polling" | "lost", words: string): void => {
  const feed = document.getElementById("feed");
  if (feed === null || feed.dataset.feed === state) return;
  feed.dataset.feed = state;
  feed.textContent = words;
};

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
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (response.ok || response.status === 404) take(await response.text());
      if (!response.ok && response.status !== 404) feedIs("lost", `the server says ${response.status}`);
    } catch {
      feedIs("lost", "the server cannot be reached");
    }
  } while (again);
  refreshing = false;
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
  for (const name of to.getAttributeNames()) if (from.getAttribute(name) === null) to.removeAttribute(name);
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

/** Asks twice; whether the second answer was yes. Escape is no. */
const sure = (calls: string): Promise<boolean> =>
  new Promise((resolve) => {
    const dialog = document.querySelector("dialog");
    const text = document.getElementById("confirm-text");
    if (dialog === null || text === null) return resolve(false);
    text.textContent = `These calls ran or may have run, and a retry may run them once more: ${calls}.`;
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
    document.getElementById("confirm-no")?.focus();
  });

const answer = async (button: PageElement): Promise<void> => {
  const { choice, confirm, revision, run } = button.dataset;
  if (choice === undefined || run === undefined) return;
  if (confirm !== undefined && !(await sure(confirm))) return;
  button.disabled = true;
  try {
    const response = await fetch(`api/runs/${encodeURIComponent(run)}/answer`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-recovery-answer": "1" },
      body: JSON.stringify({
        revision: Number(revision),
        choice,
        ...(confirm === undefined ? {} : { confirm_may_repeat: true }),
      }),
    });
    const told: unknown = await response.json();
    say(response.ok ? `Answered: ${button.textContent}` : `Not answered: ${messageOf(told)}`, !response.ok);
  } catch {
    say("Not answered: the server cannot be reached", true);
  }
  button.disabled = false;
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
  if (button.id === "confirm-yes") document.querySelector("dialog")?.close("yes");
  if (button.id === "confirm-no") document.querySelector("dialog")?.close("no");
});

let quiet = 0;

/** Something is new, or time has passed for a bar that grows, or much time for a view where nothing does. */
const concerns = ({ runs }: FeedMessage): boolean => {
  if (document.hidden) return false;
  if (runs.length === 0) {
    quiet += 1;
    return document.getElementById("view")?.dataset.live === "true" || quiet % quietMax === 0;
  }
  return shown === null || runs.includes(shown);
};

/** Follows the feed, and looks every `pollMs` while it is down. */
const follow = (): void => {
  const feed = new EventSource("api/events");
  let down = false;
  const poll = (): void => {
    if (!down) return;
    void refresh();
    // A feed that was refused is over: the browser does not try again by itself.
    if (feed.readyState === 2) follow();
    else window.setTimeout(poll, pollMs);
  };
  feed.addEventListener("open", () => {
    down = false;
    feedIs("live", "live");
    void refresh();
  });
  feed.addEventListener("error", () => {
    if (down) return;
    down = true;
    feedIs("polling", "polling");
    window.setTimeout(poll, pollMs);
  });
  feed.addEventListener("message", ({ data }) => {
    // The feed is our own server's, and says what its type says.
    if (concerns(JSON.parse(data) as FeedMessage)) void refresh();
  });
};

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void refresh();
});

follow();
