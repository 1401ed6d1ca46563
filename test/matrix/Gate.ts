/**
 * Holds a break back until its caller has come as far as the cell says, so that nothing in the matrix rests on luck.
 */
import { Deferred, Duration, Effect } from "effect";
import type { Part } from "../../src/provider/Protocols.ts";
import type { RequestLog } from "../../src/testing/index.ts";
import type { Cell } from "./Cell.ts";

/** Longest wait for a caller, in milliseconds; a cell that needs it is a failed cell. */
export const gateMs = 5_000;

/** What the client and the caller of a cell have seen, and which fibers wait for them. */
export class Gate {
  readonly #cell: Cell;
  readonly #waiting = new Set<() => void>();
  #decoded = 0;
  #decodedSerials = new Set<string>();
  #handed = 0;
  #tool: "none" | "started" | "settled" = "none";
  readonly #over = Deferred.makeUnsafe<void>();
  /** A break did not wait for its caller any longer. */
  missed = false;

  constructor(cell: Cell) {
    this.#cell = cell;
  }

  /** A new attempt begins: its events are counted anew. */
  begun(): void {
    this.#decoded = 0;
    this.#handed = 0;
  }

  /** The client's stream of an attempt has ended, however it did. */
  ended(): void {
    // A turn of the event loop later the run has been told, too.
    setImmediate(() => Deferred.doneUnsafe(this.#over, Effect.void));
  }

  /** Waits until the run has been told that its first attempt has ended. */
  get over(): Effect.Effect<void> {
    return Deferred.await(this.#over);
  }

  /** The client has decoded a part. */
  decoded(part: Part): void {
    this.#decoded += 1;
    for (const [serial] of part.event.data.matchAll(/r\d+\.\d+·/g)) this.#decodedSerials.add(serial);
    this.#look();
  }

  /** The caller was handed a part. */
  handed(): void {
    this.#handed += 1;
    this.#look();
  }

  /** A handler of the first request is at work, or has settled. */
  tool(state: "started" | "settled"): void {
    this.#tool = state;
    this.#look();
  }

  /** For FaultProvider: waits until the break may happen. */
  readonly beforeBreak = (row: RequestLog): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (this.#open(row)) return Effect.void;
      const opened = Deferred.makeUnsafe<void>();
      const look = () => {
        if (this.#open(row)) Deferred.doneUnsafe(opened, Effect.void);
      };
      this.#waiting.add(look);
      return Deferred.await(opened).pipe(
        Effect.timeoutOption(Duration.millis(gateMs)),
        Effect.tap((found) => Effect.sync(() => (this.missed ||= found._tag === "None"))),
        Effect.asVoid,
        Effect.ensuring(Effect.sync(() => this.#waiting.delete(look))),
      );
    });

  #look(): void {
    for (const look of this.#waiting) look();
  }

  #open(row: RequestLog): boolean {
    if (![...row.text, ...row.reasoning].every((serial) => this.#decodedSerials.has(serial))) return false;
    const { mode, reached } = this.#cell;
    if (reached === undefined || row.number !== 1) return true;
    const seen = mode === "live" ? Math.min(this.#decoded, this.#handed) : this.#decoded;
    if (seen < reached.events) return false;
    return reached.tool === undefined || this.#tool === reached.tool || this.#tool === "settled";
  }
}
