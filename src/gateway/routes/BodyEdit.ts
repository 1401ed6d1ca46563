/**
 * Sets and removes fields of a JSON body. All other bytes stay as the client wrote them, so numbers keep their digits and strings their
 * escapes.
 *
 * A field is a key of the outermost object, or two keys joined by a dot. If a key occurs twice, both occurrences are changed.
 */
import type { JsonMember, JsonObject } from "../../adapters/relay/form/JsonMembers.ts";
import * as Json from "../../domain/Json.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/** The fields to set and to remove. No field may be part of another one. */
export interface BodyChanges {
  readonly set: ReadonlyArray<readonly [field: string, value: unknown]>;
  readonly drop: ReadonlyArray<string>;
}

/**
 * Finds a field that cannot be changed: the outer key of a dotted field must be absent or contain an object.
 *
 * @param body the parsed body
 * @returns the first such field; undefined if there is none
 */
export const findUneditableField = (body: Json.JsonRecord, { drop, set }: BodyChanges): string | undefined =>
  [...set.map(([field]) => field), ...drop].find((field) => {
    const [outer, inner] = keysOf(field);
    const value = Object.hasOwn(body, outer) ? body[outer] : undefined;
    return inner !== undefined && value !== undefined && Json.record(value) === undefined;
  });

/**
 * Changes a body.
 *
 * @param object the members of the body; `findUneditableField` must have found no field
 */
export const editBody = (body: Bytes, object: JsonObject, changes: BodyChanges): Buffer<ArrayBuffer> =>
  Buffer.concat([
    body.subarray(0, object.open),
    ...rewriteObject(body, object, editsOf(changes)),
    body.subarray(object.close + 1),
  ]);

/** Changes by key: the JSON of the new value, a map of changes to the keys inside, or undefined to remove the member. */
type Edits = ReadonlyMap<string, Edit>;

type Edit = string | undefined | ReadonlyMap<string, string | undefined>;

const editsOf = ({ drop, set }: BodyChanges): Edits => {
  const edits = new Map<string, Edit>();
  const dropped = drop.map((field) => [field, undefined] as const);
  for (const [field, json] of [...dropped, ...set.map(([name, value]) => [name, asciiJson(value)] as const)]) {
    const [outer, inner] = keysOf(field);
    const known = edits.get(outer);
    if (inner === undefined) edits.set(outer, json);
    else edits.set(outer, new Map<string, string | undefined>(typeof known === "object" ? known : []).set(inner, json));
  }
  return edits;
};

/** Escapes non-ASCII characters, so that the value is the same in every text encoding. */
const asciiJson = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const keysOf = (field: string): readonly [outer: string, inner: string | undefined] => {
  const [outer = "", inner] = field.split(".");
  return [outer, inner];
};

/**
 * Writes an object without the removed members. The comma after a removed member is removed too; if no member follows, the comma before it.
 */
const rewriteObject = (body: Bytes, { close, members, open }: JsonObject, edits: Edits): ReadonlyArray<Bytes> => {
  const out = [body.subarray(open, open + 1)];
  const missing = new Map(edits);
  let isEmpty = true;
  // The range of bytes before the next member that is kept. It ends where the first removed member begins.
  let from = open + 1;
  let to: number | undefined;
  for (const member of members) {
    missing.delete(member.key ?? "");
    to ??= member.name;
    if (isDropped(member, edits)) continue;
    out.push(body.subarray(from, to), body.subarray(member.name, member.from), ...valueAfter(body, member, edits));
    isEmpty = false;
    from = member.to;
    to = undefined;
  }
  out.push(body.subarray(members.at(-1)?.to ?? from, close));
  for (const [key, edit] of missing) {
    const added = newMemberJson(edit);
    if (added === undefined) continue;
    out.push(Buffer.from(`${isEmpty ? "" : ","}${JSON.stringify(key)}:${added}`));
    isEmpty = false;
  }
  out.push(body.subarray(close, close + 1));
  return out;
};

const isDropped = ({ key }: JsonMember, edits: Edits): boolean =>
  key !== undefined && edits.has(key) && edits.get(key) === undefined;

const valueAfter = (body: Bytes, { from, inside, key, to }: JsonMember, edits: Edits): ReadonlyArray<Bytes> => {
  const edit = key === undefined ? undefined : edits.get(key);
  if (typeof edit === "string") return [Buffer.from(edit)];
  return edit === undefined || inside === undefined ? [body.subarray(from, to)] : rewriteObject(body, inside, edit);
};

/** Returns the JSON for a member that the object does not contain yet; undefined if there is nothing to add. */
const newMemberJson = (edit: Edit): string | undefined => {
  if (typeof edit !== "object") return edit;
  const members = [...edit].filter(([, json]) => json !== undefined);
  return members.length === 0
    ? undefined
    : `{${members.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
};
