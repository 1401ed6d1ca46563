/**
 * Writes honest continuations in OpenAI Chat and Gemini.
 */
import * as Json from "../../../src/domain/Json.ts";
import { bytesOf } from "../../../src/provider/seam/TextGate.ts";
import { textOf } from "../../../src/provider/stream/Content.ts";
import type { Continuer, Honest, Told } from "./Spliced.ts";

/** A text in pieces, as a model would send it. */
const piecesOf = (text: string, length = 7): ReadonlyArray<string> => {
  const pieces: Array<string> = [];
  for (let at = 0; at < text.length; at += length) pieces.push(text.slice(at, at + length));
  return pieces;
};

/** OpenAI Chat: another id, a role, reasoning, an empty delta, the anchor in pieces, and the rest with every name another. */
export const chatContinuer: Continuer = ({ anchor, attempt, first, rest }) => {
  const chunks = [...first, ...rest].map(({ json }) => Json.record(json)).filter((json) => json !== undefined);
  const head = chunks.find(({ choices }) => Json.list(choices).length > 0) ?? {};
  const [choice] = Json.list(head.choices).map(Json.record);
  const names = (json: Json.JsonRecord): Json.JsonRecord => ({
    ...json,
    ...("id" in json ? { id: `second-${attempt}` } : {}),
    ...("created" in json ? { created: 42 + attempt } : {}),
    ...("model" in json ? { model: "another-model" } : {}),
    ...("system_fingerprint" in json ? { system_fingerprint: `fp_${attempt}` } : {}),
  });
  const { delta: _delta, finish_reason: _finish, message: _message, ...entry } = choice ?? {};
  const { usage: _usage, error: _error, x_groq: _groq, ...top } = head;
  const chunk = (delta: Json.JsonRecord): Told => ({
    data: names({
      ...top,
      choices: [
        { ...entry, delta, ...(choice !== undefined && "finish_reason" in choice ? { finish_reason: null } : {}) },
      ],
    }),
  });
  return [
    chunk({ role: "assistant", content: "" }),
    chunk({ reasoning_content: "So I was cut off.", content: null }),
    chunk({ reasoning: "Go on.", reasoning_details: [{ type: "reasoning.text", text: "Go on.", index: 0 }] }),
    ...piecesOf(anchor).map((content) => chunk({ content })),
    ...rest.map(({ event, json }) => {
      const record = Json.record(json);
      return { event: event.event, data: record === undefined ? event.data : names(record) };
    }),
  ].filter(({ data }) => data !== "");
};

/** Gemini: another id, a thought, the anchor in pieces, and the rest with its places counted from the anchor on. */
export const geminiContinuer: Continuer = (honest) => {
  const { anchor, attempt, first, rest } = honest;
  const [head = {}] = first.map(({ json }) => Json.record(json)).filter((json) => json !== undefined);
  const names = (json: Json.JsonRecord): Json.JsonRecord => ({
    ...json,
    ...("responseId" in json ? { responseId: `second-${attempt}` } : {}),
    ...("modelVersion" in json ? { modelVersion: "another-model" } : {}),
    ...("createTime" in json ? { createTime: "later" } : {}),
  });
  const wrapped = Json.record(head.response);
  const inner = wrapped ?? head;
  const finishes = first.some(({ json }) => JSON.stringify(json).includes("finishReason"));
  const chunk = (part: Json.JsonRecord): Told => {
    const candidate = {
      content: { parts: [part], role: "model" },
      ...(finishes ? { finishReason: "STOP" } : {}),
      index: 0,
    };
    const json = names({ ...inner, candidates: [candidate] });
    return { data: wrapped === undefined ? json : { ...head, response: json } };
  };
  return [
    chunk({ text: "So I was cut off.", thought: true }),
    ...piecesOf(anchor).map((text) => chunk({ text })),
    ...rest.map(({ event, json }) => {
      const record = Json.record(json);
      const body = Json.record(record?.response);
      const data =
        record === undefined
          ? event.data
          : body === undefined
            ? names(counted(record, honest))
            : { ...record, response: names(counted(body, honest)) };
      return { event: event.event, data };
    }),
  ];
};

/** The places of sources, as the second response counts them: those that stand in front of its anchor are not its own. */
const counted = (json: Json.JsonRecord, { anchor, first }: Honest): Json.JsonRecord => {
  const shift = bytesOf(first.map(({ content }) => textOf(content)).join("")) - bytesOf(anchor);
  const candidates = Json.list(json.candidates).map((entry) => {
    const candidate = Json.record(entry) ?? {};
    const grounding = Json.record(candidate.groundingMetadata);
    if (grounding?.groundingSupports === undefined) return candidate;
    const groundingSupports = Json.list(grounding.groundingSupports).flatMap((support) => {
      const record = Json.record(support) ?? {};
      const segment = Json.record(record.segment) ?? {};
      const start = (Json.natural(segment.startIndex) ?? 0) - shift;
      if (start < 0) return [];
      return [{ ...record, segment: { ...segment, startIndex: start, endIndex: Number(segment.endIndex) - shift } }];
    });
    return { ...candidate, groundingMetadata: { ...grounding, groundingSupports } };
  });
  return json.candidates === undefined ? json : { ...json, candidates };
};
