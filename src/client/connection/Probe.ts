/** Checks whether a connection can be made, in the same way as for a request but without sending one. */
import { Effect } from "effect";
import * as TransportCodes from "../../domain/TransportCodes.ts";
import { classify } from "../../failure/FailureClassifier.ts";
import type { Probed } from "../../paths/Path.ts";
import { type Connector, ConnectStalled, targetOf } from "./Connector.ts";

/**
 * Maximum duration of a probe, in milliseconds. The path is probed if a response is silent for 10 s (at most half a second late), so a lost
 * path is detected within 16 s of its last byte.
 */
export const probeMs = 5_000;

/**
 * Interval at which a pending probe opens another connection, in milliseconds. If a path drops packets, TCP retries ever more rarely, and
 * would notice seconds late that the path works again.
 */
export const againMs = 1_000;

/**
 * Makes a connection to an origin (TCP, a proxy's CONNECT, TLS with its certificate checked) and closes it at once. An
 * interruption leaves no socket open.
 *
 * @param origin name of the origin, as in `URL.origin`
 * @param limitMs maximum time in milliseconds; a connection that is not open by then has failed
 */
export const connection = (
  connector: Pick<Connector, "open">,
  origin: string,
  limitMs: number,
): Effect.Effect<Probed> => {
  const tries = Array.from({ length: Math.max(1, Math.ceil(limitMs / againMs)) }, (_, index) => index * againMs);
  return Effect.raceAllFirst(
    tries.map((afterMs) => {
      const one = connectOnce(connector, origin, limitMs - afterMs);
      return afterMs === 0 ? one : Effect.delay(one, afterMs);
    }),
  );
};

/** Tries to connect once. The first result counts, even if the connection is refused. */
const connectOnce = (connector: Pick<Connector, "open">, origin: string, limitMs: number): Effect.Effect<Probed> =>
  Effect.callback<Probed>((resume) => {
    const settle = (probed: Probed): void => resume(Effect.succeed(probed));
    let opening: ReturnType<Connector["open"]>;
    try {
      const onOpened: Parameters<Connector["open"]>[1] = (error, socket) => {
        // An abandoned socket may still report an error, which no longer matters.
        socket?.on("error", () => undefined).destroy();
        settle(socket === null || socket === undefined ? failureOf(error) : works);
      };
      opening = connector.open(targetOf(origin), onOpened, limitMs);
    } catch (error) {
      // `connector.open` throws if the certificate cannot be read.
      settle(failureOf(error));
    }
    return Effect.sync(() => opening?.destroy(new Error("The probe was abandoned")));
  });

/** The result of a probe that connected. */
export const works: Probed = { _tag: "works" };

/** Describes the path after a failed probe, with the error's code if it is a known one. */
export const failureOf = (error: unknown): Probed => {
  const { code } = error instanceof ConnectStalled ? error : classify(error, { operation: "connect" });
  if (code === undefined) return { _tag: "failed", reason: "network" };
  return { _tag: "failed", reason: TransportCodes.isForeign(code) ? "certificate" : "network", code };
};
