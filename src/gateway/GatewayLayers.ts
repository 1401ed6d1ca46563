/**
 * Assembles a gateway from its store, question handling, processor, recovery and server.
 */
import { Effect, Layer } from "effect";
import type { ClientConfigError } from "../client/ClientConfig.ts";
import { none } from "../domain/Prices.ts";
import type { Paths } from "../paths/Paths.ts";
import type { RecorderError } from "../recorder/RecorderError.ts";
import type { RunRecorder } from "../recorder/RunRecorder.ts";
import { resolveRetention } from "../recorder/retention/Retention.ts";
import * as RunStore from "../recorder/store/RunStore.ts";
import { inMemory } from "../recorder/store/RunStore.ts";
import * as Spill from "../recorder/store/Spill.ts";
import { WriteQueue } from "../recorder/WriteQueue.ts";
import { TokenPrices } from "../runtime/contract/TokenPrices.ts";
import { UserDecisions } from "../runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";
import type { ToolGuard } from "../runtime/tools/ToolGuard.ts";
import { PathBoard } from "./api/PathBoard.ts";
import * as SharedPaths from "./api/SharedPaths.ts";
import * as SharedTraffic from "./api/SharedTraffic.ts";
import { StoreHealth } from "./api/StoreHealth.ts";
import type { Traffic } from "./api/Traffic.ts";
import { GatewayError } from "./config/GatewayOptions.ts";
import { programDefaults } from "./config/Options.ts";
import { type ProgramOptions, problemOf, storeOf } from "./config/ProgramOptions.ts";
import { Gateway } from "./Gateway.ts";
import * as GatewayRecovery from "./GatewayRecovery.ts";
import type { Page } from "./proxy/PageHandler.ts";
import { TrafficMeter } from "./proxy/TrafficMeter.ts";
import { type WorkerNumber, WorkerSockets } from "./workers/WorkerSockets.ts";

/** Options of a complete gateway: server, store, questions, log and processes. */
export interface GatewayProgram extends ProgramOptions {}

/** Identity of a worker process within a gateway of several. */
export interface WorkerPlace extends GatewayRecovery.DeadSiblings, WorkerNumber {
  /** Name of this process in the store. After the process dies, a sibling uses the name to take over its runs. */
  readonly process: string;
}

/** Services that a gateway's page may use. */
export type PageServices =
  | PathBoard
  | Paths
  | RunRecorder
  | StoreHealth
  | StreamProcessor
  | ToolGuard
  | Traffic
  | TrafficMeter
  | UserDecisions;

/**
 * Provides a complete gateway. It fails with `GatewayError` for the options that `serve` refuses.
 *
 * @param page serves the gateway's own paths; without it they return 404
 * @param worker the identity of this process among several workers
 */
export const layer = (
  program: GatewayProgram,
  page?: Layer.Layer<Page, never, PageServices>,
  worker?: WorkerPlace,
): Layer.Layer<Gateway | PageServices, RecorderError | GatewayError | ClientConfigError> => {
  const problem = problemOf(program);
  if (problem !== undefined) return Layer.unwrap(Effect.fail(badOption(problem)));
  const hold = program.onQuestion === "hold";
  const leaseMs = program.leaseMs ?? programDefaults.leaseMs;
  const holdMs = program.holdMs ?? programDefaults.holdMs;
  // A run with an open question stays in its process and is never parked, because the client of a parked run is disconnected. An expired
  // question takes its default answer.
  const decisions = hold
    ? UserDecisions.layerDurable({ expiryMs: holdMs, parkAfterMs: Number.POSITIVE_INFINITY })
    : UserDecisions.layerHeadless();
  const recovery = GatewayRecovery.layer({
    headless: !hold,
    intervalMs: GatewayRecovery.lookMsOf(leaseMs),
    // Sweeps for dead gateways are more frequent than sweeps of parked runs.
    parkedMs: leaseMs,
    ...(hold ? { terms: { expiryMs: holdMs } } : {}),
    ...(worker === undefined ? {} : { siblings: worker }),
  });
  const sockets: Layer.Layer<never, never, RunRecorder> =
    worker === undefined ? Layer.empty : WorkerSockets.layer(worker);
  const behind = StreamProcessor.layer.pipe(
    Layer.provideMerge(decisions),
    Layer.provideMerge(recovery),
    // The runs, the API and the page share one board, so that a probe from the page releases the runs.
    Layer.provideMerge(Layer.provideMerge(PathBoard.layer, SharedPaths.layer)),
    Layer.merge(SharedTraffic.layer(TrafficMeter.layer)),
    Layer.provideMerge(sockets),
    Layer.provideMerge(withQueue(program, StoreHealth.layerOver(recorderOf(program, worker?.process)))),
    Layer.provideMerge(Layer.succeed(TokenPrices, program.prices ?? none)),
  );
  const gateway = Gateway.layer(program);
  return page === undefined
    ? Layer.provideMerge(gateway, behind)
    : Layer.provideMerge(Layer.provideMerge(gateway, page), behind);
};

/**
 * Adds a write queue in front of the store. While the store fails, runs continue and their records wait in the queue, where a crash of the
 * process loses them. Entries that an earlier process spilled to disk are queued first.
 */
const withQueue = <R, E>(
  program: GatewayProgram,
  store: Layer.Layer<RunRecorder | R, E>,
): Layer.Layer<RunRecorder | R | WriteQueue, E> => {
  const name = storeOf(program);
  if (name === inMemory) return WriteQueue.wrap(store);
  const place = Spill.placeOf(name, program.stateDir);
  const claims = Layer.effectDiscard(
    Effect.flatMap(WriteQueue, (queue) => Effect.forkScoped(Spill.claimInto(queue, place))),
  );
  return Layer.provideMerge(claims, WriteQueue.wrap(store, Spill.spillTo(place)));
};

/**
 * Uses synchronous level `normal`: a commit survives a crash of the process but not of the machine. Both crashes disconnect the client and
 * so lose its run. A stricter level would save no run, but would delay the first byte of every response by a disk write.
 */
const recorderOf = (program: GatewayProgram, process: string | undefined): Layer.Layer<RunRecorder, RecorderError> => {
  const retention = resolveRetention(program);
  return RunStore.layer({
    file: storeOf(program),
    synchronous: "normal",
    // The options were checked before, so the duration is valid here.
    ...("expected" in retention ? {} : { retention }),
    ...(program.leaseMs === undefined ? {} : { leaseMs: program.leaseMs }),
    ...(process === undefined ? {} : { process }),
  });
};

const badOption = (message: string): GatewayError => new GatewayError({ reason: "bad_option", message });
