/**
 * Opens the port of a gateway that does not serve yet: its store is opened behind it, and may be waited for.
 *
 * Until the gateway takes the port over, `/livez` says 200 and `/readyz` 503, and any other request is refused by a 503 that asks for a
 * repeat. The port and its connections are the same before and after, so that none is refused or reset in between.
 */
import { Clock, Context, Effect, FiberSet, type Scope } from "effect";
import { GatewayError, type GatewayOptions, settingsOf } from "./config/GatewayOptions.ts";
import * as OpenPort from "./OpenPort.ts";
import { refuseEarly } from "./Requests.ts";

/** A port that was opened before its gateway was made. */
export class EarlyPort extends Context.Service<EarlyPort, OpenPort.OpenPort>()(
  "effect-stream-recovery/gateway/EarlyPort",
) {}

/**
 * Opens it, with the options that its gateway will have. It is closed with the scope.
 *
 * @param starting what the gateway is at, in words that any client may read
 * @throws GatewayError for an option that cannot be, or an address that cannot be had
 */
export const make = Effect.fnUntraced(function* (
  options: GatewayOptions,
  starting: () => string,
): Effect.fn.Return<OpenPort.OpenPort, GatewayError, Scope.Scope> {
  const settings = settingsOf(options);
  if (settings instanceof GatewayError) return yield* settings;
  const clock = yield* Clock.Clock;
  const run = yield* FiberSet.makeRuntime<never>();
  const listener: OpenPort.Listener = (request, response, expects) =>
    void run(refuseEarly(request, OpenPort.clientOf(response, expects, settings, clock), { settings, starting }));
  return yield* Effect.acquireRelease(OpenPort.open(settings, listener), ({ server }) =>
    Effect.sync(() => {
      server.close();
      server.closeAllConnections();
    }),
  );
});
