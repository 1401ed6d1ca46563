/**
 * Decodes streams of Code Assist: each event is one of Gemini's in an envelope, which Gemini's decoder reads.
 */
import * as Gemini from "../gemini/Decode.ts";
import { type Protocol, renamed } from "../stream/Protocol.ts";

/** The protocol's id. */
export const id = "google-code-assist";

/**
 * Google Code Assist, `v1internal:streamGenerateContent` with `alt=sse`.
 *
 * Complete when: as in Google Gemini
 * Tolerated: as in Google Gemini
 */
export const protocol: Protocol<Gemini.State, typeof id> = renamed(Gemini.protocol, id);
