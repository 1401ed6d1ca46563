/**
 * Collects a streamed response into the parts of a whole one.
 */
import { type Effect, Stream } from "effect";
import type { AiError, Response } from "effect/ai";

type StreamPart = Response.StreamPartEncoded;

/** Runs a stream and returns its whole response: deltas joined to their blocks, in the order in which the blocks began. */
export const collect = <R>(
  stream: Stream.Stream<StreamPart, AiError.AiError, R>,
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError, R> =>
  Stream.runFold(stream, (): Array<Response.PartEncoded> => [], add);

const add = (content: Array<Response.PartEncoded>, part: StreamPart): Array<Response.PartEncoded> => {
  switch (part.type) {
    case "text-start":
      content.push({ type: "text", text: "" });
      return content;
    case "reasoning-start":
      content.push({ type: "reasoning", text: "" });
      return content;
    case "text-delta":
    case "reasoning-delta":
      return grow(content, part.delta);
    case "text-end":
    case "reasoning-end":
      return grow(content, "", part.metadata);
    case "tool-params-start":
    case "tool-params-delta":
    case "tool-params-end":
    case "error":
      return content;
    default:
      content.push(part);
      return content;
  }
};

/** Only one block is open at a time: the last text or reasoning. */
const grow = (
  content: Array<Response.PartEncoded>,
  text: string,
  metadata?: Response.ProviderMetadata,
): Array<Response.PartEncoded> => {
  const at = content.findLastIndex(({ type }) => type === "text" || type === "reasoning");
  const block = content[at];
  if (block?.type === "text" || block?.type === "reasoning")
    content[at] = { ...block, text: block.text + text, ...(metadata === undefined ? {} : { metadata }) };
  return content;
};
