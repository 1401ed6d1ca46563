/**
 * Holds a break back until its caller has come as far as the cell says, so that no outcome in the matrix depends on timing.
 */
import { Deferred, Duration, Effect } from "effect";
import type { Part } from "../../src/provider/Protocols.ts";
import type { RequestLog } from "../../src/testing/index.ts";
import type { Cell } from "./Cell.ts";

/** Maximum wait for a caller, in milliseconds. A cell that reaches it has failed. */
export const gateMs = 5_000;

/** Tracks the progress of a cell's client and caller, and the fibers that wait for it. */
export class Gate {
  readonly #cell: Cell;
  readonly #waiting = new Set<() => void>();
  #decoded = 0;
  #decodedSerials = new Set<string>();
  #handed = 0;
  #tool: "none" | "started" | "settled" = "none";
  readonly #over = Deferred.makeUnsafe<void>();
  /** True if a break reached its maximum wait for the caller. */
  missed = false;

  constructor(cell: Cell) {
    this.#cell = cell;
  }

  /** Called when a new attempt begins: its events are counted from zero. */
  begun(): void {
    this.#decoded = 0;
    this.#handed = 0;
  }

  /** Called when the client's stream of an attempt has ended in any way. */
  ended(): void {
    // One turn of the event loop later the run knows it, too.
    setImmediate(() => Deferred.doneUnsafe(this.#over, Effect.void));
  }

  /** Waits until the run knows that its first attempt has ended. */
  get over(): Effect.Effect<void> {
    return Deferred.await(this.#over);
  }

  decoded(part: Part): void {
    this.#decoded += 1;
    for (const [serial] of part.event.data.matchAll(/r\d+\.\d+·/g)) this.#decodedSerials.add(serial);
    this.#look();
  }

  handed(): void {
    this.#handed += 1;
    this.#look();
  }

  tool(state: "started" | "settled"): void {
    this.#tool = state;
    this.#look();
  }

  /** Waits until the break may happen; `FaultProvider` calls it. */
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
