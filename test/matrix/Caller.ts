/**
 * Plays the program around a run: it shows parts, discards them and runs calls.
 */
import { Effect } from "effect";
import type { Part } from "../../src/provider/Protocols.ts";
import type { RunEvent } from "../../src/runtime/contract/RunEvent.ts";
import type { Cell } from "./Cell.ts";
import type { Gate } from "./Gate.ts";
import { type Call, callsIn, type Handlers } from "./Handlers.ts";
import { Transcript } from "./Transcript.ts";

export class Caller {
  readonly transcript = new Transcript();
  /** The attempt that parts currently come from. */
  attempt = 0;
  readonly #cell: Cell;
  readonly #handlers: Handlers;
  readonly #gate: Gate;
  readonly #io: Effect.Effect<void>;
  #calls: ReadonlyArray<Call> = [];

  /** @param io work that the caller does for every part that shows something */
  constructor(cell: Cell, handlers: Handlers, gate: Gate, io: Effect.Effect<void>) {
    this.#cell = cell;
    this.#handlers = handlers;
    this.#gate = gate;
    this.#io = io;
  }

  /** Handles an event of `run`. */
  event(event: RunEvent<Part>): Effect.Effect<void> {
    this.transcript.apply(event);
    switch (event._tag) {
      case "Part":
        return this.#handed(event.part, event.calls ?? []);
      case "AttemptDiscarded":
        this.#calls = this.#calls.filter((call) => call.attempt !== event.attempt);
        return Effect.void;
      case "RunCompleted":
        return this.completed;
      default:
        return Effect.void;
    }
  }

  /** Handles a part of `parts`, which does not name its attempt. */
  part(part: Part): Effect.Effect<void> {
    this.transcript.show(part);
    return this.#handed(part, callsIn(part, this.#cell.name, this.attempt));
  }

  get completed(): Effect.Effect<void> {
    return Effect.suspend(() => this.#handlers.completed(this.#calls));
  }

  #handed(part: Part, calls: ReadonlyArray<Call>): Effect.Effect<void> {
    this.#calls = [...this.#calls, ...calls];
    const shows = part.observation.shows !== "nothing";
    return (shows ? this.#io : Effect.void).pipe(
      Effect.andThen(this.#handlers.handed(calls)),
      Effect.andThen(Effect.sync(() => this.#gate.handed())),
    );
  }
}
