/**
 * Searches a request's body, in one pass and within limits, for fields that bind it to its provider's account, and for marks that identify
 * the responses in its history.
 *
 * The conversation of a large body is searched item by item, without its long strings, so that other requests run in between.
 */
import { Effect } from "effect";
import { depthMax, valuesMax } from "../../adapters/relay/form/CanonicalBody.ts";
import { scanInTurns } from "../../adapters/relay/form/JsonScan.ts";
import { fromRequestTools } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import type { KnownBody } from "../body/BodyOutline.ts";
import { ItemTexts } from "../body/ItemTexts.ts";
import { boundRows, toolRow, unsearched } from "./BoundRows.ts";

/** Content of a request that binds it to the provider of earlier responses. */
export interface Found {
  /** Field of the first row of `boundRows` that binds the request; undefined if any provider can answer it. */
  readonly bound: string | undefined;
  /** Marks that the body contains, in order: ids and signatures that earlier responses supplied. */
  readonly marks: ReadonlyArray<string>;
}

/** Maximum marks kept from a body. The newest responses are at its end, so the first marks are dropped. */
export const marksMax = 1024;

/** Maximum size of an item of the conversation that is searched if the body is large, in bytes. Long strings do not count. */
export const itemBytesMax = 1_024 * 1_024;

/** Maximum size of a string kept from an item, in bytes: in mark fields, and in all others. */
export const markBytesMax = 64 * 1_024;
const otherBytesMax = 1_024;

/** Searches a parsed body. */
export const search = (body: Json.JsonRecord, protocol: string): Found => {
  const searcher = new Searcher(protocol);
  return resultOf(searcher, body, searcher.look(body, 0));
};

/** Searches a body of any size. */
export const searchBody = ({ isOutline, json, plain }: KnownBody, protocol: string): Effect.Effect<Found> =>
  Effect.suspend(() => {
    if (!isOutline) return Effect.succeed(search(json, protocol));
    const searcher = new Searcher(protocol);
    // The items of a conversation in a wrapped request are not searched.
    let whole = searcher.look(json, 0) && json.request === undefined;
    const items = new ItemTexts(plain, {
      bytesMax: itemBytesMax,
      textMax: (name) => (markKeys.has(name) ? markBytesMax : otherBytesMax),
      take: (some, level) => {
        whole &&= some.every((item) => searcher.look(item, level));
        return whole;
      },
    });
    return Effect.map(scanInTurns(plain, items), () => resultOf(searcher, json, whole && !items.isMissed));
  });

const markKeys: ReadonlySet<string> = new Set([...boundRows.flatMap(({ marks = [] }) => marks), "id"]);

const resultOf = (searcher: Searcher, body: Json.JsonRecord, whole: boolean): Found => {
  const tools = fromRequestTools(body).some((tool) => toolRow.isBinding(tool, searcher.protocol));
  return {
    bound: searcher.bound ?? (tools ? toolRow.field : whole ? undefined : unsearched.field),
    marks: searcher.marks.slice(-marksMax),
  };
};

class Searcher {
  bound: string | undefined;
  readonly marks: Array<string> = [];
  readonly protocol: string;
  #values = 0;

  constructor(protocol: string) {
    this.protocol = protocol;
  }

  /** @returns true if the whole value was searched */
  look(value: unknown, depth: number): boolean {
    if (typeof value !== "object" || value === null) return true;
    this.#values += 1;
    if (depth > depthMax || this.#values > valuesMax) return false;
    if (Array.isArray(value)) return value.every((item) => this.look(item, depth + 1));
    const record = Json.record(value) ?? {};
    const outermost = depth === 0;
    this.#ask(record, outermost);
    return Object.entries(record).every(
      ([key, member]) =>
        typeof member !== "object" || (!outermost && isProgram(key, record)) || this.look(member, depth + 1),
    );
  }

  #ask(record: Json.JsonRecord, outermost: boolean): void {
    for (const { isBinding, field, marks = [] } of boundRows) {
      if (!isBinding({ record, outermost, protocol: this.protocol })) continue;
      this.bound ??= field;
      for (const key of marks) this.#mark(record[key]);
    }
  }

  /** Accepts an id as a string, or as an object with an `id`. */
  #mark(value: unknown): void {
    const text = Json.string(value) || Json.string(Json.record(value)?.id);
    if (text !== "") this.marks.push(text);
  }
}

/**
 * True for a tool's input or output. It is not searched, because no provider uses it to look anything up. The caller does not ask this
 * about the outermost object.
 */
const isProgram = (key: string, { name, type }: Json.JsonRecord): boolean =>
  ((key === "args" || key === "response") && typeof name === "string") ||
  (key === "input" && typeof type === "string" && type.endsWith("tool_use"));
