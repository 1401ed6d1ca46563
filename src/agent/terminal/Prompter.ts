/**
 * Puts questions to a person in the terminal: by number or by word, Enter for the default, the end of the input for later.
 */
import { Effect } from "effect";
import type { Choice } from "../../domain/Decision.ts";
import * as Choices from "../../policy/Choices.ts";
import type { Question } from "../../recorder/Question.ts";
import type { Called } from "../conversation/ChatRun.ts";
import type { Verdict } from "../conversation/Entry.ts";
import { oneLine } from "../tools/PlainText.ts";
import type { Lines } from "./LineReader.ts";

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
  /** A call of the open run as the journal has it, with what it was to do; undefined where it never began. */
  readonly called: (call: string) => Called | undefined;
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

/**
 * Asks until an answer is understood. A retry that may run a call again names the call, and is asked for twice: a
 * person who says no to the second question is asked the first one again.
 */
export const ask = (desk: Desk, question: Question): Effect.Effect<Choice | "parked"> =>
  Effect.gen(function* () {
    const { choices, default_choice, message } = question;
    const repeated = choices.includes("retry") ? repeatedBy(question, desk.called) : [];
    const told = repeated.length === 0 ? "" : ` A retry may run again: ${repeated.join("; ")}.`;
    while (true) {
      const choice = yield* asked(desk, { message: `${message}${told}`, choices, unattended: default_choice });
      if (choice !== "retry" || repeated.length === 0) return choice;
      const sure = yield* asked(desk, { message: `Run again: ${repeated.join("; ")}?`, ...confirming });
      if (sure === "parked") return sure;
      if (sure === "yes") return choice;
    }
  });

const confirming = {
  choices: ["yes", "no"],
  unattended: "no",
  words: { yes: "ask again from the start, whatever runs twice", no: "go back to the question" },
} as const;

/** Most calls that are named; the others are counted. */
const namedMax = 6;

/** What a retry may run again: of a call its tool and what it was to do. */
const repeatedBy = ({ decision, may_repeat }: Question, called: Desk["called"]): ReadonlyArray<string> => {
  const named = may_repeat.slice(0, namedMax).map((call) => {
    // What the provider may have run unseen is no call of ours.
    if (call === Choices.providerTools || call === Choices.unknownTools) return call;
    const begun = called(call);
    const tool = begun?.tool ?? decision.calls?.find((it) => it.call === call)?.tool ?? "a tool";
    const input = begun === undefined ? "" : ` ${oneLine(begun.input)}`;
    return `${oneLine(tool)}${input} (call ${call})`;
  });
  return may_repeat.length > namedMax ? [...named, `${may_repeat.length - namedMax} more calls`] : named;
};

/** Asks of a call whose outcome nobody knows; there is no default, because nobody can guess it. */
export const confirm = (desk: Desk, { input, tool }: Called): Effect.Effect<Verdict | "parked"> =>
  asked(desk, {
    message: `The process died while ${tool} ran: ${oneLine(input)}. Did it take effect?`,
    choices: ["it_ran", "it_did_not_run"] as const,
    unattended: undefined,
  });

/** What is put to a person. */
interface Asked<A extends string> {
  readonly message: string;
  readonly choices: ReadonlyArray<A>;
  /** What Enter takes. */
  readonly unattended: A | undefined;
  readonly words?: Readonly<Record<A, string>>;
}

/** What a choice does, where the question does not say it in words of its own. */
const wordsOf = (choice: string): string => (choice in choiceWords ? choiceWords[choice as Choice] : "");

const asked = <A extends string>(
  desk: Desk,
  { choices, message, unattended, words }: Asked<A>,
): Effect.Effect<A | "parked"> =>
  Effect.gen(function* () {
    if (desk.isTerminal) desk.lines.forget();
    desk.line(`? ${oneLine(message, 2_000)}`);
    for (const [index, choice] of choices.entries()) {
      const mark = choice === unattended ? " (Enter)" : "";
      desk.line(`  ${index + 1}  ${choice.padEnd(14)} ${words?.[choice] ?? wordsOf(choice)}${mark}`);
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
const meant = <A extends string>(
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
