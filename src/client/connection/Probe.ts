/**
 * Asks whether a connection can be made, as a request would make it and without one.
 */
import { Effect } from "effect";
import * as TransportCodes from "../../domain/TransportCodes.ts";
import { classify } from "../../failure/FailureClassifier.ts";
import type { Probed } from "../../paths/Path.ts";
import { type Connector, ConnectStalled, targetOf } from "./Connector.ts";

/**
 * Longest that a probe takes, in milliseconds. A head or body is asked about after 10 s of silence, and at most half a second
 * more: with this limit a lost path is known within 16 s of its last byte.
 */
export const probeMs = 5_000;

/**
 * A probe whose connection is not there yet begins another beside it, so many milliseconds later and again: TCP asks a path that
 * drops packets ever more seldom, and would find seconds late that it is back.
 */
export const againMs = 1_000;

/**
 * Makes a connection to an origin (TCP, a proxy's CONNECT, TLS with its certificate checked) and closes it at once. An interruption
 * leaves no socket behind.
 *
 * @param origin as `URL.origin` spells it
 * @param limitMs longest time in milliseconds; what is not there by then has failed
 */
export const connection = (
  connector: Pick<Connector, "open">,
  origin: string,
  limitMs: number,
): Effect.Effect<Probed> => {
  const tries = Array.from({ length: Math.max(1, Math.ceil(limitMs / againMs)) }, (_, index) => index * againMs);
  return Effect.raceAllFirst(
    tries.map((afterMs) => {
      const one = made(connector, origin, limitMs - afterMs);
      return afterMs === 0 ? one : Effect.delay(one, afterMs);
    }),
  );
};

/** One connection. What it finds first counts, also that nothing listens. */
const made = (connector: Pick<Connector, "open">, origin: string, limitMs: number): Effect.Effect<Probed> =>
  Effect.callback<Probed>((resume) => {
    const settle = (probed: Probed): void => resume(Effect.succeed(probed));
    let opening: ReturnType<Connector["open"]>;
    try {
      const opened: Parameters<Connector["open"]>[1] = (error, socket) => {
        // A socket that is given up may still fail: that no longer matters.
        socket?.on("error", () => undefined).destroy();
        settle(socket === null || socket === undefined ? failed(error) : works);
      };
      opening = connector.open(targetOf(origin), opened, limitMs);
    } catch (error) {
      // A certificate that cannot be read.
      settle(failed(error));
    }
    return Effect.sync(() => opening?.destroy(new Error("The probe was given up")));
  });

/** A connection that could be made. */
export const works: Probed = { _tag: "works" };

/** What an error says of the path; its code only where it may be repeated. */
export const failed = (error: unknown): Probed => {
  const { code } = error instanceof ConnectStalled ? error : classify(error, { operation: "connect" });
  if (code === undefined) return { _tag: "failed", reason: "network" };
  return { _tag: "failed", reason: TransportCodes.isForeign(code) ? "certificate" : "network", code };
};
