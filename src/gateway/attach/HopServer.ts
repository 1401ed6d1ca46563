/**
 * Serves the runs of this process to clients of its siblings.
 *
 * Hops arrive in signed requests (`SignedWire`), which only siblings can send. Their number is bounded by the siblings'
 * connection limits.
 */
import { Cause, Effect, Exit } from "effect";
import { logDefect } from "../log/Defect.ts";
import type { HopListener } from "../workers/SignedWire.ts";
import { HopAsked, type HopWish, read } from "./HopMessage.ts";
import { HopResponse, type HopSetting } from "./HopResponse.ts";

/** Services for a hop. */
export interface HopServing {
  /** Returns the current settings for a hop, since the configuration may change. */
  readonly setting: (asked: HopAsked) => HopSetting;
  /** Serves a hop. Returns true if there is a run for it. */
  readonly serve: (wish: HopWish, client: HopResponse) => Effect.Effect<boolean>;
  /** Runs a hop as a request of this worker, for which a shutdown waits. */
  readonly run: (hop: Effect.Effect<void>) => void;
}

/** Creates the listener for hops. */
export const listenerOf =
  (serving: HopServing): HopListener =>
  (_, response, word) => {
    const asked = read(HopAsked, word);
    if (asked === undefined) return void response.writeHead(400, { connection: "close" }).end();
    const client = new HopResponse(response, serving.setting(asked));
    serving.run(
      serving.serve(asked.wish, client).pipe(
        Effect.map((isServed) => (isServed ? undefined : client.none())),
        Effect.onExit((exit) =>
          Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
            ? client.settle
            : Effect.andThen(logDefect("a defect ended a request", exit.cause), client.fail),
        ),
        Effect.ignoreCause,
      ),
    );
  };
