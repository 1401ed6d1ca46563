/**
 * Cuts a stream, joins continuations to it by the splice of its protocol, and gives the events that the client read.
 */
import type { WireProtocol } from "../../../src/provider/protocol/WireProtocol.ts";
import type { SplicedEvent } from "../../../src/provider/seam/Splice.ts";
import * as SplicedJoin from "../../../src/provider/seam/SplicedJoin.ts";
import type { Part, SseEvent } from "../../../src/provider/stream/Protocol.ts";
import * as Anchor from "../../../src/seam/Anchor.ts";
import * as SeamVerifiers from "../../../src/seam/SeamVerifier.ts";
import type { ShownResponse } from "../../../src/seam/ShownText.ts";
import { decode, encode } from "../Decoded.ts";

/** An event of a stream: its data as JSON or as text, and the name of its frame. */
export type WireEvent = SplicedEvent;

/** An event as a stream of its protocol has it; `event` is left out where frames have no name. */
export const frameOf = ({ event, json }: WireEvent): string =>
  `${event === "message" ? "" : `event: ${event}\n`}data: ${typeof json === "string" ? json : JSON.stringify(json)}\n\n`;

/** The bytes of events. */
export const bytesOf = (events: ReadonlyArray<WireEvent>): Uint8Array => encode(events.map(frameOf).join(""));

/** An event named as its type. */
export const named = (json: { readonly [key: string]: unknown }): WireEvent => ({
  event: typeof json.type === "string" ? json.type : "message",
  json,
});

/** The events of parts, without comments. */
export const eventsOf = (parts: ReadonlyArray<Part>): ReadonlyArray<WireEvent> =>
  parts.filter(({ event }) => event.event !== "comment" && event.data !== "").map(({ event }) => wireOf(event));

const wireOf = ({ data, event }: SseEvent): WireEvent => {
  try {
    return { event, json: JSON.parse(data) };
  } catch {
    // A sentinel is no JSON.
    return { event, json: data };
  }
};

/** The parts that a protocol decodes of events. */
export const partsOf = (protocol: WireProtocol, events: ReadonlyArray<WireEvent>): ReadonlyArray<Part> =>
  decode(protocol, [bytesOf(events)]).parts;

/** What one attempt answers: it sees what was shown, and says how its text is verified. */
export interface Continuation {
  readonly events: (shown: ShownResponse, left: ReadonlyArray<WireEvent>) => ReadonlyArray<WireEvent>;
  readonly verifier: (shown: ShownResponse) => SeamVerifiers.SeamVerifier;
}

/** What the client read. */
export interface Joined {
  readonly events: ReadonlyArray<WireEvent>;
  /** What was shown in front of each seam. */
  readonly shown: ReadonlyArray<ShownResponse>;
  /** The fault of the last attempt, or `refused`; undefined where all seams were proven. */
  readonly fault: string | undefined;
}

/** Joins continuations to what left of a first attempt, each to all that left before it. */
export const join = (
  protocol: WireProtocol,
  first: ReadonlyArray<WireEvent>,
  continuations: ReadonlyArray<Continuation>,
): Joined => {
  const splice = protocol.splice?.();
  if (splice === undefined) throw new Error(`${protocol.id} has no splice`);
  const events = [...first];
  for (const { event, json } of first) splice.recordSent(json, event);
  const all: Array<ShownResponse> = [];
  for (const { events: asked, verifier } of continuations) {
    const shown = splice.response();
    all.push(shown);
    if (shown.refusal !== undefined) return { events, shown: all, fault: `refused: ${shown.refusal}` };
    const driver = SplicedJoin.make(splice, verifier(shown));
    const told = asked(shown, events);
    const steps = partsOf(protocol, told).map((part) => () => driver.take(part));
    // A continuation that breaks has no clean end.
    for (const take of ends(protocol, told) ? [...steps, driver.end] : steps) {
      const step = take();
      if (step.type !== "events")
        return { events, shown: all, fault: step.type === "unproven" ? step.fault : step.type };
      for (const event of step.events) {
        // What has left stands as JSON on the wire: nothing is shared with the splice.
        const left: WireEvent = typeof event.json === "string" ? event : structuredClone(event);
        splice.recordSent(left.json, left.event);
        events.push(left);
      }
    }
  }
  return { events, shown: all, fault: undefined };
};

const ends = (protocol: WireProtocol, events: ReadonlyArray<WireEvent>): boolean =>
  decode(protocol, [bytesOf(events)]).end.complete;

/** The anchor of a run and its own verifier; undefined where there is none. */
export const proofOf = (
  run: string,
): { readonly anchor: number; readonly verifier: SeamVerifiers.SeamVerifier } | undefined => {
  const anchor = Anchor.anchorOf(run);
  if (typeof anchor === "string") return undefined;
  return { anchor: run.length - anchor.at, verifier: SeamVerifiers.make({ run, anchor, proof: "anchor" }) };
};

/** The verifier of a prefill that was sent whole. */
export const prefillOf = (run: string): SeamVerifiers.SeamVerifier | undefined => {
  const anchor = Anchor.anchorOf(run);
  if (typeof anchor === "string") return undefined;
  return SeamVerifiers.make({ run, anchor, proof: "prefill", sentToTheEnd: true });
};
