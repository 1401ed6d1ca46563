/**
 * What the next request of a conversation would carry of a response that was joined: what an API refuses in it.
 */
import * as Json from "../../../src/domain/Json.ts";

const records = (values: unknown): ReadonlyArray<Json.JsonRecord> =>
  Json.list(values).map((value) => Json.record(value) ?? {});

/** Why the API of Anthropic would refuse the content of an assistant message; empty where it would not. */
export const messageFaults = (content: unknown): ReadonlyArray<string> => {
  const blocks = records(content);
  const ids = blocks.flatMap(({ id }) => (typeof id === "string" ? [id] : []));
  return [
    ...blocks.flatMap(({ signature, text, type }) => [
      ...(type === "text" && Json.string(text).trim() === "" ? ["an empty text block"] : []),
      ...(type === "thinking" && Json.string(signature) === "" ? ["thinking that is not signed"] : []),
    ]),
    ...(new Set(ids).size < ids.length ? ["two calls of one id"] : []),
    ...blocks.flatMap(({ id, type }, at) =>
      type === "server_tool_use" && !blocks.slice(at).some((one) => one.tool_use_id === id)
        ? ["a call without result"]
        : [],
    ),
  ];
};

/** Why the API of OpenAI Responses would refuse items; empty where it would not. */
export const itemFaults = (output: unknown): ReadonlyArray<string> => {
  const items = records(output);
  const ids = items.flatMap(({ id }) => (typeof id === "string" ? [id] : []));
  return [
    ...(new Set(ids).size < ids.length ? ["two items of one id"] : []),
    ...items.flatMap(({ type }, at) => {
      const next = items[at + 1]?.type;
      return type === "reasoning" && next === undefined ? ["reasoning without its item"] : [];
    }),
    ...items.flatMap(({ content, type }) =>
      type === "message" && records(content).every(({ text }) => Json.string(text) === "") ? ["an empty message"] : [],
    ),
  ];
};
