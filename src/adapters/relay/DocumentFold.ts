/**
 * Reads a complete response that is not a stream in its protocol's terms: its content, its calls, its end and its usage.
 */
import type { Progress } from "../../domain/AttemptFacts.ts";
import * as Json from "../../domain/Json.ts";
import { type CallSignal, failed, none, type Observation, text, type Usage } from "../../domain/Observation.ts";
import type { Tolerance, WireProtocol } from "../../provider/Protocols.ts";
import { isWhiteSpace } from "../../provider/stream/Content.ts";
import * as Decoder from "../../provider/stream/Decoder.ts";
import type { Part } from "../../provider/stream/Protocol.ts";

/** Maximum length of a document that is read, in UTF-16 code units. Of a longer one, only the fact that it ended is known. */
export const documentCharactersMax = 1024 * 1024;

/** Observes a document that is not read. A document proves its content and its end together. */
export const documentEnd: Observation = { ...text(0), terminal: true, finish: "document" };

/** Observes the end of a document that was streamed because it exceeds `documentBytesMax`. Its record shows that nothing in it was read. */
export const overLimitEnd: Observation = { ...none, quiet: true, terminal: true, finish: "document_over_limit" };

/**
 * Observes a JSON document as the end of a response. Its `failure` is set if the document reports one, or if a call in it cannot be read.
 *
 * @param json the parsed document
 */
export const observeDocument = (protocol: WireProtocol, json: unknown, tolerance: Tolerance): Observation => {
  const document = Json.record(json);
  if (document === undefined) return documentEnd;
  let state = protocol.initial(tolerance);
  const parts: Array<Part> = [];
  for (const event of protocol.eventsOf(document)) {
    const [next, part] = protocol.step(state, { event: "message", data: JSON.stringify(event), bytes: 0 });
    state = next;
    parts.push(part);
  }
  const seen = joinObservations(parts);
  const end = protocol.halt(state);
  // In Chat, only the end of a stream proves that a call cannot be read. Any other doubt about the end does not concern a document.
  const isUnread = seen.failure === undefined && !end.complete && end.failure.kind === "invalid_tool_input";
  return isUnread ? { ...failed(end.failure), ...usageIn(undefined, seen) } : seen;
};

/**
 * Observes a stream that a server has sent in place of the document. It is complete only with its terminal marker (L5).
 *
 * @param chunks the whole body
 */
export const observeStream = (
  protocol: WireProtocol,
  chunks: ReadonlyArray<Uint8Array>,
  tolerance: Tolerance,
): Observation => {
  const decoder = Decoder.make(protocol, { tolerance });
  const parts = chunks.flatMap((chunk) => decoder.push(chunk));
  const last = decoder.end();
  const { end } = last;
  if (end.complete) return joinObservations([...parts, ...last.parts]);
  // The content type was wrong, so the body is a document after all.
  return end.failure.kind === "protocol" && end.failure.reason === "not_a_stream" ? documentEnd : failed(end.failure);
};

/** Joins the observations of all events into that of the end. */
const joinObservations = (parts: ReadonlyArray<Part>): Observation => {
  let finish: string | undefined;
  let usage: Usage | undefined;
  let progress: Progress = "started";
  let characters = 0;
  const calls: Array<CallSignal> = [];
  for (const { content, observation } of parts) {
    if (observation.failure !== undefined) return { ...failed(observation.failure), ...usageIn(usage, observation) };
    if (isAnswer(content, observation)) progress = "output";
    else if (progress === "started" && isThought(content, observation)) progress = "reasoning";
    calls.push(...observation.calls);
    characters += observation.characters;
    finish = observation.finish ?? finish;
    usage = usageIn(usage, observation).usage;
  }
  const seen = { characters, calls, ...(usage === undefined ? {} : { usage }) };
  // A document without a finish does not say that it is complete, so it cannot be called empty.
  if (finish === undefined) return { ...documentEnd, ...seen };
  // Chat trusts a finish only before `[DONE]`, which a document does not have, so its finish is enough.
  const end = progress === "output" ? text(characters) : { ...none, progress };
  return { ...end, ...seen, terminal: true, finish };
};

const usageIn = (before: Usage | undefined, { usage }: Observation): { readonly usage?: Usage } =>
  before === undefined && usage === undefined ? {} : { usage: { ...before, ...usage } };

const isAnswer = (content: Part["content"], { calls, progress, shows }: Observation): boolean =>
  progress === "output" && (calls.length > 0 || shows !== "text" || !isWhiteSpace(content));

const isThought = (content: Part["content"], { progress }: Observation): boolean =>
  progress === "reasoning" || content.some(({ kind }) => kind === "reasoning");
