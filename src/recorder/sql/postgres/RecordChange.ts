/**
 * Says what has changed of a record, so that a write need not write all of it again: the first version of a record is kept as it
 * is, and beside it what is different by now.
 *
 * A record is never changed in place: what is the same object in both versions has not changed, and is not looked into.
 */

/** What JSON holds. A field without a value is none. */
export type Json =
  | string
  | number
  | boolean
  | null
  | undefined
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json };

/**
 * What became of a value: `v` another one; `o` the fields that changed, `d` those that are gone; `i` the items that changed,
 * `a` those that came behind them.
 */
export type Change =
  | { readonly v: Json }
  | { readonly o: Readonly<Record<string, Change>>; readonly d?: ReadonlyArray<string> }
  | { readonly i: Readonly<Record<string, Change>>; readonly a?: ReadonlyArray<Json> };

/** What makes `after` of `before`; undefined where they are the same. */
export const between = (before: Json, after: Json): Change | undefined => {
  if (before === after) return undefined;
  if (isList(before) && isList(after) && after.length >= before.length) return ofLists(before, after);
  return isFields(before) && isFields(after) ? ofFields(before, after) : { v: after };
};

const ofLists = (before: ReadonlyArray<Json>, after: ReadonlyArray<Json>): Change | undefined => {
  let changed: Record<string, Change> | undefined;
  for (let index = 0; index < before.length; index += 1) {
    const change = between(before[index], after[index]);
    if (change === undefined) continue;
    changed ??= {};
    changed[index] = change;
  }
  if (after.length > before.length) return { i: changed ?? {}, a: after.slice(before.length) };
  return changed && { i: changed };
};

type Fields = { readonly [name: string]: Json };

const ofFields = (before: Fields, after: Fields): Change | undefined => {
  let changed: Record<string, Change> | undefined;
  let gone: Array<string> | undefined;
  let kept = 0;
  const put = (name: string, change: Change) => {
    changed ??= {};
    // An assignment to this name would set what the object inherits from.
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
    const change = between(old, value);
    if (change !== undefined) put(name, change);
  }
  const names = Object.keys(after);
  // Most values have the fields that they had.
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

/** The value behind a change. Fails where the change is none of this value's. */
export const applied = (before: unknown, change: Change | undefined): unknown => {
  if (change === undefined) return before;
  if ("v" in change) return change.v;
  if ("i" in change) {
    if (!Array.isArray(before)) throw new Error("the change is one of a list");
    const items = [...before];
    for (const [index, item] of Object.entries(change.i)) items[Number(index)] = applied(items[Number(index)], item);
    return [...items, ...(change.a ?? [])];
  }
  if (typeof before !== "object" || before === null || Array.isArray(before)) {
    throw new Error("the change is one of fields");
  }
  const fields = new Map<string, unknown>(Object.entries(before));
  for (const name of change.d ?? []) fields.delete(name);
  for (const [name, field] of Object.entries(change.o)) fields.set(name, applied(fields.get(name), field));
  return Object.fromEntries(fields);
};

const isList = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value);

const isFields = (value: Json): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
