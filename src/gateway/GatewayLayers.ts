/**
 * Puts a gateway together: its store, what answers its questions, its processor, its recovery and its server.
 */
import { Effect, Layer } from "effect";
import type { ClientConfigError } from "../client/ClientConfig.ts";
import { none } from "../domain/Prices.ts";
import type { Paths } from "../paths/Paths.ts";
import type { DeliveryStore } from "../recorder/delivery/DeliveryStore.ts";
import type { RecorderError } from "../recorder/RecorderError.ts";
import type { RunRecorder } from "../recorder/RunRecorder.ts";
import { retentionOf } from "../recorder/retention/Retention.ts";
import * as RunStore from "../recorder/store/RunStore.ts";
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

/** A gateway, and what stands behind it. */
export interface GatewayProgram extends ProgramOptions {}

/** What a process is among several that serve as one. */
export interface WorkerPlace extends GatewayRecovery.DeadSiblings {
  /** Its name in the store: by it a sibling takes its runs over at once when it has died. */
  readonly process: string;
}

/** What a gateway's page is built on. */
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
 * Makes a whole gateway. Options that `serve` would refuse fail as `GatewayError`.
 *
 * @param page what serves the gateway's own paths; left out, there is nothing at them
 * @param worker what a process is among several that serve as one
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
  // A parked run has no client any more: a question rather takes its default than outlives its stream.
  const decisions = hold
    ? UserDecisions.layerDurable({ expiryMs: holdMs, parkAfterMs: Number.POSITIVE_INFINITY })
    : UserDecisions.layerHeadless();
  const recovery = GatewayRecovery.layer({
    headless: !hold,
    intervalMs: GatewayRecovery.lookMsOf(leaseMs),
    // A dead gateway is looked for more often than what waits for a person or for its time.
    parkedMs: leaseMs,
    ...(hold ? { terms: { expiryMs: holdMs } } : {}),
    ...(worker === undefined ? {} : { siblings: worker }),
  });
  const log = deliveriesOf(program);
  const behind = StreamProcessor.layer.pipe(
    Layer.provideMerge(log),
    Layer.provideMerge(decisions),
    Layer.provideMerge(recovery),
    // One for the runs, the API and the page: a try from the page lets the runs go.
    Layer.provideMerge(Layer.provideMerge(PathBoard.layer, SharedPaths.layer)),
    Layer.provideMerge(StoreHealth.watching(recorderOf(program, worker?.process))),
    Layer.merge(SharedTraffic.layer(TrafficMeter.layer)),
    Layer.provideMerge(Layer.succeed(TokenPrices, program.prices ?? none)),
  );
  const gateway = Gateway.layer(program);
  return page === undefined
    ? Layer.provideMerge(gateway, behind)
    : Layer.provideMerge(Layer.provideMerge(gateway, page), behind);
};

/** The delivery log, where it is asked for: the store is a server then. */
const deliveriesOf = (
  program: GatewayProgram,
): Layer.Layer<DeliveryStore, RecorderError, RunRecorder> | Layer.Layer<never> =>
  program.deliveryLog === true ? RunStore.deliveries(storeOf(program)) : Layer.empty;

/**
 * A commit survives a crash of the process, not of the machine: a gateway's run is lost with its client in either case, and
 * the first byte of every response would wait for the disk.
 */
const recorderOf = (program: GatewayProgram, process: string | undefined): Layer.Layer<RunRecorder, RecorderError> => {
  const retention = retentionOf(program);
  return RunStore.layer({
    file: storeOf(program),
    synchronous: "normal",
    // A time that is none was refused with the program's other options.
    ...("expected" in retention ? {} : { retention }),
    ...(program.leaseMs === undefined ? {} : { leaseMs: program.leaseMs }),
    ...(process === undefined ? {} : { process }),
  });
};

const badOption = (message: string): GatewayError => new GatewayError({ reason: "bad_option", message });
