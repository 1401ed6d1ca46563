/**
 * Plays one cell with its own fault server on a real socket, the real client, the processor and a caller.
 */
import { type Context, Duration, Effect, type Exit, Layer, Random, References, Stream } from "effect";
import { ProviderClient, type ProviderRequest } from "../../src/client/index.ts";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import type { Part, ProtocolId } from "../../src/provider/Protocols.ts";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import type { RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { ProcessorConfig, StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import type { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import { FaultProvider, type RequestLog } from "../../src/testing/index.ts";
import { protocols } from "../client/Protocols.ts";
import { Caller } from "./Caller.ts";
import type { Cell } from "./Cell.ts";
import { Gate } from "./Gate.ts";
import * as Handlers from "./Handlers.ts";

/** Maximum wait of a decision for handlers in cells with a hanging one, in milliseconds. */
export const drainMs = 60;

/** Maximum time until the server notices that its last client has left, in milliseconds. */
const serverEndsMs = 5_000;

/** Maximum duration of a cell, in milliseconds: a run that hangs fails its cell and does not stop the matrix. */
const cellMs = 30_000;

/** The observed outcome of a cell. */
export interface Outcome {
  readonly exit: Exit.Exit<void, RunInterrupted | string>;
  readonly text: string;
  readonly reasoning: string;
  /** The inputs with which tool handlers ran, in order. */
  readonly inputs: ReadonlyArray<string>;
  readonly incidents: ReadonlyArray<RunIncident>;
  readonly record: RunRecord | undefined;
  /** The server's requests of this run. */
  readonly log: ReadonlyArray<RequestLog>;
  /** True if a break reached its maximum wait for the caller. */
  readonly gateMissed: boolean;
}

/** The two processors that cells run on: one waits for handlers without limit, one for `drainMs`. */
export interface Processors {
  readonly patient: Context.Context<StreamProcessor | ToolGuard | RunRecorder>;
  readonly hasty: Processors["patient"];
}

const processor = StreamProcessor.layer.pipe(
  Layer.provideMerge(Layer.merge(RunRecorder.layerMemory({ runsMax: 50_000 }), UserDecisions.layerHeadless())),
);

/** Builds the processors in the caller's scope. */
export const processors = Effect.gen(function* () {
  const patient = yield* Layer.build(Layer.fresh(processor));
  const hasty = yield* Layer.build(Layer.fresh(processor)).pipe(Effect.provideService(ProcessorConfig, { drainMs }));
  return { patient, hasty };
});

/** Without jitter every wait is as short as possible, and none is random. */
const noJitter = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 };

export const play = (cell: Cell, { hasty, patient }: Processors): Effect.Effect<Outcome> =>
  Effect.scoped(playCell(cell)).pipe(
    Effect.provideService(Random.Random, noJitter),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provideContext(cell.tools.runtime?.handling === "hanging" ? hasty : patient),
    Effect.orDie,
  );

const playCell = Effect.fnUntraced(function* (cell: Cell) {
  const gate = new Gate(cell);
  // The wall clock, because dates in a Retry-After header count from it.
  const nowMs = Date.now();
  const warm = cell.warmUp === true;
  const answers = [...cell.answers(nowMs)];
  const server = yield* FaultProvider.make({
    script: { answers, scripts: { slow: [{ head_delay_ms: cell.callerMs ?? 0 }] }, after: "repeat" },
    beforeBreak: gate.beforeBreak,
  });
  const client = yield* ProviderClient.make(warm ? { connections: 1 } : {});
  if (warm) yield* Stream.runDrain(request(cell, client, server, undefined));
  const before = (yield* server.log).length;
  const handlers = yield* Handlers.make(cell, server, gate);
  const caller = new Caller(cell, handlers, gate, slowIo(cell, client, server));
  const service = yield* StreamProcessor;
  const options = optionsOf(cell, client, server, handlers, caller, gate);
  const running =
    cell.mode === "parts"
      ? Effect.andThen(
          Stream.runForEach(service.parts(options), (part) => caller.part(part)),
          caller.completed,
        )
      : Stream.runForEach(service.run(options), (event) => caller.event(event));
  const exit = yield* running.pipe(
    Effect.timeoutOrElse({ duration: Duration.millis(cellMs), orElse: () => Effect.fail("the run hangs") }),
    Effect.exit,
  );
  yield* Effect.timeoutOption(
    server.until((rows) => (rows.every((row) => row.outcome !== "open") ? rows : undefined)),
    Duration.millis(serverEndsMs),
  );
  const recorder = yield* RunRecorder;
  const { reasoning, text } = caller.transcript;
  return {
    exit,
    text,
    reasoning,
    inputs: [...handlers.inputs],
    incidents: yield* recorder.incidents(cell.name),
    record: yield* recorder.run(cell.name),
    log: (yield* server.log).slice(before).filter((row) => row.script === ""),
    gateMissed: gate.missed,
  } satisfies Outcome;
});

/** A slow request that a slow caller makes for each part. */
const slowIo = (
  cell: Cell,
  client: ProviderClient["Service"],
  server: FaultProvider["Service"],
): Effect.Effect<void> =>
  cell.callerMs === undefined
    ? Effect.void
    : Effect.orDie(
        Stream.runDrain(send(cell.protocol, client, { url: server.endpoint(cell.protocol, "slow"), body: {} })),
      );

const optionsOf = (
  cell: Cell,
  client: ProviderClient["Service"],
  server: FaultProvider["Service"],
  handlers: Handlers.Handlers,
  caller: Caller,
  gate: Gate,
): RunOptions<Part, unknown, never> => {
  const open = (attempt: AttemptContext) => {
    gate.begun();
    caller.attempt = attempt.attempt;
    // Arrays pass unchanged: parts that arrived together must reach the processor together.
    const watched = Stream.mapArray(request(cell, client, server, attempt), (parts) => {
      for (const part of parts) gate.decoded(part);
      return parts;
    });
    return Stream.ensuring(
      watched,
      Effect.sync(() => gate.ended()),
    );
  };
  return {
    runId: cell.name,
    // Each cell has its own provider, so that no cell waits for the throttle of others.
    provider: { id: cell.name, model: "fault-model", reasoning: false },
    // Each cell has its own path: a later server may get the port of an earlier one, whose announced cooldown is still in force.
    path: cell.name,
    tools: handlers.exposed,
    attempt: open,
    observe: (part) => part.observation,
    reveal: cell.mode === "on_complete" ? "on_complete" : "live",
    ...(cell.tools.canContinue === true ? { canContinue: open } : {}),
    ...(cell.clocks === undefined ? {} : { clocks: cell.clocks }),
    ...(cell.emptyIsFailure === undefined ? {} : { emptyIsFailure: cell.emptyIsFailure }),
    ...(cell.canRefresh === true ? { refreshCredentials: Effect.void } : {}),
  };
};

/** Opens one request. A continuation includes the settled calls, so the judge sees a different request. */
const request = (
  cell: Cell,
  client: ProviderClient["Service"],
  server: FaultProvider["Service"],
  attempt: AttemptContext | undefined,
): Stream.Stream<Part, unknown> => {
  const body = {
    model: "fault-model",
    stream: true,
    ...(attempt?.request === "continue" ? { settled: attempt.calls } : {}),
    ...(attempt === undefined ? { warm: true } : {}),
  };
  return send(cell.protocol, client, {
    url: server.endpoint(cell.protocol),
    body,
    ...(cell.choices === undefined ? {} : { tolerance: { choices: cell.choices } }),
    ...(attempt === undefined ? {} : { delivery: attempt.delivery, bytes: attempt.bytes }),
  });
};

const send = (
  protocol: ProtocolId,
  client: ProviderClient["Service"],
  request: Omit<ProviderRequest<unknown>, "protocol">,
): Stream.Stream<Part, unknown> => client.stream({ protocol: protocols[protocol], ...request });
