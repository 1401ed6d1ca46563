/**
 * Builds the next request of Gemini from a broken response.
 *
 * The response becomes one `model` content with its thought signatures in place and without the thoughts themselves. Each
 * `functionCall` has one `functionResponse`, in the same order, in the next content. A tool of Google is sent back only with its
 * result.
 */
import * as Result from "effect/Result";
import * as Json from "../../domain/Json.ts";
import type { SeamPlan } from "../../seam/TextSeam.ts";
import { type Closing, type ContinuationError, type KeptItem, type Prepared, refusal } from "../continuation/Input.ts";
import { closingMessage, withoutHalf, withTokenBudget } from "../continuation/SeamRequest.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import { freeText } from "../continuation/Words.ts";

/** The message list of a request and its form of text. Code Assist nests the request one level deeper. */
export const turn: TurnForm = {
  list: "contents",
  content: "parts",
  bare: false,
  wrapper: "request",
  part: (text) => ({ text }),
};

/** Builds the body of the next request. Code Assist nests the request one level deeper. */
export const build = (prepared: Prepared): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.gen(function* () {
    const { body, items, seam, whole } = prepared;
    const inner = body.contents === undefined ? Json.record(body.request) : undefined;
    const request = inner ?? body;
    const field = inner === undefined ? "contents" : "request.contents";
    if (!Array.isArray(request.contents)) return yield* refusal("invalid", field, "expected a list");
    const config = Json.record(request.generationConfig) ?? {};
    if ((Json.natural(config.candidateCount) ?? 1) > 1)
      return yield* refusal("several_choices", "generationConfig.candidateCount", "expected one candidate");
    const contents: ReadonlyArray<unknown> = request.contents;
    const { answer, lostHosted, responses } = partsOf(items);
    const spoken = answer.length > 0 && responses.length === 0;
    yield* freeText(spoken && !whole, jsonFormatField(config));
    const words = yield* closingMessage(prepared, { spoken, lostHosted, textOf: ({ json }) => Json.string(json.text) });
    const user = [...responses, ...(words === undefined ? [] : [{ text: words }])];
    const parts = seam === undefined ? answer : answer.map(trimPart);
    const answered = parts.length === 0 ? contents : withParts(contents, "model", parts);
    const next = withBudget(
      { ...request, contents: user.length === 0 ? answered : withParts(answered, "user", user) },
      seam,
    );
    return inner === undefined ? next : { ...body, request: next };
  });

const trimPart = (part: Json.JsonRecord): Json.JsonRecord =>
  typeof part.text === "string" ? { ...part, text: withoutHalf(part.text) } : part;

/** Applies the remaining token budget. The API accepts each field in two spellings. */
const withBudget = (request: Json.JsonRecord, seam: SeamPlan | undefined): Json.JsonRecord => {
  const name = nameIn(request, "generationConfig");
  const config = Json.record(request[name]);
  if (config === undefined) return request;
  const thinking = Json.record(fieldOf(config, "thinkingConfig")) ?? {};
  const field = nameIn(config, "maxOutputTokens");
  return { ...request, [name]: withTokenBudget(config, seam, [field], fieldOf(thinking, "thinkingBudget")) };
};

interface Parts {
  readonly answer: ReadonlyArray<Json.JsonRecord>;
  readonly responses: ReadonlyArray<Json.JsonRecord>;
  readonly lostHosted: boolean;
}

const partsOf = (items: ReadonlyArray<KeptItem>): Parts => {
  const answer: Array<Json.JsonRecord> = [];
  const responses: Array<Json.JsonRecord> = [];
  const answered = findPairs(items);
  let lostHosted = false;
  for (const item of items) {
    const { closing, json, type, whole } = item;
    if (type === "text" && (whole || Json.string(json.text) !== "")) answer.push(json);
    if (answered.has(item)) answer.push(json);
    else if (type === "hosted") lostHosted = true;
    if (closing === undefined) continue;
    const id = json.id === undefined ? {} : { id: json.id };
    const args: unknown = Json.parse(Json.string(json.input))?.json ?? {};
    const signature = json.thoughtSignature === undefined ? {} : { thoughtSignature: json.thoughtSignature };
    answer.push({ functionCall: { ...id, name: json.name, args }, ...signature });
    responses.push({ functionResponse: { ...id, name: json.name, response: responseOf(closing) } });
  }
  // A signature in an empty part belongs to the content before it. An answer of only such parts is empty.
  return { answer: answer.every(isEmpty) ? [] : answer, responses, lostHosted };
};

const isEmpty = (part: Json.JsonRecord): boolean => part.text === "";

/** Pairs hosted calls with their results, by id or, without an id, by order. */
const findPairs = (items: ReadonlyArray<KeptItem>): ReadonlySet<KeptItem> => {
  const found = new Set<KeptItem>();
  for (const result of items.filter((item) => item.type === "result")) {
    const call = items.find(
      (item) =>
        item.type === "hosted" && !found.has(item) && kindOf(item) === kindOf(result) && idOf(item) === idOf(result),
    );
    if (call !== undefined) found.add(call).add(result);
  }
  return found;
};

const kindOf = ({ json }: KeptItem): string =>
  json.executableCode !== undefined || json.codeExecutionResult !== undefined ? "code" : "tool";

const idOf = ({ json }: KeptItem): unknown =>
  Json.record(json.executableCode ?? json.codeExecutionResult ?? json.toolCall ?? json.toolResponse)?.id;

/** Builds the response object of a result. The API accepts only objects, and reads a result from `output` and a failure from `error`. */
const responseOf = ({ failed, output }: Closing): unknown =>
  Json.record(output) ?? (failed ? { error: output } : { output });

/** Adds parts to the last content if it has that role, else as a new content. */
const withParts = (
  contents: ReadonlyArray<unknown>,
  role: "model" | "user",
  parts: ReadonlyArray<Json.JsonRecord>,
): ReadonlyArray<unknown> => {
  const last = Json.record(contents.at(-1));
  // A content without a role is the user's.
  if (last === undefined || (last.role ?? "user") !== role) return [...contents, { role, parts }];
  return contents.with(-1, { ...last, parts: [...Json.list(last.parts), ...parts] });
};

const jsonFormatField = (config: Json.JsonRecord): string | undefined => {
  if (Json.string(config.responseMimeType) === "application/json") return "generationConfig.responseMimeType";
  const schema = ["responseSchema", "responseJsonSchema"].find((name) => Json.record(config[name]) !== undefined);
  return schema === undefined ? undefined : `generationConfig.${schema}`;
};

/** The spelling of a field in a record: camel case, or snake case if only that is present. */
const nameIn = (record: Json.JsonRecord, name: string): string => {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return record[name] === undefined && record[snake] !== undefined ? snake : name;
};

/** The value of a field, by its name in camel case. */
export const fieldOf = (record: Json.JsonRecord, name: string): unknown => record[nameIn(record, name)];

/** The request itself, which Code Assist nests one level deeper. */
export const requestIn = (body: Json.JsonRecord): Json.JsonRecord =>
  body.contents === undefined ? (Json.record(body.request) ?? body) : body;
