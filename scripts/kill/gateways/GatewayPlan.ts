/**
 * Says what the provider says to the clients of gateways to which something happens while each has a stream in each state.
 */
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { againMax, type Fault, faults } from "../NodeFaults.ts";
import { quick, type StreamState, states, streamStates } from "../streams/StreamStates.ts";

/** The name of one stream, of a fault that is played for the so-many-th time: by it the provider, the client and the record know it. */
export const nameOf = (fault: Fault, state: StreamState, nth: number): string =>
  `${fault.replace(/\W+/g, "-")}_${state}_${nth}`;

const times = Array.from({ length: againMax + 1 }, (_, nth) => nth);

/** What the provider says. */
export const script: FaultScriptInput = {
  answers: [quick],
  scripts: Object.fromEntries(
    faults.flatMap((fault) =>
      streamStates.flatMap((state) => times.map((nth) => [nameOf(fault, state, nth), states[state].answers] as const)),
    ),
  ),
};
