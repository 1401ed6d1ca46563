/**
 * Starts one worker of `serve --workers`: a gateway whose supervisor says how it starts, what its configuration is and when it ends.
 *
 * It is an entry of its own, so that no option and no secret of the supervisor is repeated in the arguments of a process. What the two
 * say to each other stands in WorkerControl.ts.
 *
 * A signal of a terminal reaches a whole group of processes, the workers too. The supervisor is the one that acts on it: a worker
 * leaves SIGINT and SIGHUP alone. SIGTERM drains a worker, so that one can be replaced by itself; a second one ends it at once.
 */
import cluster from "node:cluster";
import { constants } from "node:os";
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Exit,
  Logger,
  type LogLevel,
  Queue,
  Redacted,
  References,
  Result,
  Schema,
} from "effect";
import * as CredentialDigest from "../../client/CredentialDigest.ts";
import { type ProgramOptions, shareOf } from "../../gateway/config/ProgramOptions.ts";
import { Gateway } from "../../gateway/Gateway.ts";
import * as GatewayLog from "../../gateway/log/GatewayLog.ts";
import type { BusEnvelope } from "../../gateway/workers/BusEnvelope.ts";
import { ProcessChannel } from "../../gateway/workers/ProcessChannel.ts";
import { sharedKey } from "../../gateway/workers/SharedKey.ts";
import * as WorkerBus from "../../gateway/workers/WorkerBus.ts";
import { SupervisorMessage, type WorkerMessage } from "../../gateway/workers/WorkerControl.ts";
import { setHeap } from "./HeapSettings.ts";
import * as ProgramWire from "./ProgramWire.ts";
import { built, refusalOf } from "./Start.ts";

type Start = Extract<SupervisorMessage, { readonly _tag: "Start" }>;
type Configure = Extract<SupervisorMessage, { readonly _tag: "Configure" }>;

const channel = new ProcessChannel<WorkerMessage>(process);
const started = Deferred.makeUnsafe<Start>();
const configured = Effect.runSync(Queue.unbounded<Configure>());
const ended = Effect.runSync(Queue.unbounded<string>());
/** The supervisor lets a worker join the bus once it is ready, so that nothing comes before there is one. */
let receive = (_: BusEnvelope): void => undefined;

const decode = Schema.decodeUnknownResult(SupervisorMessage);

/** The gateway, as long as it serves: its log ends behind it. */
const serving = (start: Start, program: ProgramOptions): Effect.Effect<never, Refused> =>
  Effect.gen(function* () {
    const secret = Redacted.make(start.secret);
    const { worker: self, workers } = start;
    CredentialDigest.keyedBy(sharedKey(secret, "credential"));
    const end = yield* WorkerBus.make(
      { self, workers, secret, folder: start.folder ?? undefined },
      { send: (envelope) => channel.send({ _tag: "Bus", envelope }) },
    );
    receive = end.receive;
    const recovery = {
      process: start.process,
      ended: Queue.take(ended),
      recovered: (name: string) => void channel.order({ _tag: "Recovered", process: name }),
    };
    const services = yield* built(shareOf(program, workers), recovery).pipe(
      Effect.provideService(WorkerBus.WorkerBus, end.bus),
    );
    const gateway = Context.get(services, Gateway);
    tellServing = () => Effect.runSync(gateway.serving);
    yield* Effect.forkScoped(
      Effect.forever(Effect.flatMap(Queue.take(configured), (it) => configure(it, workers, gateway))),
    );
    channel.order({ _tag: "Ready", url: gateway.url });
    return yield* Effect.never;
  }).pipe(
    Effect.scoped,
    Effect.provide(GatewayLog.layer(program.logFormat ?? "text")),
    Effect.annotateLogs({ worker: start.worker }),
    // The level is a level of the supervisor's own log.
    Effect.provideService(References.MinimumLogLevel, start.logLevel as LogLevel.LogLevel),
    Effect.catchTags({
      GatewayError: ({ message }) => Effect.fail(new Refused({ message, mayPass: false })),
      ClientConfigError: ({ message }) => Effect.fail(new Refused({ message, mayPass: false })),
      RecorderError: (error) => Effect.fail(new Refused(refusalOf(error))),
    }),
  );

/** It cannot start. */
class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String, mayPass: Schema.Boolean }) {}

/** How many requests are served; none before it serves. */
let tellServing = (): number => 0;

const configure = ({ id, program }: Configure, workers: number, gateway: Gateway["Service"]): Effect.Effect<void> => {
  const next: ProgramOptions = shareOf(ProgramWire.decode(program), workers);
  return gateway.configure(next).pipe(
    Effect.map((restarts) => ({ restarts })),
    Effect.catchTag("GatewayError", ({ message }) => Effect.succeed({ restarts: [], wrong: message })),
    Effect.flatMap((said) => Effect.sync(() => channel.order({ _tag: "Configured", id, ...said }))),
    Effect.asVoid,
  );
};

const fiber = Effect.runFork(
  Effect.flatMap(Deferred.await(started), (start) => serving(start, ProgramWire.decode(start.program))).pipe(
    Effect.provideService(Logger.LogToStderr, true),
  ),
);

fiber.addObserver((exit) => {
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return process.exit(0);
  const refused = Cause.findErrorOption(exit.cause);
  if (refused._tag === "None") {
    process.stderr.write(`${Cause.pretty(exit.cause)}\n`);
    return process.exit(1);
  }
  // Its end waits until the supervisor has read why.
  const { mayPass, message } = refused.value;
  process.send?.({ _tag: "Refused", message, mayPass } satisfies WorkerMessage, () => process.exit(2));
});

let isDraining = false;
const drain = (): void => {
  if (isDraining) return;
  isDraining = true;
  channel.order({ _tag: "Draining", serving: tellServing() });
  fiber.interruptUnsafe(fiber.id, Context.empty());
};

const obey = (message: SupervisorMessage): void => {
  if (message._tag === "Bus") receive(message.envelope);
  else if (message._tag === "Start") Deferred.doneUnsafe(started, Effect.succeed(message));
  else if (message._tag === "Configure") Queue.offerUnsafe(configured, message);
  else if (message._tag === "Ping") channel.order({ _tag: "Pong" });
  else if (message._tag === "Ended") Queue.offerUnsafe(ended, message.process);
  else drain();
};

process.on("message", (message) => {
  const read = decode(message);
  if (Result.isSuccess(read)) obey(read.success);
});

let isTold = false;
process.on("SIGTERM", () => {
  if (isTold) process.exit(128 + constants.signals.SIGTERM);
  isTold = true;
  drain();
});
process.on("SIGINT", () => undefined);
process.on("SIGHUP", () => undefined);

// The log has lost its reader. That is told by the supervisor's own end, not by this one's.
process.stderr.on("error", () => undefined);

cluster.worker?.on("disconnect", () => {
  // Otherwise node:cluster ends the process here, and what its clients read with it.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  drain();
});

setHeap();
channel.order({ _tag: "Hello", answers: true });
