/** A sample of Gemini's `generateContent`. */
import { alternate, at, dataFrame, fields, list, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Ended, Said, Sample } from "./Sample.ts";

const message = (text: string) => ({ role: "user", parts: [{ text }] });

const chunk = (parts: ReadonlyArray<object>, { number = 1, usage }: Ended = {}, finishReason?: string) => ({
  candidates: [{ index: 0, content: { role: "model", parts }, ...(finishReason ? { finishReason } : {}) }],
  ...{ responseId: `resp-${number}`, modelVersion: "m" },
  ...(usage === undefined
    ? {}
    : {
        usageMetadata: {
          ...{ promptTokenCount: usage[0], candidatesTokenCount: usage[1], totalTokenCount: usage[0] + usage[1] },
        },
      }),
});

/** The parts of some content, each in a chunk of its own. */
const partsOf = (it: Said, piece?: number): ReadonlyArray<object> => {
  if ("text" in it) return pieces(it.text, piece).map((text) => ({ text }));
  if ("native" in it) return [it.native];
  if ("thought" in it) return pieces(it.thought, piece).map((text) => ({ text, thought: true }));
  if (it.open !== true) return [{ functionCall: { name: it.call, args: JSON.parse(it.pieces.join("")) } }];
  // Arguments that are announced as partial, and whose rest never comes.
  return it.pieces.map((stringValue, index) => {
    const partialArgs = [{ jsonPath: "$.cmd", stringValue, willContinue: true }];
    return { functionCall: { ...(index === 0 ? { name: it.call } : {}), partialArgs, willContinue: true } };
  });
};

export const googleGemini: Sample = {
  id: "google-gemini",
  vendor: "gemini",
  has: { thoughts: true, calls: "whole", hosted: true, codes: true },
  path: "/v1beta/models/m:streamGenerateContent?alt=sse",
  documentPath: "/v1beta/models/m:generateContent",
  base: "/v1beta",
  key: (key) => ({ "x-goog-api-key": key }),
  calls: [
    ...["generateContent", "streamGenerateContent?alt=sse", "countTokens", "embedContent", "batchEmbedContents"].map(
      (call) => `POST /v1beta/models/gemini-2.5-pro:${call}`,
    ),
    "POST /v1beta/tunedModels/mine:generateContent",
    "POST /v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
    "POST /v1/projects/p/locations/l/endpoints/7:generateContent",
  ],

  history: "contents",
  assistant: "model",
  bare: { contents: [] },
  question: (text) => ({ contents: [message(text)] }),
  message,
  histories: [
    { contents: [message("hi")] },
    { contents: [message("hi"), { role: "model", parts: [{ text: "Well," }] }] },
  ],
  streams: () => ({}),
  limit: (maxOutputTokens) => ({ generationConfig: { maxOutputTokens } }),
  json: { generationConfig: { responseMimeType: "application/json" } },
  check: (body) => {
    const outer = fields(body);
    const contents = list(outer.contents ?? fields(outer.request).contents);
    const problems = [...alternate(contents.map((content) => string(content.role)))];
    contents.forEach((content, at) => {
      const parts = list(content.parts);
      if (parts.length === 0) problems.push("an empty content");
      if (content.role !== "model") return;
      const name = (value: unknown) => `${string(fields(value).id)}/${string(fields(value).name)}`;
      const calls = parts.filter((part) => part.functionCall !== undefined).map((part) => name(part.functionCall));
      const behind = list(contents[at + 1]?.parts).filter((part) => part.functionResponse !== undefined);
      const results = behind.map((part) => name(part.functionResponse));
      if (calls.join() !== results.join()) problems.push(`calls ${calls} answered by ${results}`);
      const code = (field: string) => parts.filter((part) => part[field] !== undefined).length;
      if (code("executableCode") !== code("codeExecutionResult")) problems.push("code without its result");
      if (parts.some((part) => part.thought === true && part.thoughtSignature === undefined))
        problems.push("a thought");
    });
    return problems;
  },

  frame: dataFrame,
  start: (number) => chunk([{ text: "" }], { number }),
  delta: (text) => chunk([{ text }]),
  events: (said, ended = {}) => [
    ...said.flatMap((it) => partsOf(it, ended.piece)).map((it) => chunk([it], ended)),
    ...(ended.cut === true ? [] : [chunk([{ text: "" }], ended, ended.finish ?? "STOP")]),
  ],
  document: (said, ended = {}) =>
    chunk(
      said.flatMap((it) => partsOf(it)),
      ended,
      ended.finish ?? "STOP",
    ),
  finishes: { natural: "STOP", others: ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"] },
  failedFinish: {
    ...chunk([{ text: "" }], {}, "STOP"),
    error: { code: 500, message: "Internal error", status: "INTERNAL" },
  },
  failed: (words) => [{ error: { code: 500, status: "INTERNAL", message: words } }],
  errorEvent: (document) => document,
  refusal: (words) => ({
    status: 429,
    document: { error: { code: 429, message: words, status: "RESOURCE_EXHAUSTED" } },
  }),
  rateLimit: (details) => ({
    error: {
      code: 429,
      message: "You exceeded your current quota, please check your plan and billing details.",
      status: "RESOURCE_EXHAUSTED",
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.QuotaFailure",
          violations: [{ quotaId: "GenerateRequestsPerMinutePerProjectPerModel-FreeTier" }],
        },
        ...details,
      ],
    },
  }),
  noOp: /^data: \{"candidates":\[\{"content":\{"parts":\[\{"text":""\}\]/,

  recordings: ["thinking-text", "function-calls"],
  read: (event) => {
    const parts = list(at(event, "candidates", 0, "content", "parts"));
    const said = (thought: boolean) =>
      parts
        .filter((part) => (part.thought === true) === thought)
        .map((part) => string(part.text))
        .join("");
    return { text: said(false), reasoning: said(true) };
  },
  take: ({ json, kind }) => {
    // Anything that is no event is added to the text that it parses as JSON next.
    if (kind === "comment") return { broken: true };
    if (at(json, "error") !== undefined)
      return { problem: problemOf(at(json, "error"), kind === "bare" ? "bare" : "error") };
    const finish = textAt(json, "candidates", 0, "finishReason");
    const text = textAt(json, "candidates", 0, "content", "parts", 0, "text");
    const thought = at(json, "candidates", 0, "content", "parts", 0, "thought") === true;
    return { ...(text === undefined || thought ? {} : { text }), whole: finish !== undefined };
  },
};
