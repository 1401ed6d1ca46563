/** Detects documents without content, using the decoder of their protocol, because a document contains the same data as a stream. */

import type { Progress } from "../../../domain/AttemptFacts.ts";
import * as Json from "../../../domain/Json.ts";
import { none, type Observation, type Usage } from "../../../domain/Observation.ts";
import type { Tolerance, WireProtocol } from "../../../provider/Protocols.ts";
import { isWhiteSpace } from "../../../provider/stream/Content.ts";

/** Maximum length of a document that is examined, in UTF-16 code units. An empty response at most repeats its request. */
export const documentCharactersMax = 1024 * 1024;

/**
 * Returns the observation for the end of a document without content.
 *
 * @param body the document's text, which is JSON
 * @returns undefined for a document that has content or does not say that it is complete
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
  // Chat trusts a finish only before `[DONE]`, which a document does not have, so its finish is enough.
  if (finish === undefined) return undefined;
  return { ...none, progress, characters, terminal: true, finish, ...(usage === undefined ? {} : { usage }) };
};
