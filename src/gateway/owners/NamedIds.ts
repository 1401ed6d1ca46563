/**
 * Reads from a request's body which stored responses and conversations it goes on with.
 */
import * as Json from "../../domain/Json.ts";

/** What a body names. */
export interface NamedId {
  readonly what: "Previous response" | "Conversation";
  readonly id: string;
}

/**
 * Reads them.
 *
 * @param body the outermost object, or its outline. Some servers read keys without case
 */
export const namedIds = (body: Json.JsonRecord): ReadonlyArray<NamedId> =>
  Object.entries(body).flatMap(([key, value]): ReadonlyArray<NamedId> => {
    const what = names[key.toLowerCase()];
    const id = Json.string(value) || Json.string(Json.record(value)?.id);
    return what === undefined || id === "" ? [] : [{ what, id }];
  });

const names: Readonly<Record<string, NamedId["what"] | undefined>> = {
  previous_response_id: "Previous response",
  conversation: "Conversation",
  conversation_id: "Conversation",
};
