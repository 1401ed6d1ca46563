/**
 * Reads whether a document has nothing in it, by the decoder of its protocol: a document says what a stream would.
 */

import type { Progress } from "../../../domain/AttemptFacts.ts";
import * as Json from "../../../domain/Json.ts";
import { none, type Observation, type Usage } from "../../../domain/Observation.ts";
import type { Tolerance, WireProtocol } from "../../../provider/Protocols.ts";
import { isWhiteSpace } from "../../../provider/stream/Content.ts";

/** Longest document that is looked into, in UTF-16 code units: a response with nothing in it repeats its request at most. */
export const documentCharactersMax = 1024 * 1024;

/**
 * What the end of a document with nothing in it proves.
 *
 * @param body the document's text, which is JSON
 * @returns undefined for a document with anything in it, or that does not say that it is whole
 */
export const emptyEnd = (protocol: WireProtocol, body: string, tolerance: Tolerance): Observation | undefined => {
  const document = body.length > documentCharactersMax ? undefined : Json.record(Json.parse(body)?.json);
  if (document === undefined) return undefined;
  let state = protocol.initial(tolerance);
  let finish: string | undefined;
  let usage: Usage | undefined;
  let progress: Progress = "started";
  let characters = 0;
  for (const event of protocol.eventsOf(document)) {
    const [next, part] = protocol.step(state, { event: "message", data: JSON.stringify(event), bytes: 0 });
    const { content, observation } = part;
    if (observation.failure !== undefined || observation.calls.length > 0) return undefined;
    if (observation.progress === "output" && !(observation.shows === "text" && isWhiteSpace(content))) return undefined;
    if (content.some(({ kind }) => kind === "reasoning") || observation.progress === "reasoning")
      progress = "reasoning";
    characters += observation.characters;
    state = next;
    finish = observation.finish ?? finish;
    usage = { ...usage, ...observation.usage };
  }
  // Chat takes a finish for sure only before `[DONE]`, and a document has none: its finish is enough.
  if (finish === undefined) return undefined;
  return { ...none, progress, characters, terminal: true, finish, ...(usage === undefined ? {} : { usage }) };
};
