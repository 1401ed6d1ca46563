/**
 * Runs one worker of `serve --workers`: a gateway whose supervisor controls its start, configuration and end.
 *
 * The worker has a separate entry point, so that no option and no secret of the supervisor appears in a process's arguments.
 * WorkerControl.ts defines the messages between worker and supervisor.
 *
 * A terminal sends its signals to a whole process group, including the workers. Only the supervisor acts on them, so a worker ignores
 * SIGINT and SIGHUP. SIGTERM drains a worker, so that it can be replaced individually; a second SIGTERM ends it at once.
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
  References,
  Result,
  Schema,
} from "effect";
import { type ProgramOptions, shareOf } from "../../gateway/config/ProgramOptions.ts";
import { Gateway } from "../../gateway/Gateway.ts";
import * as GatewayLog from "../../gateway/log/GatewayLog.ts";
import * as Generation from "./Generation.ts";
import { setHeap } from "./HeapSettings.ts";
import * as ProgramWire from "./ProgramWire.ts";
import { describeRefusal, startGateway } from "./Start.ts";
import { channelOver, SupervisorMessage, type WorkerMessage } from "./WorkerControl.ts";

type Start = Extract<SupervisorMessage, { readonly _tag: "Start" }>;
type Configure = Extract<SupervisorMessage, { readonly _tag: "Configure" }>;

const channel = channelOver<WorkerMessage>(process);
const started = Deferred.makeUnsafe<Start>();
const configured = Effect.runSync(Queue.unbounded<Configure>());
const ended = Effect.runSync(Queue.unbounded<string>());

const decode = Schema.decodeUnknownResult(SupervisorMessage);

/** Runs the gateway. The log is closed last. */
const runGateway = (start: Start, program: ProgramOptions): Effect.Effect<never, Refused> =>
  Effect.gen(function* () {
    const { worker: self, workers } = start;
    yield* Generation.publish(start.generation);
    const place = {
      ...{ process: start.process, self, workers, folder: start.folder ?? undefined },
      ended: Queue.take(ended),
      onRecovered: (name: string) => void channel.order({ _tag: "Recovered", process: name }),
    };
    const gateway = Context.get(yield* startGateway(shareOf(program, workers), place), Gateway);
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
    // The log level comes from the supervisor's own settings.
    Effect.provideService(References.MinimumLogLevel, start.logLevel as LogLevel.LogLevel),
    Effect.catchTags({
      GatewayError: ({ message }) => Effect.fail(new Refused({ message, mayPass: false })),
      ClientConfigError: ({ message }) => Effect.fail(new Refused({ message, mayPass: false })),
      RecorderError: (error) => Effect.fail(new Refused(describeRefusal(error))),
    }),
  );

class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String, mayPass: Schema.Boolean }) {}

/** Returns the number of requests in flight; 0 before the gateway serves. */
let tellServing = (): number => 0;

/** Applies options. The supervisor has checked them before, so that either all workers accept them or none does. */
const configure = (
  { generation, program }: Configure,
  workers: number,
  gateway: Gateway["Service"],
): Effect.Effect<void> =>
  gateway.configure(shareOf(ProgramWire.decode(program), workers)).pipe(
    Effect.andThen(Generation.publish(generation)),
    Effect.catchTag("GatewayError", ({ message }) => Effect.logError(`the configuration was rejected: ${message}`)),
    Effect.andThen(Effect.sync(() => channel.order({ _tag: "Configured", generation }))),
  );

const fiber = Effect.runFork(
  Effect.flatMap(Deferred.await(started), (start) => runGateway(start, ProgramWire.decode(start.program))).pipe(
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
  // Exits only after the supervisor has received the reason.
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

const handleMessage = (message: SupervisorMessage): void => {
  if (message._tag === "Start") Deferred.doneUnsafe(started, Effect.succeed(message));
  else if (message._tag === "Configure") Queue.offerUnsafe(configured, message);
  else if (message._tag === "Ping") channel.order({ _tag: "Pong" });
  else if (message._tag === "Ended") Queue.offerUnsafe(ended, message.process);
  else drain();
};

process.on("message", (message) => {
  const read = decode(message);
  if (Result.isSuccess(read)) handleMessage(read.success);
});

let isTold = false;
process.on("SIGTERM", () => {
  if (isTold) process.exit(128 + constants.signals.SIGTERM);
  isTold = true;
  drain();
});
process.on("SIGINT", () => undefined);
process.on("SIGHUP", () => undefined);

// The reader of the log is gone. This worker reacts to the end of its supervisor instead.
process.stderr.on("error", () => undefined);

cluster.worker?.on("disconnect", () => {
  // Without this, node:cluster would end the process here and break the responses of its clients.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  drain();
});

setHeap();
channel.order({ _tag: "Hello", answers: true });
