/**
 * Writes an answer as a Code Assist stream: Gemini's chunks, each in an envelope.
 */
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { googleGemini } from "./GoogleGemini.ts";
import type { AnswerEvent } from "./Items.ts";

/** Wraps the chunk of an event. Errors, comments and a script's own bytes have no envelope. */
const wrap = (event: AnswerEvent): AnswerEvent => {
  const { frame, role } = event;
  if (typeof frame !== "string" || role === "error" || role === "ping") return event;
  return { ...event, frame: `data: {"response":${frame.slice("data: ".length).trimEnd()},"traceId":"t"}\n\n` };
};

/** Code Assist, the protocol of gemini-cli for users with a Google account. */
export const codeAssist: AnswerProtocol = {
  ...googleGemini,
  id: "google-code-assist",
  shortName: "code-assist",
  path: "/v1internal:streamGenerateContent?alt=sse",
  basePath: "",
  isServed: (path) => path.endsWith("/v1internal:streamGenerateContent"),
  write: (answer) => googleGemini.write(answer).map(wrap),
};
