/**
 * Describes what a supervisor and its workers say to each other about the worker itself: its start, its configuration, its end.
 *
 * The life of a worker:
 *
 * 1. `Hello`: it listens to its pipe. The supervisor says `Start`.
 * 2. `Ready`: it listens on the port. Or `Refused`: it cannot, and ends.
 * 3. `Configure` as often as the configuration is read again, each with a `Configured`; `Ended` where a sibling has died, whose runs
 *    it recovers, and then says `Recovered`.
 * 4. `Ping` a second after each `Pong`: one that serves and says that no more hangs, and is killed.
 * 5. `Drain`: it takes no new request, says `Draining` and ends when what runs has ended.
 *
 * A worker whose supervisor is gone drains, too.
 */
import { Schema } from "effect";
import { BusEnvelope } from "./BusEnvelope.ts";

/** What a supervisor says. */
export const SupervisorMessage = Schema.Union([
  Schema.TaggedStruct("Start", {
    /** 1 to `workers`. */
    worker: Schema.Int,
    workers: Schema.Int,
    /** The name of this process in the store, by which a sibling takes its runs over. */
    process: Schema.String,
    /** Known to all workers and to no other process. */
    secret: Schema.String,
    /** A folder of all workers, which no other user may enter; null where none could be made. */
    folder: Schema.NullOr(Schema.String),
    /** As `ProgramWire` encodes it. */
    program: Schema.Unknown,
    logLevel: Schema.String,
  }),
  Schema.TaggedStruct("Configure", { id: Schema.Int, program: Schema.Unknown }),
  Schema.TaggedStruct("Ended", { process: Schema.String }),
  Schema.TaggedStruct("Ping", {}),
  Schema.TaggedStruct("Drain", {}),
  Schema.TaggedStruct("Bus", { envelope: BusEnvelope }),
]);
export type SupervisorMessage = typeof SupervisorMessage.Type;

/** What a worker says. */
export const WorkerMessage = Schema.Union([
  Schema.TaggedStruct("Hello", {
    /** It answers pings: a worker is started from the disk, which may have another version by then. */
    answers: Schema.optionalKey(Schema.Boolean),
  }),
  Schema.TaggedStruct("Ready", { url: Schema.String }),
  Schema.TaggedStruct("Refused", {
    message: Schema.String,
    /** The store is the reason, and may be there at the next start. */
    mayPass: Schema.optionalKey(Schema.Boolean),
  }),
  Schema.TaggedStruct("Configured", {
    id: Schema.Int,
    /** The options that differ and need a restart. */
    restarts: Schema.Array(Schema.String),
    /** Why it is not taken. */
    wrong: Schema.optionalKey(Schema.String),
  }),
  Schema.TaggedStruct("Recovered", { process: Schema.String }),
  Schema.TaggedStruct("Pong", {}),
  Schema.TaggedStruct("Draining", { serving: Schema.Int }),
  /** The router reads the envelope itself. */
  Schema.TaggedStruct("Bus", { envelope: Schema.Unknown }),
]);
export type WorkerMessage = typeof WorkerMessage.Type;
