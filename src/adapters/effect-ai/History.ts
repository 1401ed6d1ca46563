/**
 * Keeps histories complete: neither a caller nor a provider gets a call without its result.
 *
 * `Chat` records every part that it receives, even from a stream that fails. If the handler of a call failed, died or was cancelled, a
 * result that says so is emitted before the failure. A consumer that no longer reads cannot receive that result. Its open calls are
 * therefore closed in the prompt of its next request.
 */
import { Stream } from "effect";
import { Prompt, Response } from "effect/ai";

/** The result of a call whose outcome is unknown, for the model and for people. */
export const unfinished = {
  type: "execution-interrupted",
  reason: "The call was interrupted before its result was known. It may have run, in part or as a whole.",
} as const;

/** Closes the calls that a stream leaves open, before its finish, its failure or its end. */
export const closeOpenCalls = <E, R>(
  stream: Stream.Stream<Response.AnyPart, E, R>,
): Stream.Stream<Response.AnyPart, E, R> =>
  Stream.suspend(() => {
    const open = new Map<string, string>();
    const close = (): ReadonlyArray<Response.AnyPart> => {
      const results = [...open].map(([id, name]) => interruptedResult(id, name));
      open.clear();
      return results;
    };
    const pass = (part: Response.AnyPart): ReadonlyArray<Response.AnyPart> => {
      if (part.type === "finish") return [...close(), part];
      if (part.type === "tool-call" && part.providerExecuted !== true) open.set(part.id, part.name);
      else if (part.type === "tool-result" && !part.preliminary) open.delete(part.id);
      else if (part.type === "tool-approval-request") open.delete(part.toolCallId);
      return [part];
    };
    return stream.pipe(
      Stream.mapArray((parts) => {
        const [first, ...rest] = parts.flatMap(pass);
        return first === undefined ? parts : [first, ...rest];
      }),
      Stream.catchCause((cause) =>
        Stream.concat(
          Stream.suspend(() => Stream.fromIterable(close())),
          Stream.failCause(cause),
        ),
      ),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(close()))),
    );
  });

const interruptedResult = (id: string, name: string): Response.AnyPart =>
  Response.makePart("tool-result", {
    id,
    name,
    providerExecuted: false,
    preliminary: false,
    result: unfinished,
    encodedResult: unfinished,
    isFailure: true,
  });

/**
 * Closes the calls in a prompt that an earlier turn left open. A call that waits for approval is not open.
 *
 * @returns the same prompt if no call is open
 */
export const mendPrompt = (prompt: Prompt.Prompt): Prompt.Prompt => {
  const closedIds = new Set<string>();
  for (const message of prompt.content) for (const id of idsOfClosedCalls(message)) closedIds.add(id);
  const open = (message: Prompt.Message) =>
    message.role === "assistant"
      ? message.content.filter((part) => part.type === "tool-call" && !part.providerExecuted && !closedIds.has(part.id))
      : [];
  if (!prompt.content.some((message) => open(message).length > 0)) return prompt;
  return Prompt.fromMessages(
    prompt.content.flatMap((message) => {
      const results = open(message).flatMap((part) => (part.type === "tool-call" ? [resultOf(part)] : []));
      return results.length === 0 ? [message] : [message, Prompt.toolMessage({ content: results })];
    }),
  );
};

/** Returns the ids of the calls that have a result or wait for approval. */
const idsOfClosedCalls = (message: Prompt.Message): ReadonlyArray<string> => {
  if (message.role !== "assistant" && message.role !== "tool") return [];
  return message.content.flatMap((part) => {
    if (part.type === "tool-result") return [part.id];
    return part.type === "tool-approval-request" ? [part.toolCallId] : [];
  });
};

const resultOf = ({ id, name }: Prompt.ToolCallPart): Prompt.ToolResultPart =>
  Prompt.toolResultPart({ id, name, isFailure: true, result: unfinished, providerExecuted: false });
