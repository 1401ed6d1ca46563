/**
 * Lists the members of a body's outermost object, and the members of objects directly inside it, without parsing the body.
 */
import * as Effect from "effect/Effect";
import { type JsonListener, JsonScan, scanInTurns, sign } from "./JsonScan.ts";

/** An object, as offsets in the body. */
export interface JsonObject {
  /** Offset of the opening bracket. */
  readonly open: number;
  /** Offset of the closing bracket. */
  readonly close: number;
  readonly members: ReadonlyArray<JsonMember>;
}

/** A member of an object, as offsets in the body. */
export interface JsonMember {
  /** The decoded name; undefined if it is invalid, or longer than `nameBytesMax`. */
  readonly key: string | undefined;
  /** Offset of the name. */
  readonly name: number;
  /** Offsets of the value's start and end. */
  readonly from: number;
  readonly to: number;
  /** The members of the value, if it is an object directly inside the outermost object. */
  readonly inside: JsonObject | undefined;
}

/** Maximum number of members of a body that is read in several turns of the event loop. A body of 256 KiB cannot have more. */
export const membersMax = 60_000;

/** Maximum size of a decoded name, in bytes. */
export const nameBytesMax = 1_024;

/** Lists the members of a body in one turn of the event loop. Returns undefined if the body is not a JSON object. */
export const membersOf = (body: Uint8Array): JsonObject | undefined => {
  const members = new Members(body, Number.POSITIVE_INFINITY);
  // A body cannot have more levels of nesting than bytes.
  return new JsonScan(body, members, body.length).read(body.length) === "json" ? members.whole : undefined;
};

/**
 * Lists the members of a body in several turns of the event loop. Returns undefined if the body is not a JSON object or has more than
 * `membersMax` members.
 */
export const membersInTurns = (body: Uint8Array): Effect.Effect<JsonObject | undefined> =>
  Effect.suspend(() => {
    const members = new Members(body, membersMax);
    // The scan may reach the end of the body before it checks the number of members.
    return Effect.map(scanInTurns(body, members), (end) =>
      end === "json" && !members.isDone() ? members.whole : undefined,
    );
  });

interface Open {
  readonly open: number;
  readonly members: Array<JsonMember>;
  /** Name of the member whose value follows. */
  key: string | undefined;
  name: number;
  /** Start of the value, if the value is an object or a list. */
  from: number;
}

/** Number of levels whose members are listed. */
const levels = 2;

class Members implements JsonListener {
  whole: JsonObject | undefined;
  readonly #body: Uint8Array;
  readonly #most: number;
  /** The open objects whose members are listed, outermost first. */
  readonly #open: Array<Open> = [];
  #level = 0;
  #count = 0;

  constructor(body: Uint8Array, most: number) {
    this.#body = body;
    this.#most = most;
  }

  readonly isDone = (): boolean => this.#count > this.#most;

  readonly open = (bracket: number, at: number): void => {
    const object = this.#object;
    if (object !== undefined) object.from = at;
    if (bracket === sign.OPEN_OBJECT && this.#level === this.#open.length && this.#level < levels)
      this.#open.push({ open: at, members: [], key: undefined, name: at, from: at });
    this.#level += 1;
  };

  readonly close = (_bracket: number, to: number): void => {
    const ended = this.#object && this.#open.pop();
    this.#level -= 1;
    const object = ended && { open: ended.open, close: to - 1, members: ended.members };
    if (this.#level === 0) this.whole = object;
    this.#add(to, object);
  };

  readonly key = (from: number, to: number): void => {
    const object = this.#object;
    if (object === undefined) return;
    object.key = nameOf(this.#body, from, to);
    object.name = from;
  };

  readonly scalar = (from: number, to: number): void => {
    const object = this.#object;
    if (object !== undefined) object.from = from;
    this.#add(to, undefined);
  };

  /** The listed object that directly contains the current position. */
  get #object(): Open | undefined {
    return this.#level === this.#open.length ? this.#open.at(-1) : undefined;
  }

  #add(to: number, inside: JsonObject | undefined): void {
    const object = this.#object;
    if (object === undefined) return;
    this.#count += 1;
    if (this.isDone()) return;
    object.members.push({ key: object.key, name: object.name, from: object.from, to, inside });
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const nameOf = (body: Uint8Array, from: number, to: number): string | undefined => {
  if (to - from > nameBytesMax) return undefined;
  try {
    return String(JSON.parse(utf8.decode(body.subarray(from, to))));
  } catch {
    return undefined;
  }
};
