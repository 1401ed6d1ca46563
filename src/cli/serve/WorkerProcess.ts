/**
 * Starts one worker process and reports its messages.
 */
import cluster, { type Worker } from "node:cluster";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Deferred, Effect, Result, Schema } from "effect";
import { Pulse } from "./Pulse.ts";
import { type Channel, channelOver, type SupervisorMessage, WorkerMessage } from "./WorkerControl.ts";

/** Entry point of a worker, next to this file both in source and in build. */
const entry = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "./WorkerMain.ts" : "./WorkerMain.js", import.meta.url),
);

/**
 * Configures the start of workers and their shared port. They inherit the flags of Node's command line.
 *
 * The workers listen on one socket that the supervisor has opened (SCHED_NONE), and the kernel gives each connection to an idle worker. Two
 * rounds of 1,800 connections on two cores compared this with the alternatives (two figures: one per round). The supervisor used 2 ms of
 * CPU, as with `reusePort`; with SCHED_RR, where it accepts and forwards each connection, it used 183 and 185 ms. The p99 of short requests
 * was 20.4 and 20.5 ms (20.9 and 30.9 with SCHED_RR, 28.8 and 30.8 with `reusePort`). Connections were spread 902 : 898 and 794 : 1006,
 * since busy workers take none. It also loses no connection when a worker dies. With `reusePort` each worker has its own queue, whose
 * connections are reset with the worker, and two gateways could silently share a port.
 */
export const prepare: Effect.Effect<void> = Effect.sync(() => {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({
    exec: entry,
    args: [],
    // Needed for values that JSON cannot represent. It also sends bytes unencoded.
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
});

/** The end of a worker process. */
export interface WorkerEnd {
  /** `exit code 1`, or the name of a signal. */
  readonly how: string;
  /** True if it exited by itself with code 0. */
  readonly isClean: boolean;
  /** Reason why the worker could not start, as reported by the worker. */
  readonly refused: Refusal | undefined;
}

/** Reason why a worker could not start. */
export interface Refusal {
  readonly message: string;
  /** True if the store caused the failure, so that the next start may succeed. */
  readonly mayPass: boolean;
}

/** A worker process, as its supervisor sees it. */
export interface WorkerProcess {
  /** Number of the worker, from 1. A replacement has the same number. */
  readonly worker: number;
  readonly pid: number | undefined;
  readonly process: string;
  readonly channel: Channel<SupervisorMessage>;
  /** Completes when the worker has sent its `Hello`, with true if it answers pings. */
  readonly hello: Deferred.Deferred<boolean>;
  /** Completes with the worker's URL once it listens. */
  readonly ready: Deferred.Deferred<string>;
  /** Completes with the number of requests that the worker still finishes when it drains. */
  readonly draining: Deferred.Deferred<number>;
  readonly exited: Deferred.Deferred<WorkerEnd>;
  readonly pulse: Pulse;
  readonly kill: () => void;
}

/** The messages of a worker that `fork` passes to the supervisor. */
export type Heard = Extract<WorkerMessage, { readonly _tag: "Configured" | "Recovered" }>;

const decode = Schema.decodeUnknownResult(WorkerMessage);

/** Starts a worker process. `heard` receives the messages that the returned object does not report. */
export const fork = (worker: number, onMessage: (message: Heard) => void): WorkerProcess => {
  const handle: Worker = cluster.fork();
  const started: WorkerProcess = {
    worker,
    pid: handle.process.pid,
    process: randomUUID(),
    channel: channelOver<SupervisorMessage>(handle.process),
    hello: Deferred.makeUnsafe(),
    ready: Deferred.makeUnsafe(),
    draining: Deferred.makeUnsafe(),
    exited: Deferred.makeUnsafe(),
    pulse: new Pulse(),
    kill: () => void handle.process.kill("SIGKILL"),
  };
  let refused: Refusal | undefined;
  handle.on("message", (sent) => {
    const read = decode(sent);
    if (Result.isFailure(read)) return;
    const message = read.success;
    if (message._tag === "Hello") Deferred.doneUnsafe(started.hello, Effect.succeed(message.answers === true));
    else if (message._tag === "Ready") Deferred.doneUnsafe(started.ready, Effect.succeed(message.url));
    else if (message._tag === "Draining") Deferred.doneUnsafe(started.draining, Effect.succeed(message.serving));
    else if (message._tag === "Pong") started.pulse.onAnswer();
    else if (message._tag === "Refused") refused = { message: message.message, mayPass: message.mayPass === true };
    else onMessage(message);
  });
  // If the process could not be started, Node reports this event and no `exit`.
  handle.on("error", (error) => {
    Deferred.doneUnsafe(started.exited, Effect.succeed({ how: error.message, isClean: false, refused }));
  });
  handle.on("exit", (code, signal) => {
    // node:cluster reports a missing signal as an empty string.
    const how = signal ? String(signal) : `exit code ${code}`;
    Deferred.doneUnsafe(started.exited, Effect.succeed({ how, isClean: code === 0 && !signal, refused }));
  });
  return started;
};
