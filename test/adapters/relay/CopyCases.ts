/**
 * Plays both ends of a copied response: a provider whose bytes are polled, and a socket that must drain.
 */
import { Effect } from "effect";
import type { RelayedResponse, RelaySink } from "../../../src/adapters/relay/Relay.ts";
import type {
  Arrivals,
  Coming,
  PolledHead,
  RelayHead,
  RelayTransport,
} from "../../../src/adapters/relay/RelayTransport.ts";
import type { Polled } from "../../../src/runtime/attempt/AsyncSource.ts";
import { shown } from "./RelayCases.ts";

type Chunk = Uint8Array<ArrayBuffer>;

/**
 * The same transport, whose heads and bodies are polled.
 *
 * @param taken told of the bytes of the body that are taken
 */
export const polled = (transport: RelayTransport, taken?: (bytes: number) => void): RelayTransport => ({
  open: (request, reporters) => {
    const exchange = transport.open(request, reporters);
    return { ...exchange, coming: comingOf(exchange.head), arrivals: () => arrivalsOf(exchange.read, taken) };
  },
});

const comingOf = (head: () => Promise<RelayHead>): Coming => {
  let polled: PolledHead;
  let wake: (() => void) | undefined;
  const came = (found: PolledHead) => {
    polled = found;
    wake?.();
  };
  head().then(
    (found) => came({ _tag: "head", head: found }),
    (error: unknown) => came({ _tag: "error", error }),
  );
  return {
    pollHead: () => polled,
    wait: (then) => {
      wake = then;
    },
  };
};

const arrivalsOf = (
  read: () => Promise<ReadonlyArray<Chunk> | undefined>,
  taken?: (bytes: number) => void,
): Arrivals => {
  const ready: Array<Exclude<Polled<Chunk>, undefined>> = [];
  let wake: (() => void) | undefined;
  const came = (polled: Exclude<Polled<Chunk>, undefined>) => {
    ready.push(polled);
    const waiting = wake;
    wake = undefined;
    // As over a socket, whose bytes are handed over once they were all parsed.
    setImmediate(() => waiting?.());
  };
  const reading = async () => {
    for (;;) {
      const chunks = await read();
      const [first, ...rest] = chunks ?? [];
      if (first === undefined) return came({ _tag: "end" });
      came({ _tag: "chunk", chunk: [first, ...rest] });
    }
  };
  reading().catch((error: unknown) => came({ _tag: "error", error }));
  return {
    poll: () => {
      const polled = ready.shift();
      if (polled?._tag === "chunk") taken?.(polled.chunk.reduce((sum, bytes) => sum + bytes.byteLength, 0));
      return polled;
    },
    wait: (then) => {
      wake = then;
      if (ready.length > 0) setImmediate(then);
    },
  };
};

/** The socket of a client: what it has taken, and whether it must drain. */
export class Socket implements RelaySink {
  text = "";
  writes = 0;
  response: RelayedResponse | undefined;
  /** Bytes that were written while it had to drain. */
  overrun = 0;
  #isFull = false;
  readonly #waiting = new Set<() => void>();
  readonly #isFullBehind: (socket: Socket) => boolean;

  /** @param isFullBehind whether it must drain behind a write */
  constructor(isFullBehind: (socket: Socket) => boolean = () => false) {
    this.#isFullBehind = isFullBehind;
  }

  readonly head = (response: RelayedResponse): void => {
    this.response = response;
  };

  readonly isReady = (): boolean => !this.#isFull;

  readonly write = (bytes: ReadonlyArray<Uint8Array>): void => {
    if (this.#isFull) this.overrun += 1;
    this.writes += 1;
    this.text += shown(bytes);
    this.#isFull ||= this.#isFullBehind(this);
  };

  /** It takes no bytes from now on. */
  readonly fills = (): void => {
    this.#isFull = true;
  };

  /** It takes bytes again. */
  readonly drains = (): void => {
    this.#isFull = false;
    for (const waiting of [...this.#waiting]) waiting();
  };

  readonly drained: Effect.Effect<void> = Effect.callback((resume) => {
    const look = () => {
      if (this.#isFull) return;
      this.#waiting.delete(look);
      resume(Effect.void);
    };
    this.#waiting.add(look);
    look();
    return Effect.sync(() => void this.#waiting.delete(look));
  });
}
