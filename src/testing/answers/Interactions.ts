/**
 * Writes an answer as a stream of Gemini's Interactions API: steps that start, grow and stop, then `interaction.completed` and `[DONE]`.
 */
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, EventRole, FinishName, Item, NumberedAnswer, ScriptedCall } from "./Items.ts";
import { model } from "./Items.ts";
import { errors } from "./OpenAiErrors.ts";

interface About {
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

/** Every event has an id, so that a client can resume a background interaction right after it. */
const addEventIds = (written: ReadonlyArray<Draft>): ReadonlyArray<AnswerEvent> =>
  written.map((draft, at) => {
    if ("frame" in draft) return draft;
    const { about, data, role, type } = draft;
    return frame(role, { ...data, event_id: `e${at}`, event_type: type }, { event: type, ...about });
  });

type Draft =
  | AnswerEvent
  | { readonly role: EventRole; readonly type: string; readonly data: object; readonly about: About };

const makeDraft = (role: EventRole, type: string, data: object, about: About = {}): Draft => ({
  role,
  type,
  data,
  about,
});

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const interaction = { id: `int_r${answer.request}`, object: "interaction", model, status: "in_progress" };
  const written = [
    makeDraft("lifecycle", "interaction.created", { interaction }),
    ...answer.items.flatMap((item, index) => itemEvents(item, index)),
  ];
  if (answer.finish === "none") return addEventIds(written);
  const { input, output } = tokens(answer.items);
  const usage = answer.usage ? { usage: { total_input_tokens: input, total_output_tokens: output } } : {};
  const ended = { ...interaction, status: statuses[answer.finish], ...usage };
  return [
    ...addEventIds([...written, makeDraft("terminal", "interaction.completed", { interaction: ended })]),
    frame("terminal", "[DONE]", { event: "done" }),
  ];
};

const itemEvents = (item: Item, index: number): ReadonlyArray<Draft> => {
  switch (item.type) {
    case "reasoning":
      return stepEvents("reasoning", "thought", item.deltas, index, (text) => ({
        type: "thought_summary",
        content: { type: "text", text },
      }));
    case "text":
    case "refusal":
      return stepEvents("text", "model_output", item.deltas, index, (text) => ({ type: "text", text }));
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error":
      return [
        makeDraft("error", "error", { error: { message: errors[item.error].message, code: errors[item.error].code } }),
      ];
    case "call":
      return item.call.executor === "provider" ? hostedEvents(item, index) : callEvents(item, index);
  }
};

const stepEvents = (
  role: "reasoning" | "text",
  type: string,
  deltas: ReadonlyArray<string>,
  index: number,
  delta: (text: string) => object,
): ReadonlyArray<Draft> => [
  makeDraft("lifecycle", "step.start", { index, step: { type } }),
  ...deltas.map((text) => makeDraft(role, "step.delta", { index, delta: delta(text) }, { serials: [text] })),
  makeDraft("lifecycle", "step.stop", { index }),
];

type CallItem = Extract<Item, { readonly type: "call" }>;

const callEvents = ({ call, cut, id, pieces }: CallItem, index: number): ReadonlyArray<Draft> => [
  makeDraft("call", "step.start", { index, step: { type: "function_call", id, name: call.name, arguments: {} } }),
  ...pieces.map((text) =>
    makeDraft("arguments", "step.delta", { index, delta: { type: "arguments_delta", arguments: text } }),
  ),
  makeDraft("arguments", "step.stop", { index }, cut ? {} : { call }),
];

/** A tool of Google's, and its result. */
const hostedEvents = ({ call, id }: CallItem, index: number): ReadonlyArray<Draft> => {
  const step = { type: `${call.name}_call`, id, arguments: JSON.parse(call.input) };
  const result = { type: `${call.name}_result`, call_id: id, result: "ok" };
  return [
    makeDraft("call", "step.start", { index, step }),
    makeDraft("arguments", "step.stop", { index }),
    makeDraft("call", "step.start", { index, step: result }, { call }),
    makeDraft("lifecycle", "step.stop", { index }),
  ];
};

const statuses: Record<Exclude<FinishName, "none">, string> = {
  stop: "completed",
  tool: "requires_action",
  length: "incomplete",
  content_filter: "incomplete",
};

/** Gemini's Interactions API. */
export const interactions: AnswerProtocol = {
  id: "google-interactions",
  shortName: "interactions",
  path: "/v1beta/interactions",
  basePath: "/v1beta",
  isServed: (path) => path.endsWith("/interactions"),
  write: events,
  errorBody: (status) => ({ error: { code: codes[status] ?? "internal", message: `status ${status}` } }),
  endsWith: "event",
  mayEnd: ({ event_type }) => event_type === "interaction.completed",
};

const codes: Record<number, string> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  429: "resource_exhausted",
  503: "unavailable",
};
