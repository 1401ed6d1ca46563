/**
 * Creates the `Response` that a caller of `fetch` gets for a relayed request. Its body is read on demand, and fails if the run breaks.
 */
import { Cause, Exit } from "effect";
import { RelayInterrupted } from "../relay/RelayInterrupted.ts";
import type { RelayBytes } from "../relay/RelayReader.ts";
import type { RelayHead, RelayRefusal } from "../relay/RelayTransport.ts";

/** Supplies the bytes of a response's body. */
export interface BodySource {
  readonly read: () => Promise<Exit.Exit<RelayBytes, RelayInterrupted>>;
  /** Called when the reader cancels the body. */
  readonly cancel: () => void;
  /** Called when the body was read completely, or when the run has broken. */
  readonly close: () => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * Creates a response whose body is read on demand. No chunk is fetched before the reader asks for it.
 *
 * @param url address of the request, for `Response.url`
 */
export const respond = (head: RelayHead, url: string, source: BodySource): Response => {
  if (!bodyless.has(head.status)) return responseOf(head, url, streamOf(source));
  source.close();
  return responseOf(head, url, null);
};

/**
 * Returns the provider's own refusal unchanged. If its body was not received completely, the body breaks at that point.
 *
 * @param extra headers to append
 */
export const refuse = (refusal: RelayRefusal, url: string, extra: RelayHead["headers"]): Response => {
  const head = { ...refusal.head, headers: [...refusal.head.headers, ...extra] };
  if (bodyless.has(head.status)) return responseOf(head, url, null);
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => {
      for (const chunk of refusal.body) controller.enqueue(chunk);
      if (refusal.whole) controller.close();
    },
    pull: (controller) => controller.error(new TypeError("The provider's response broke")),
  });
  return responseOf(head, url, body);
};

/** Returns the error that a caller of `fetch` gets for a broken run: the original error, or else the run's. */
export const errorOf = (error: unknown): unknown =>
  error instanceof RelayInterrupted ? (error.original ?? error) : error;

const streamOf = (source: BodySource): ReadableStream<Uint8Array<ArrayBuffer>> => {
  const { signal } = source;
  let over = false;
  let aborted: (() => void) | undefined;
  const finish = (): boolean => {
    if (over) return false;
    over = true;
    unread.unregister(source);
    if (aborted !== undefined) signal?.removeEventListener("abort", aborted);
    return true;
  };
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start: (controller) => {
        // The signal may outlive the call, so its listener holds the body only weakly.
        const weak = new WeakRef(controller);
        aborted = () => {
          if (!finish()) return;
          weak.deref()?.error(signal?.reason);
          source.cancel();
        };
        if (signal?.aborted === true) aborted();
        else signal?.addEventListener("abort", aborted, { once: true });
      },
      pull: async (controller) => {
        const exit = await source.read();
        if (over) return;
        if (Exit.isSuccess(exit) && exit.value !== undefined) {
          for (const chunk of exit.value) controller.enqueue(chunk);
          return;
        }
        finish();
        if (Exit.isSuccess(exit)) controller.close();
        else controller.error(errorOf(Cause.squash(exit.cause)));
        source.close();
      },
      cancel: () => {
        if (finish()) source.cancel();
      },
    },
    { highWaterMark: 0 },
  );
  if (!over) unread.register(stream, source.cancel, source);
  return stream;
};

/** A garbage-collected body cannot be read any more, so its run is cancelled. A plain fetch closes the socket in the same case. */
const unread = new FinalizationRegistry<() => void>((cancel) => cancel());

const responseOf = (head: RelayHead, url: string, body: ReadableStream | null): Response => {
  const headers = head.headers.map(([name, value]): [string, string] => [name, value]);
  const response = new Response(body, { status: head.status, statusText: head.statusText, headers });
  // A constructed response has an empty `url`, but clients print it.
  Object.defineProperty(response, "url", { value: url });
  return response;
};

/** Statuses whose responses have no body (Fetch standard, 2.2.3). */
const bodyless: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);
