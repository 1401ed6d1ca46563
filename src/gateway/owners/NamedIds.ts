/**
 * Extracts the stored responses, interactions and conversations that a request's body continues.
 *
 * If a key occurs several times, every occurrence counts, because servers differ in which one they use. Keys match case-insensitively,
 * because some servers ignore case.
 */
import { Effect } from "effect";
import { type JsonMember, membersInTurns } from "../../adapters/relay/form/JsonMembers.ts";
import * as Json from "../../domain/Json.ts";

/** A stored object that a body refers to. */
export interface NamedId {
  readonly what: "Previous response" | "Conversation";
  readonly id: string;
}

/** Maximum length of an extracted id, in bytes. */
const textBytesMax = 1_024;

/** Maximum number of ids that are extracted from one body. */
export const namedIdsMax = 16;

/**
 * Extracts the ids from a body.
 *
 * @param plain a body without content encoding that is known to be an object
 * @returns undefined for a body with more than `namedIdsMax` ids, or one that is too deep or wide to be parsed
 */
export const extractIds = (plain: Uint8Array): Effect.Effect<ReadonlyArray<NamedId> | undefined> =>
  Effect.map(membersInTurns(plain), (object) => {
    const found = object?.members.flatMap((member) => idsIn(plain, member));
    return found === undefined || found.length > namedIdsMax ? undefined : found;
  });

const names: ReadonlyMap<string, NamedId["what"]> = new Map([
  ["previous_response_id", "Previous response"],
  ["previous_interaction_id", "Previous response"],
  ["conversation", "Conversation"],
  ["conversation_id", "Conversation"],
]);

const idsIn = (plain: Uint8Array, member: JsonMember): ReadonlyArray<NamedId> => {
  const what = names.get(lowerKey(member));
  if (what === undefined) return [];
  const values = member.inside?.members.filter((inner) => lowerKey(inner) === "id") ?? [member];
  return values.map((value) => ({ what, id: textOf(plain, value) })).filter(({ id }) => id !== "");
};

const lowerKey = ({ key = "" }: JsonMember): string => key.toLowerCase();

const textOf = (plain: Uint8Array, { from, to }: JsonMember): string =>
  to - from > textBytesMax ? "" : Json.string(Json.parse(utf8.decode(plain.subarray(from, to)))?.json);

const utf8 = new TextDecoder();
