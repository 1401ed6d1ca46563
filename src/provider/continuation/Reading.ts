/**
 * Describes what one part says about the answer that it belongs to, in the same words for every protocol.
 */
import * as Json from "../../domain/Json.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import type { Part } from "../stream/Protocol.ts";
import type { ReceivedItem } from "./Received.ts";

type ItemType = ReceivedItem["type"];

/**
 * A change of one item, known by a key. With `type` an item that is not there yet begins. `open` and `set` merge fields into
 * it, `append` lets a text of it grow, `close` says that it is whole.
 */
export type Change =
  | {
      readonly op: "open";
      readonly key: string;
      readonly type: ItemType;
      readonly call?: string;
      readonly json: object;
    }
  | { readonly op: "set"; readonly key: string; readonly type?: ItemType; readonly json: object }
  | {
      readonly op: "append";
      readonly key: string;
      readonly type?: ItemType;
      readonly field: string;
      readonly text: string;
    }
  | { readonly op: "close"; readonly key: string; readonly type?: ItemType; readonly json?: object };

/** What a part says. */
export interface Read {
  readonly changes: ReadonlyArray<Change>;
  /** Indexes of the choices that it speaks for. */
  readonly choices: ReadonlyArray<number>;
}

/** The key of an item that comes whole with its one part. */
export const single = "single";

/** The key of a text that goes on until another item begins, where the protocol names none. */
export const running = "running";

/** A part that says nothing about the answer. */
export const nothing: Read = { changes: [], choices: [] };

/** The part's data as an object; the first of a list of one. */
export const frameOf = (part: Part): Json.JsonRecord | undefined =>
  Json.record(part.json) ?? Json.record(Json.list(part.json)[0]);

/** The calls of the caller's own tools that begin with this part. */
export const begunIn = (part: Part): ReadonlyArray<CallSignal> => {
  const runtime = part.observation.calls.filter((call) => call.executor === "runtime");
  return runtime.filter(
    (call, at) => runtime.findIndex((it) => it.choice === call.choice && it.ordinal === call.ordinal) === at,
  );
};

/** The key of a call's item. */
export const keyOf = (call: CallSignal): string => `call ${call.choice}.${call.ordinal}`;
