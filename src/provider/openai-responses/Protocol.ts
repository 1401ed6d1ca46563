/**
 * Assembles the OpenAI Responses protocol from the modules of this folder.
 */
import { type ResumeForm, wireProtocol } from "../protocol/WireProtocol.ts";
import * as Resume from "../stream/Resume.ts";
import { address } from "./Address.ts";
import { build, turn } from "./Continue.ts";
import { protocol } from "./Decode.ts";
import { document, ending, noOp } from "./OwnEvents.ts";
import { seamRefusal } from "./Seam.ts";
import { splice } from "./Splice.ts";

/** Resumes with `GET …/responses/{id}?stream=true&starting_after=N`. */
const resume: ResumeForm = {
  first: () => Resume.responses(),
  behind: (url, text) => {
    const cursor = Resume.parseResponses(text);
    if (cursor === undefined) return undefined;
    return { url: Resume.responsesUrl(url, cursor).href, verifier: Resume.responses(cursor) };
  },
};

/** The OpenAI Responses wire protocol. */
export const openAiResponses = wireProtocol(protocol, {
  name: "OpenAI Responses",
  address,
  continuation: { build, turn },
  seamRefusal,
  noOp,
  givenUp: { document, ending },
  takesComments: true,
  usage: { cachedApart: false, reasoningApart: false },
  // A job that is still running has no end yet. Another request may have started it in the background.
  eventsOf: (response) =>
    response.status === "queued" || response.status === "in_progress" ? [] : [{ type: "response.completed", response }],
  resume,
  splice,
});
