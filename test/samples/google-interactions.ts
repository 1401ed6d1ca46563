/** A sample of Gemini's Interactions API. */
import { at, dataFrame, fields, list, pairs, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Ended, Event, Said, Sample } from "./Sample.ts";

const message = (text: string) => ({ type: "user_input", content: [{ type: "text", text }] });

const start = (number: number) => ({
  interaction: { id: `int_${number}`, object: "interaction", model: "m", status: "in_progress" },
  event_type: "interaction.created",
});

const stepOf = (index: number, step: object, deltas: ReadonlyArray<object>, open: boolean): ReadonlyArray<object> => [
  { index, step, event_type: "step.start" },
  ...deltas.map((delta) => ({ index, delta, event_type: "step.delta" })),
  ...(open ? [] : [{ index, event_type: "step.stop" }]),
];

const eventsOf = (it: Said, index: number, open: boolean, { number = 1, piece }: Ended): ReadonlyArray<object> => {
  if ("text" in it)
    return stepOf(
      index,
      { type: "model_output" },
      pieces(it.text, piece).map((text) => ({ type: "text", text })),
      open,
    );
  if ("thought" in it) {
    const summary = pieces(it.thought, piece).map((text) => ({
      type: "thought_summary",
      content: { type: "text", text },
    }));
    const signed = it.signature === undefined ? [] : [{ type: "thought_signature", signature: it.signature }];
    return stepOf(index, { type: "thought" }, [...summary, ...signed], open);
  }
  if ("native" in it) return stepOf(index, { type: "model_output" }, [it.native], open);
  const begun = { type: "function_call", id: `call_${number}_${index}`, name: it.call, arguments: {} };
  const deltas = it.pieces.map((arguments_) => ({ type: "arguments_delta", arguments: arguments_ }));
  return stepOf(index, begun, deltas, open || it.open === true);
};

const stepIn = (it: Said, index: number): object => {
  if ("text" in it) return { type: "model_output", content: [{ type: "text", text: it.text }] };
  if ("thought" in it) return { type: "thought", summary: [{ type: "text", text: it.thought }] };
  if ("native" in it) return { type: "model_output", content: [it.native] };
  return { type: "function_call", id: `call_${index}`, name: it.call, arguments: JSON.parse(it.pieces.join("")) };
};

const natural = (said: ReadonlyArray<Said>): string =>
  said.some((it) => "call" in it) ? "requires_action" : "completed";

const usageOf = ([total_input_tokens, total_output_tokens]: readonly [number, number]) => ({
  usage: { total_input_tokens, total_output_tokens, total_tokens: total_input_tokens + total_output_tokens },
});

const ended = (said: ReadonlyArray<Said>, { finish = natural(said), number = 1, usage }: Ended) => ({
  ...{ id: `int_${number}`, object: "interaction", model: "m", status: finish },
  ...(usage === undefined ? {} : usageOf(usage)),
});

const frameOf = (event: Event): string => {
  const name = typeof event === "string" ? "done" : string(fields(event).event_type) || "error";
  return `event: ${name}\n${dataFrame(event)}`;
};

export const googleInteractions: Sample = {
  id: "google-interactions",
  vendor: "gemini",
  has: { thoughts: true, calls: "pieces", hosted: true, codes: true },
  path: "/v1beta/interactions",
  documentPath: "/v1beta/interactions",
  base: "/v1beta",
  key: (key) => ({ "x-goog-api-key": key }),
  calls: ["POST /v1beta/interactions", "POST /v1beta1/projects/p/locations/l/interactions"],

  history: "input",
  assistant: "model",
  bare: { model: "m", input: "hi", stream: true, store: false },
  question: (text) => ({ model: "m", store: false, stream: true, input: [message(text)] }),
  message,
  histories: [
    { input: [message("hi")] },
    { input: [message("hi"), { type: "model_output", content: [{ type: "text", text: "Well," }] }, message("go on")] },
    {
      input: [
        message("hi"),
        { type: "function_call", id: "t0", name: "b", arguments: {} },
        { type: "function_result", call_id: "t0", name: "b", result: "x" },
      ],
    },
  ],
  streams: (stream) => ({ stream }),
  limit: (max_output_tokens) => ({ generation_config: { max_output_tokens } }),
  json: { response_format: { type: "text", mime_type: "application/json" } },
  check: (body) => {
    const steps = list(fields(body).input);
    const problems: Array<string> = [];
    if (["model_output", "thought"].includes(string(steps.at(-1)?.type))) problems.push("ends with the model");
    const of = (type: string) => steps.filter((it) => it.type === type);
    problems.push(
      ...pairs(
        "steps",
        of("function_call").map(({ id }) => string(id)),
        of("function_result").map(({ call_id }) => string(call_id)),
      ),
    );
    for (const step of steps) if (string(step.type) === "") problems.push("a step without a type");
    return problems;
  },

  frame: frameOf,
  start,
  delta: (text) => ({ index: 9, delta: { type: "text", text }, event_type: "step.delta" }),
  events: (said, how = {}) => [
    start(how.number ?? 1),
    ...said.flatMap((it, index) => eventsOf(it, index, how.cut === true && index === said.length - 1, how)),
    ...(how.cut === true ? [] : [{ interaction: ended(said, how), event_type: "interaction.completed" }]),
    ...(how.cut === true || how.lacksLast === true ? [] : ["[DONE]"]),
  ],
  document: (said, how = {}) => ({ ...ended(said, how), steps: said.map(stepIn) }),
  finishes: { natural: "completed", others: ["incomplete", "budget_exceeded", "requires_continuation"] },
  failedFinish: {
    interaction: ended([], {}),
    error: { code: "internal", message: "Internal error" },
    event_type: "interaction.completed",
  },
  failed: (words) => [start(1), { error: { code: "internal", message: words }, event_type: "error" }],
  errorEvent: (document) => ({ ...document, event_type: "error" }),
  refusal: (words) => ({ status: 429, document: { error: { code: "resource_exhausted", message: words } } }),
  rateLimit: (details) => ({ error: { code: "resource_exhausted", message: "Resource exhausted.", details } }),
  noOp: /^event: interaction\.status_update\ndata: \{"interaction_id":"","status":"in_progress","event_type":"interaction\.status_update"\}\n\n/,

  recordings: ["thinking-text", "function-calls"],
  read: (event) => ({
    text: string(at(event, "delta", "text")),
    reasoning: string(at(event, "delta", "content", "text")),
  }),
  take: ({ json, kind }) => {
    if (kind !== "event") return {};
    if (at(json, "error") !== undefined) return { problem: problemOf(at(json, "error"), "error") };
    const text = textAt(json, "delta", "text");
    return {
      ...(text === undefined ? {} : { text }),
      whole: at(json, "event_type") === "interaction.completed",
    };
  },
};
