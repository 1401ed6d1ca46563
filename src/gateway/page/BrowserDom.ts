/**
 * Declares what `Browser` needs of a browser, so that the names of the DOM stay out of the other sources.
 */
import type { FeedMessage } from "../api/Feed.ts";

/** A node of the document. */
export interface PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  nodeValue: string | null;
  readonly firstChild: PageNode | null;
  readonly nextSibling: PageNode | null;
  insertBefore(node: PageNode, before: PageNode | null): void;
  removeChild(node: PageNode): void;
}

/** An element of the document. */
export interface PageElement extends PageNode {
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

/** The dialog that asks twice. */
export interface PageDialog extends PageElement {
  returnValue: string;
  showModal(): void;
  close(value: string): void;
  addEventListener(name: "close", listener: () => void, options: { readonly once: true }): void;
}

/** What the dialog says, by the ends of the names of its places. */
export type Asked = Readonly<Record<"title" | "run" | "text" | "no" | "yes", string>>;

/** The window. */
export interface PageWindow {
  readonly BroadcastChannel?: new (name: string) => PageChannel;
  readonly navigator: { readonly locks?: PageLocks };
  readonly setTimeout: (callback: () => void, ms: number) => number;
  readonly clearTimeout: (timer: number) => void;
  readonly setInterval: (callback: () => void, ms: number) => number;
  readonly clearInterval: (timer: number | undefined) => void;
  readonly addEventListener: (name: "pagehide" | "pageshow" | "online", listener: () => void) => void;
}

/** The document. */
export interface PageDocument {
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

/** The feed, as a browser follows it. */
export interface PageEvents {
  readonly readyState: number;
  close(): void;
  addEventListener(name: "open" | "error", listener: () => void): void;
  addEventListener(name: "message", listener: (event: { readonly data: string }) => void): void;
}

/** The way from one tab of a gateway to its others. */
export interface PageChannel {
  postMessage(said: Said): void;
  close(): void;
  addEventListener(name: "message", listener: (event: { readonly data: Said }) => void): void;
}

/** Web Locks. A browser has them only where the page came over TLS or from this machine. */
export interface PageLocks {
  request(
    name: string,
    how: { readonly signal: AbortSignal } | { readonly steal: true },
    held: () => Promise<void>,
  ): Promise<void>;
}

/** What the tab that leads tells the others, about once a second. */
export interface Told {
  /** Whether the feed is open. */
  readonly open: boolean;
  /** It was opened just now: what happened before it was not told. */
  readonly opened: boolean;
  /** What it said; undefined where it said nothing. */
  readonly message?: FeedMessage | undefined;
}

/** What a tab that follows and shows one run says, about once a second: the feed is to look at that run. */
export interface Showing {
  readonly shows: string;
}

/** What tabs of one gateway say to each other. */
export type Said = Told | Showing;
