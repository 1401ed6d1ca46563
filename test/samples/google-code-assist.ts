/** A sample of Code Assist: Gemini's protocol in an envelope. */

import { googleGemini } from "./google-gemini.ts";
import { dataFrame, fields } from "./Json.ts";
import type { Event, Sample } from "./Sample.ts";

const envelope = (request: object) => ({ model: "m", user_prompt_id: "u", request });
const wrapped = (response: object) => ({ response, traceId: "t" });
const wrappedEvent = (event: Event): Event => (typeof event === "string" ? event : wrapped(event));

const { document, events, histories, json, limit, message, question, read, start, take } = googleGemini;

export const googleCodeAssist: Sample = {
  ...googleGemini,
  id: "google-code-assist",
  vendor: "code-assist",
  path: "/v1internal:streamGenerateContent?alt=sse",
  documentPath: "/v1internal:generateContent",
  base: "",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: ["generateContent", "streamGenerateContent?alt=sse", "countTokens"].map((call) => `POST /v1internal:${call}`),

  wrapper: "request",
  bare: envelope({ contents: [] }),
  question: (text) => envelope(question(text)),
  message,
  histories: [envelope(histories[0]), ...histories.slice(1).map(envelope)],
  limit: (tokens) => envelope({ contents: [], ...limit(tokens) }),
  json: { request: { contents: [message("hi")], ...json } },

  frame: dataFrame,
  start: (number) => wrapped(start(number)),
  delta: (text) => wrapped(googleGemini.delta(text)),
  events: (said, ended) => events(said, ended).map(wrappedEvent),
  document: (said, ended) => wrapped(document(said, ended)),
  failedFinish: wrapped(googleGemini.failedFinish),
  noOp: /^data: \{"response":\{"candidates":\[\{"content":\{"parts":\[\{"text":""\}\]/,

  recordings: ["thinking-text", "function-calls"],
  read: (event) => read(fields(event).response),
  // gemini-cli's reader of this wire reads only `response`, and skips comments.
  take: (frame, before) => {
    const { json } = frame;
    if (frame.kind === "comment") return {};
    return take({ ...frame, json: fields(json).response ?? json }, before);
  },
};
