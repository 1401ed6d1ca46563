/**
 * Puts questions to a person in the terminal: by number or by word, Enter for the default, the end of the input for later.
 */
import { Effect } from "effect";
import type { Choice } from "../domain/Decision.ts";
import type { Question } from "../runtime/UserDecisions.ts";
import type { Called } from "./Answering.ts";
import type { Verdict } from "./Entry.ts";
import { oneLine } from "./Line.ts";
import type { Lines } from "./Lines.ts";

/** Where a person is asked. */
export interface Desk {
  readonly lines: Lines;
  readonly line: (text: string) => void;
  /** Writes without a line's end: what is typed stands behind it. */
  readonly prompt: (text: string) => void;
  /** A line was typed; empty at the end of the input. */
  readonly typed: (text: string) => void;
  /** What was typed before a question is no answer to it; in a pipe it is. */
  readonly isTerminal: boolean;
}

/** What an answer does. */
export const choiceWords: Readonly<Record<Choice, string>> = {
  retry: "ask again from the start; what was shown is withdrawn",
  continue: "go on from what is there",
  it_ran: "the tool did its work: go on from there",
  it_did_not_run: "the tool did nothing: go on without it",
  accept: "keep the part of the answer that is there, and end",
  stop: "end here",
};

/** Asks until an answer is understood. */
export const ask = (desk: Desk, question: Question): Effect.Effect<Choice | "parked"> =>
  asked(desk, question.message, question.choices, question.default_choice);

/** Asks of a call whose outcome nobody knows; there is no default, because nobody can guess it. */
export const confirm = (desk: Desk, { input, tool }: Called): Effect.Effect<Verdict | "parked"> =>
  asked(
    desk,
    `The process died while ${tool} ran: ${oneLine(input)}. Did it take effect?`,
    ["it_ran", "it_did_not_run"] as const,
    undefined,
  );

const asked = <A extends Choice>(
  desk: Desk,
  message: string,
  choices: ReadonlyArray<A>,
  unattended: A | undefined,
): Effect.Effect<A | "parked"> =>
  Effect.gen(function* () {
    if (desk.isTerminal) desk.lines.forget();
    desk.line(`? ${oneLine(message, 1_000)}`);
    for (const [index, choice] of choices.entries()) {
      const mark = choice === unattended ? " (Enter)" : "";
      desk.line(`  ${index + 1}  ${choice.padEnd(14)} ${choiceWords[choice]}${mark}`);
    }
    while (true) {
      desk.prompt("  > ");
      const typed = yield* desk.lines.next;
      desk.typed(typed ?? "");
      if (typed === undefined) return "parked" as const;
      const choice = meant(typed.trim(), choices, unattended);
      if (choice !== undefined) return choice;
      desk.line(`  type a number from 1 to ${choices.length}, or a word`);
    }
  });

/** A number, a word, or its beginning where only one word begins so. */
const meant = <A extends Choice>(
  typed: string,
  choices: ReadonlyArray<A>,
  unattended: A | undefined,
): A | undefined => {
  if (typed === "") return unattended;
  const numbered = /^\d+$/.test(typed) ? choices[Number(typed) - 1] : undefined;
  if (numbered !== undefined) return numbered;
  const word = typed.toLowerCase().replaceAll(/[\s-]+/g, "_");
  const begun = choices.filter((choice) => choice.startsWith(word));
  return choices.find((choice) => choice === word) ?? (begun.length === 1 ? begun[0] : undefined);
};
