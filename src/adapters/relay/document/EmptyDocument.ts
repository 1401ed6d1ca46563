/**
 * Reads whether a document has nothing in it, by the decoder of its protocol: a document says what a stream would.
 */
import * as Json from "../../../domain/Json.ts";
import { none, type Observation, type Usage } from "../../../domain/Observation.ts";
import type { Tolerance, WireProtocol } from "../../../provider/Protocols.ts";

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
  for (const event of protocol.eventsOf(document)) {
    const [next, { observation }] = protocol.step(state, { event: "message", data: JSON.stringify(event), bytes: 0 });
    if (observation.progress !== "none" && observation.progress !== "started") return undefined;
    if (observation.failure !== undefined || observation.shows !== "nothing") return undefined;
    state = next;
    finish = observation.finish ?? finish;
    usage = { ...usage, ...observation.usage };
  }
  // Chat takes a finish for sure only before `[DONE]`, and a document has none: its finish is enough.
  if (finish === undefined) return undefined;
  return { ...none, terminal: true, finish, ...(usage === undefined ? {} : { usage }) };
};
