/**
 * The provider's script for gateways that are hit by faults while each has a stream in every state.
 */
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { againMax, type Fault, faults } from "../NodeFaults.ts";
import { quick, type StreamState, states, streamStates } from "../streams/StreamStates.ts";

/** The name of a stream in the `nth` repetition of a fault. The provider, the client and the record identify it by this name. */
export const nameOf = (fault: Fault, state: StreamState, nth: number): string =>
  `${fault.replace(/\W+/g, "-")}_${state}_${nth}`;

const times = Array.from({ length: againMax + 1 }, (_, nth) => nth);

/** The provider's script. */
export const script: FaultScriptInput = {
  answers: [quick],
  scripts: Object.fromEntries(
    faults.flatMap((fault) =>
      streamStates.flatMap((state) => times.map((nth) => [nameOf(fault, state, nth), states[state].answers] as const)),
    ),
  ),
};
