/**
 * Computes the difference between two versions of a record, so that a write need not repeat the record. The first version is stored
 * unchanged, next to the difference.
 *
 * Records are immutable, so an object that both versions share is equal and is not compared further.
 */

/** A JSON value. A field whose value is undefined counts as absent. */
export type Json =
  | string
  | number
  | boolean
  | null
  | undefined
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json };

/** Difference of a value: `v` replaces it; `o` has changed fields and `d` removed ones; `i` has changed items and `a` appended ones. */
export type Change =
  | { readonly v: Json }
  | { readonly o: Readonly<Record<string, Change>>; readonly d?: ReadonlyArray<string> }
  | { readonly i: Readonly<Record<string, Change>>; readonly a?: ReadonlyArray<Json> };

/** Returns the change from `before` to `after`; undefined if they are equal. */
export const diff = (before: Json, after: Json): Change | undefined => {
  if (before === after) return undefined;
  if (isList(before) && isList(after) && after.length >= before.length) return diffLists(before, after);
  return isFields(before) && isFields(after) ? diffFields(before, after) : { v: after };
};

const diffLists = (before: ReadonlyArray<Json>, after: ReadonlyArray<Json>): Change | undefined => {
  let changed: Record<string, Change> | undefined;
  for (let index = 0; index < before.length; index += 1) {
    const change = diff(before[index], after[index]);
    if (change === undefined) continue;
    changed ??= {};
    changed[index] = change;
  }
  if (after.length > before.length) return { i: changed ?? {}, a: after.slice(before.length) };
  return changed && { i: changed };
};

type Fields = { readonly [name: string]: Json };

const diffFields = (before: Fields, after: Fields): Change | undefined => {
  let changed: Record<string, Change> | undefined;
  let gone: Array<string> | undefined;
  let kept = 0;
  const put = (name: string, change: Change) => {
    changed ??= {};
    // An assignment to `__proto__` would set the prototype.
    if (name !== "__proto__") changed[name] = change;
    else Object.defineProperty(changed, name, { value: change, enumerable: true });
  };
  for (const name of Object.keys(before)) {
    const old = before[name];
    if (old === undefined) continue;
    const value = Object.hasOwn(after, name) ? after[name] : undefined;
    if (value === undefined) {
      gone ??= [];
      gone.push(name);
      continue;
    }
    kept += 1;
    const change = diff(old, value);
    if (change !== undefined) put(name, change);
  }
  const names = Object.keys(after);
  // Usually no fields were added.
  if (names.length > kept) {
    for (const name of names) {
      const isNew = !Object.hasOwn(before, name) || before[name] === undefined;
      const value = after[name];
      if (isNew && value !== undefined) put(name, { v: value });
    }
  }
  if (gone !== undefined) return { o: changed ?? {}, d: gone };
  return changed && { o: changed };
};

/** Applies a change. Throws if the change does not fit the value. */
export const apply = (before: unknown, change: Change | undefined): unknown => {
  if (change === undefined) return before;
  if ("v" in change) return change.v;
  if ("i" in change) {
    if (!Array.isArray(before)) throw new Error("the stored change applies to a list, but the value is not a list");
    const items = [...before];
    for (const [index, item] of Object.entries(change.i)) items[Number(index)] = apply(items[Number(index)], item);
    return [...items, ...(change.a ?? [])];
  }
  if (typeof before !== "object" || before === null || Array.isArray(before)) {
    throw new Error("the stored change applies to an object, but the value is not an object");
  }
  const fields = new Map<string, unknown>(Object.entries(before));
  for (const name of change.d ?? []) fields.delete(name);
  for (const [name, field] of Object.entries(change.o)) fields.set(name, apply(fields.get(name), field));
  return Object.fromEntries(fields);
};

const isList = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value);

const isFields = (value: Json): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
