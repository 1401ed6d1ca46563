/**
 * Starts one worker process, and tells what it says of itself.
 */
import cluster, { type Worker } from "node:cluster";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Deferred, Effect, Result, Schema } from "effect";
import { ProcessChannel } from "../../gateway/workers/ProcessChannel.ts";
import { type SupervisorMessage, WorkerMessage } from "../../gateway/workers/WorkerControl.ts";
import { Pulse } from "./Pulse.ts";

/** The entry of a worker: beside this file, as a source or as built. */
const entry = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "./WorkerMain.ts" : "./WorkerMain.js", import.meta.url),
);

/**
 * Says how workers start and share the port. They inherit the flags of Node's command line.
 *
 * They listen to one socket that the supervisor has opened (SCHED_NONE), and the kernel gives a connection to a worker that waits
 * for one. Measured in two rounds of 1,800 connections on two cores, beside the other two ways: the supervisor used 2 ms of CPU, as with
 * `reusePort` (183 and 185 where it accepts and hands each connection over, SCHED_RR). The p99 of short requests was 20.4 and 20.5 ms
 * (20.9 and 30.9 by SCHED_RR, 28.8 and 30.8 by `reusePort`). Connections were spread 902 : 898 and 794 : 1006, as one that is
 * busy takes none. It also loses nothing when a worker dies: with `reusePort` each has a queue of its own, whose connections are
 * reset with it, and two gateways could take the same port without a word.
 */
export const prepare: Effect.Effect<void> = Effect.sync(() => {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({
    exec: entry,
    args: [],
    // Bytes need no encoding, and options keep what JSON has no word for.
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
});

/** How a worker ended. */
export interface WorkerEnd {
  /** `exit code 1` or the name of a signal. */
  readonly how: string;
  /** By itself, and with exit code 0. */
  readonly isClean: boolean;
  /** Why it could not start, in its own words. */
  readonly refused: Refusal | undefined;
}

/** Why a worker could not start. */
export interface Refusal {
  readonly message: string;
  /** Its store is the reason, and may be there at the next start. */
  readonly mayPass: boolean;
}

/** A worker process. */
export interface WorkerProcess {
  /** 1 and up; its replacement has the same. */
  readonly worker: number;
  readonly pid: number | undefined;
  /** Its name in the store. */
  readonly process: string;
  readonly channel: ProcessChannel<SupervisorMessage>;
  /** Whether it answers pings, once it says hello. */
  readonly hello: Deferred.Deferred<boolean>;
  /** Its URL, once it listens. */
  readonly ready: Deferred.Deferred<string>;
  /** The requests that it finishes. */
  readonly draining: Deferred.Deferred<number>;
  readonly exited: Deferred.Deferred<WorkerEnd>;
  /** Whether it answers. */
  readonly pulse: Pulse;
  readonly kill: () => void;
}

/** What a worker says besides, to its supervisor. */
export type Heard = Extract<WorkerMessage, { readonly _tag: "Configured" | "Recovered" | "Bus" }>;

const decode = Schema.decodeUnknownResult(WorkerMessage);

/** Starts it. */
export const fork = (worker: number, heard: (message: Heard) => void): WorkerProcess => {
  const handle: Worker = cluster.fork();
  const started: WorkerProcess = {
    worker,
    pid: handle.process.pid,
    process: randomUUID(),
    channel: new ProcessChannel<SupervisorMessage>(handle.process),
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
    else if (message._tag === "Pong") started.pulse.answered();
    else if (message._tag === "Refused") refused = { message: message.message, mayPass: message.mayPass === true };
    else heard(message);
  });
  // Node tells of a process that could not be started by this event alone.
  handle.on("error", (error) => {
    Deferred.doneUnsafe(started.exited, Effect.succeed({ how: error.message, isClean: false, refused }));
  });
  handle.on("exit", (code, signal) => {
    // node:cluster gives no signal as an empty one.
    const how = signal ? String(signal) : `exit code ${code}`;
    Deferred.doneUnsafe(started.exited, Effect.succeed({ how, isClean: code === 0 && !signal, refused }));
  });
  return started;
};
