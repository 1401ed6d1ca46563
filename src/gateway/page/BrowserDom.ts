/**
 * Declares the parts of the DOM that `Browser` uses. Including TypeScript's DOM library would make DOM types available in all other
 * sources.
 */
import type { FeedMessage } from "../api/Feed.ts";

/** The parts of a DOM node that the page uses. */
export interface PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  nodeValue: string | null;
  readonly firstChild: PageNode | null;
  readonly nextSibling: PageNode | null;
  insertBefore(node: PageNode, before: PageNode | null): void;
  removeChild(node: PageNode): void;
}

/** The parts of a DOM element that the page uses. */
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

/** The dialog that asks for confirmation. */
export interface PageDialog extends PageElement {
  returnValue: string;
  showModal(): void;
  close(value: string): void;
  addEventListener(name: "close", listener: () => void, options: { readonly once: true }): void;
}

/** Strings of the dialog. Each key is the end of an element's id. */
export type Asked = Readonly<Record<"title" | "run" | "text" | "no" | "yes", string>>;

/** The parts of `window` that the page uses. */
export interface PageWindow {
  readonly BroadcastChannel?: new (name: string) => PageChannel;
  readonly navigator: { readonly locks?: PageLocks };
  readonly setTimeout: (callback: () => void, ms: number) => number;
  readonly clearTimeout: (timer: number) => void;
  readonly setInterval: (callback: () => void, ms: number) => number;
  readonly clearInterval: (timer: number | undefined) => void;
  readonly addEventListener: (name: "pagehide" | "pageshow" | "online", listener: () => void) => void;
}

/** The parts of `document` that the page uses. */
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

/** The `EventSource` of the feed. */
export interface PageEvents {
  readonly readyState: number;
  close(): void;
  addEventListener(name: "open" | "error", listener: () => void): void;
  addEventListener(name: "message", listener: (event: { readonly data: string }) => void): void;
}

/** Channel between the tabs of the same gateway. */
export interface PageChannel {
  postMessage(said: Said): void;
  close(): void;
  addEventListener(name: "message", listener: (event: { readonly data: Said }) => void): void;
}

/** Web Locks. Browsers provide them only over TLS or on localhost. */
export interface PageLocks {
  request(
    name: string,
    how: { readonly signal: AbortSignal } | { readonly steal: true },
    held: () => Promise<void>,
  ): Promise<void>;
}

/** Message from the leading tab to the others, about once per second. */
export interface Told {
  /** True if the connection of the feed is open. */
  readonly open: boolean;
  /** True if the feed was just opened, so that messages before it may be missing. */
  readonly opened: boolean;
  /** Message of the feed; undefined if the feed sent none. */
  readonly message?: FeedMessage | undefined;
}

/** Message from a tab that shows one run, about once per second, so that the feed watches that run. */
export interface Showing {
  readonly shows: string;
}

/** Message between tabs of the same gateway. */
export type Said = Told | Showing;
