/**
 * Says what may happen to a gateway that has a client's stream in each state.
 */
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { quick, type StreamState, states, streamStates } from "../streams/StreamStates.ts";

/** What happens to the gateway that has the streams, or to its way to the store. */
export const gatewayFaults = [
  "kill -9",
  "stopped",
  "cut off",
  "reset",
  "clock ahead",
  "clock ahead, kill -9",
  "restarted",
] as const;
export type GatewayFault = (typeof gatewayFaults)[number];

/** The name of one stream: by it the provider, the client and the record know it. */
export const nameOf = (fault: GatewayFault, state: StreamState): string => `${fault.replace(/\W+/g, "-")}_${state}`;

/** What the provider says. */
export const script: FaultScriptInput = {
  answers: [quick],
  scripts: Object.fromEntries(
    gatewayFaults.flatMap((fault) =>
      streamStates.map((state) => [nameOf(fault, state), states[state].answers] as const),
    ),
  ),
};
