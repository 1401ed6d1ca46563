/**
 * Defines the messages between a supervisor and a worker about the worker's start, configuration and end.
 *
 * The life of a worker:
 *
 * 1. `Hello`: it listens to its pipe. The supervisor sends `Start`.
 * 2. `Ready`: it listens on the port. Or `Refused`: it cannot, and ends.
 * 3. `Configure` after each reload of the configuration, answered by `Configured`. `Ended` after a sibling has died: the worker recovers
 *    the sibling's runs, then sends `Recovered`.
 * 4. `Ping` two seconds after each `Pong`. A serving worker that stops answering hangs, and is killed.
 * 5. `Drain`: it refuses new requests, sends `Draining`, and ends after the requests in flight.
 *
 * A worker whose supervisor is gone drains, too.
 */
import { Schema } from "effect";

/** One end of the pipe: `process` in a worker, the worker's process in the supervisor. */
interface Pipe {
  readonly connected: boolean;
  send?(message: unknown, handle: undefined, options: undefined, sent: (error: Error | null) => void): boolean;
}

/** Sends messages to the other end of the pipe. */
export interface Channel<Message> {
  /** Sends a message. A failure is ignored, because the exit of the other end is noticed separately. */
  readonly order: (message: Message) => void;
}

/** Creates a channel over a pipe. */
export const channelOver = <Message>(pipe: Pipe): Channel<Message> => ({
  order: (message) => {
    if (pipe.connected) pipe.send?.(message, undefined, undefined, () => undefined);
  },
});

/** Messages from the supervisor. */
export const SupervisorMessage = Schema.Union([
  Schema.TaggedStruct("Start", {
    worker: Schema.Int,
    workers: Schema.Int,
    /** Name of this process in the store. After the process dies, another worker uses the name to take over its runs. */
    process: Schema.String,
    /** Folder for the sockets of all workers, which no other user can enter; null if it could not be created. */
    folder: Schema.NullOr(Schema.String),
    /** Options as encoded by `ProgramWire`. */
    program: Schema.Unknown,
    generation: Schema.Int,
    logLevel: Schema.String,
  }),
  Schema.TaggedStruct("Configure", { generation: Schema.Int, program: Schema.Unknown }),
  Schema.TaggedStruct("Ended", { process: Schema.String }),
  Schema.TaggedStruct("Ping", {}),
  Schema.TaggedStruct("Drain", {}),
]);
export type SupervisorMessage = typeof SupervisorMessage.Type;

/** Messages from a worker. */
export const WorkerMessage = Schema.Union([
  Schema.TaggedStruct("Hello", {
    /**
     * True if the worker answers pings. The program on disk may be another version than the supervisor, and older versions do not answer.
     */
    answers: Schema.optionalKey(Schema.Boolean),
  }),
  Schema.TaggedStruct("Ready", { url: Schema.String }),
  Schema.TaggedStruct("Refused", {
    message: Schema.String,
    /** True if the store caused the refusal, so that the next start may succeed. */
    mayPass: Schema.optionalKey(Schema.Boolean),
  }),
  Schema.TaggedStruct("Configured", { generation: Schema.Int }),
  Schema.TaggedStruct("Recovered", { process: Schema.String }),
  Schema.TaggedStruct("Pong", {}),
  Schema.TaggedStruct("Draining", { serving: Schema.Int }),
]);
export type WorkerMessage = typeof WorkerMessage.Type;
