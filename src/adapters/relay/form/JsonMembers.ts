/**
 * Lists the members of a body's outermost object, and the members of its members, without parsing the body.
 */
import * as Effect from "effect/Effect";
import { type JsonListener, JsonScan, scanInTurns, sign } from "./JsonScan.ts";

/** An object, by its offsets in the body. */
export interface JsonObject {
  /** Offset of its opening bracket. */
  readonly open: number;
  /** Offset of its closing bracket. */
  readonly close: number;
  readonly members: ReadonlyArray<JsonMember>;
}

/** A member of an object, by its offsets in the body. */
export interface JsonMember {
  /** The decoded name; undefined if it is damaged, or longer than `nameBytesMax`. */
  readonly key: string | undefined;
  /** Start of the name. */
  readonly name: number;
  /** Start and end of the value. */
  readonly from: number;
  readonly to: number;
  /** The value's own members, if it is an object of the outermost object. */
  readonly inside: JsonObject | undefined;
}

/** Maximum members of a body that is read in many turns. A body of 256 KiB cannot have more. */
export const membersMax = 60_000;

/** Maximum size of a name that is read, in bytes. */
export const nameBytesMax = 1_024;

/** Lists the members of a body in one turn; undefined unless it is a JSON object. */
export const membersOf = (body: Uint8Array): JsonObject | undefined => {
  const members = new Members(body, Number.POSITIVE_INFINITY);
  // A body cannot have more levels than bytes.
  return new JsonScan(body, members, body.length).read(body.length) === "json" ? members.whole : undefined;
};

/** Lists the members of a body in many turns; undefined also for a body of more than `membersMax` members. */
export const membersInTurns = (body: Uint8Array): Effect.Effect<JsonObject | undefined> =>
  Effect.suspend(() => {
    const members = new Members(body, membersMax);
    // The scan may end before it asks if it is done.
    return Effect.map(scanInTurns(body, members), (end) =>
      end === "json" && !members.isDone() ? members.whole : undefined,
    );
  });

interface Open {
  readonly open: number;
  readonly members: Array<JsonMember>;
  /** The name of the member whose value comes next. */
  key: string | undefined;
  name: number;
  /** Start of the value, while it is an object or a list. */
  from: number;
}

/** The levels whose members are listed. */
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

  /** The listed object that the scan is directly in. */
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
