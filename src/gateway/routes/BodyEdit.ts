/**
 * Sets and drops fields of a JSON body where they stand, so that every other byte of it stays what its client wrote: a number keeps
 * its digits, a text its escapes.
 *
 * A field is a key of the outermost object, or two keys with a dot between. A key that stands there twice is set or dropped twice.
 */
import * as Json from "../../domain/Json.ts";

/** What is changed. */
export interface BodyChanges {
  readonly set: ReadonlyArray<readonly [field: string, value: unknown]>;
  readonly drop: ReadonlyArray<string>;
}

/**
 * Says why a body cannot be changed so: a field with a dot goes into an object or into none.
 *
 * @param body the body as it was parsed
 * @returns the field that stands in the way; undefined where there is none
 */
export const obstacle = (body: Json.JsonRecord, { drop, set }: BodyChanges): string | undefined =>
  [...set.map(([field]) => field), ...drop].find((field) => {
    const [outer, inner] = keysOf(field);
    const value = Object.hasOwn(body, outer) ? body[outer] : undefined;
    return inner !== undefined && value !== undefined && Json.record(value) === undefined;
  });

/**
 * Changes a body.
 *
 * @param text JSON, an object at its outermost, in which nothing stands in the way; a character a byte where bytes are to stay
 */
export const edited = (text: string, { drop, set }: BodyChanges): string => {
  const dropped = drop.reduce((body, field) => without(body, keysOf(field)), text);
  return set.reduce((body, [field, value]) => having(body, keysOf(field), written(value)), dropped);
};

/** In ASCII, so that it is the same in every encoding of the text around it. */
const written = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

type Keys = readonly [outer: string, inner: string | undefined];

const keysOf = (field: string): Keys => {
  const [outer = "", inner] = field.split(".");
  return [outer, inner];
};

const without = (text: string, [outer, inner]: Keys): string => {
  const { members } = objectAt(text, start(text));
  if (inner === undefined) return spliced(text, removals(members, outer));
  return spliced(
    text,
    members
      .filter(({ from, key }) => key === outer && text.charCodeAt(from) === OPEN_OBJECT)
      .flatMap(({ from }) => removals(objectAt(text, from).members, inner)),
  );
};

const having = (text: string, [outer, inner]: Keys, value: string): string => {
  const whole = objectAt(text, start(text));
  const named = whole.members.filter(({ key }) => key === outer);
  if (inner === undefined)
    return spliced(text, named.length === 0 ? [added(whole, outer, value)] : replaced(named, value));
  if (named.length === 0) return spliced(text, [added(whole, outer, `{${JSON.stringify(inner)}:${value}}`)]);
  return spliced(
    text,
    named
      .filter(({ from }) => text.charCodeAt(from) === OPEN_OBJECT)
      .flatMap(({ from }) => {
        const object = objectAt(text, from);
        const known = object.members.filter(({ key }) => key === inner);
        return known.length === 0 ? [added(object, inner, value)] : replaced(known, value);
      }),
  );
};

/** A part of the text that is replaced. */
interface Cut {
  readonly from: number;
  readonly to: number;
  readonly by: string;
}

const spliced = (text: string, cuts: ReadonlyArray<Cut>): string => {
  let at = 0;
  let out = "";
  for (const { by, from, to } of cuts) {
    out += text.slice(at, from) + by;
    at = to;
  }
  return out + text.slice(at);
};

const replaced = (members: ReadonlyArray<Member>, value: string): ReadonlyArray<Cut> =>
  members.map(({ from, to }) => ({ from, to, by: value }));

const added = ({ close, members }: Members, key: string, value: string): Cut => ({
  from: close,
  to: close,
  by: `${members.length === 0 ? "" : ","}${JSON.stringify(key)}:${value}`,
});

/** A member goes with the comma behind it; of the last ones that before them goes. */
const removals = (members: ReadonlyArray<Member>, key: string): ReadonlyArray<Cut> => {
  const lastKept = members.findLastIndex((member) => member.key !== key);
  return members.flatMap((member, index): ReadonlyArray<Cut> => {
    if (member.key !== key) return [];
    const before = members[index - 1];
    const after = members[index + 1];
    if (index < lastKept && after !== undefined) return [{ from: member.name, to: after.name, by: "" }];
    return [{ from: before?.to ?? member.name, to: member.to, by: "" }];
  });
};

/** A member of an object, by its places in the text. */
interface Member {
  readonly key: string;
  /** Where its name begins. */
  readonly name: number;
  /** Where its value begins and ends. */
  readonly from: number;
  readonly to: number;
}

interface Members {
  readonly members: ReadonlyArray<Member>;
  /** Where the object's closing bracket stands. */
  readonly close: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const start = (text: string): number => text.indexOf("{");

/**
 * The members of the object that begins at a place.
 *
 * @param text is known to be JSON: what stands between its names and values is not looked at again
 */
const objectAt = (text: string, open: number): Members => {
  const members: Array<Member> = [];
  let at = blanks(text, open + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_OBJECT) {
    const name = at;
    const behind = textEnd(text, name);
    const from = blanks(text, blanks(text, behind) + 1);
    const to = valueEnd(text, from);
    members.push({ key: String(JSON.parse(text.slice(name, behind))), name, from, to });
    at = blanks(text, to);
    if (text.charCodeAt(at) === COMMA) at = blanks(text, at + 1);
  }
  return { members, close: at };
};

const blanks = (text: string, from: number): number => {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1;
  return at;
};

/** Behind the text that begins with the quote at a place. */
const textEnd = (text: string, from: number): number => {
  let quote = from;
  do {
    quote = text.indexOf('"', quote + 1);
    if (quote === -1) return text.length;
  } while (isEscaped(text, quote));
  return quote + 1;
};

/** A quote is escaped behind an odd number of backslashes. */
const isEscaped = (text: string, quote: number): boolean => {
  let at = quote;
  while (text.charCodeAt(at - 1) === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 1;
};

/** Behind the value that begins at a place. */
const valueEnd = (text: string, from: number): number => {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = textEnd(text, at);
    } else if (depth === 0 && (code === COMMA || code === CLOSE_OBJECT || code <= 0x20)) {
      return at;
    } else {
      if (code === OPEN_OBJECT || code === OPEN_LIST) depth += 1;
      if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
      at += 1;
    }
    if (depth === 0 && (code === QUOTE || code === CLOSE_OBJECT || code === CLOSE_LIST)) return at;
  }
  return at;
};
