/**
 * Describes the seams of a run for a person: the position at which shown text continued, the proof of the seam, or the reason why it could
 * not be proven.
 *
 * The reasons why a seam was not proven are in policy/Explanation.ts, with the sentences of decisions.
 */

import * as Schema from "effect/Schema";
import type { Evidence } from "../domain/RunIncident.ts";
import { SeamFault, type SeamProof, SeamRefusal } from "../domain/SeamWords.ts";
import { seamFaults } from "../policy/Explanation.ts";
import type { AttemptRecord, RunRecord } from "../recorder/RunRecord.ts";
import { groupDigits } from "./Times.ts";
import { capitalize } from "./Words.ts";

/** Words for the proof of a seam. */
export const seamProofs: Readonly<Record<SeamProof, string>> = {
  anchor: "the new text began with the end of the shown text",
  prefill: "the provider declares that it continues the text that it is given",
};

/** Reasons why shown text is not continued, and the remedy for each. All are whole sentences. */
export const seamRefusals: Readonly<Record<SeamRefusal, { readonly why: string; readonly remedy: string }>> = {
  no_seam: {
    why: "We cannot prove where new text would join the shown text.",
    remedy: "Give the run a `seam`. This process does not know what another process has shown.",
  },
  structured_output: {
    why: "The answer must be one whole JSON document, and two halves cannot be joined.",
    remedy: "Ask again.",
  },
  several_choices: {
    why: "The request asks for several answers at once.",
    remedy: "Ask for one answer per request.",
  },
  logprobs: {
    why: "The request asks for the probability of every token, and one token may span the seam.",
    remedy: "Leave `logprobs` out if you do not read them.",
  },
  not_text: {
    why: "The answer is audio or images, whose end cannot be quoted.",
    remedy: "Ask again.",
  },
  server_state: {
    why: "The provider stores the answer or the conversation, and would store a second answer in addition to the first.",
    remedy: "Send `store: false`, and the conversation itself instead of its id.",
  },
  forced_tool: {
    why: "The request forces a tool call, so its answer cannot continue with text.",
    remedy: "Set `tool_choice` to `auto`.",
  },
  refusal_shown: {
    why: "The model had begun to refuse, and we do not continue a refusal.",
    remedy: "Reword the request.",
  },
  not_text_last: {
    why: "The last shown part is a tool call or another part that is not text, or it contains a cut call.",
    remedy: "Ask again, or continue from the question.",
  },
  repeats_itself: {
    why: "The shown text repeats itself, so its end occurs in it more than once.",
    remedy: "Accept the partial answer, or ask again.",
  },
  too_long: {
    why: "The shown text is too long to pay for again.",
    remedy: "Accept the partial answer, and ask for the rest of it.",
  },
  blank: {
    why: "Only white space was shown.",
    remedy: "Ask again: no readable text is lost.",
  },
  seams_spent: {
    why: "The answer has been continued as often as allowed.",
    remedy: "Raise `max` of `Seam.of`: each continuation is a request that you pay for.",
  },
  unproven: {
    why: "The model was asked to continue, but its text does not join the shown text.",
    remedy: "Accept the partial answer, or ask again.",
  },
  unbuildable: {
    why: "We do not know enough to build the request that would continue the answer.",
    remedy: "Ask again.",
  },
};

const isRefusal = Schema.is(SeamRefusal);

/** Place at which the text of an attempt joins the shown text, and its proof. */
export interface SeamStory {
  /** Length of the text before the seam, in UTF-16 code units. */
  readonly at: number;
  readonly proof: SeamProof;
  /** True if the seam is proven. No text of the attempt is shown before that. */
  readonly proven: boolean;
  /** Reason why the seam was not proven, or was refuted after its proof. Undefined if the proof holds, or if the attempt broke first. */
  readonly fault: SeamFault | undefined;
  /** For example `It continues after 412 characters: the new text began with …`. */
  readonly said: string;
}

/**
 * Returns the seam of an attempt; undefined if the attempt continues no text.
 *
 * @param evidence the attempt's evidence on record
 */
export const seamOf = (
  { seam }: Pick<AttemptRecord, "seam">,
  evidence: ReadonlyArray<Evidence>,
): SeamStory | undefined => {
  if (seam === undefined) return undefined;
  const fault = evidence.findLast((it) => it.event === "seam" && it.detail !== undefined && isFault(it.detail))?.detail;
  const own = { ...seam, fault: fault !== undefined && isFault(fault) ? fault : undefined };
  return { ...own, said: describeSeam(own) };
};

const isFault = Schema.is(SeamFault);

const describeSeam = ({ at, fault, proof, proven }: Omit<SeamStory, "said">): string => {
  const why = fault === undefined ? undefined : capitalize(seamFaults[fault]);
  if (proven)
    return `It continues after ${formatCharacters(at)}: ${seamProofs[proof]}.${why === undefined ? "" : ` ${why}.`}`;
  return `It was asked to continue after ${formatCharacters(at)}, given ${asked[proof]}. ${why ?? "The join is not proven"}, so none of its text was shown.`;
};

/** Text that the request of a seam contains. */
const asked: Readonly<Record<SeamProof, string>> = {
  anchor: "the end of the shown text",
  prefill: "the shown text",
};

/** Formats a length of text: `one character`, `1 204 characters`. */
export const formatCharacters = (at: number): string => (at === 1 ? "one character" : `${groupDigits(at)} characters`);

/** Reason why shown text is not continued. */
export interface RefusalStory {
  readonly reason: SeamRefusal;
  readonly why: string;
  readonly remedy: string;
}

/** Formats a refusal in a line: the reason, and what can be done about it. */
export const refusalText = ({ remedy, why }: RefusalStory): string =>
  `It does not continue automatically. ${why} ${remedy}`;

/**
 * Returns the reason why the text of an attempt was not continued; undefined if a continuation was not refused.
 *
 * @param evidence the attempt's evidence on record, in order; the last refusal counts
 */
export const refusalOf = (evidence: ReadonlyArray<Evidence>): RefusalStory | undefined => {
  const reason = evidence.findLast(({ event }) => event === "seam_refused")?.detail;
  return reason === undefined || !isRefusal(reason) ? undefined : { reason, ...seamRefusals[reason] };
};

/** Returns the evidence on record of an attempt, in order. */
export const evidenceOf = ({ evidence: { first, last } }: RunRecord, attempt: number): ReadonlyArray<Evidence> =>
  [...first, ...last].filter((it) => it.attempt === attempt);

/** One piece of text that was shown in pieces. */
export interface TextPiece {
  readonly attempt: number;
  /** Start of the piece in the text, in UTF-16 code units. */
  readonly from: number;
  /** End of the piece; undefined for the last piece, because the record does not contain its length. */
  readonly to: number | undefined;
  /** Proof that joins this piece to the piece before; undefined for the first piece. */
  readonly proof: SeamProof | undefined;
}

/**
 * Returns the texts of a run that continue at a seam, each as its pieces in order. An attempt that showed no text has no piece, and a text
 * that was started again is a separate entry.
 */
export const textsAcrossSeams = ({
  attempts,
}: Pick<RunRecord, "attempts">): ReadonlyArray<ReadonlyArray<TextPiece>> => {
  const texts: Array<Array<TextPiece>> = [];
  for (const { attempt, facts, seam } of attempts) {
    const text = texts.at(-1);
    const last = text?.at(-1);
    if (seam?.proven === true && text !== undefined && last !== undefined && seam.at >= last.from) {
      text[text.length - 1] = { ...last, to: seam.at };
      text.push({ attempt, from: seam.at, to: undefined, proof: seam.proof });
    } else if (seam?.proven === true) {
      // The earlier attempts are no longer on record.
      texts.push([{ attempt, from: seam.at, to: undefined, proof: seam.proof }]);
    } else if (facts.shown === "text") {
      texts.push([{ attempt, from: 0, to: undefined, proof: undefined }]);
    }
  }
  return texts.filter((text) => text.some(({ proof }) => proof !== undefined));
};
