/**
 * Puts questions to a person in the terminal: by number or by word, Enter for the default, the end of the input for later.
 */
import { Effect } from "effect";
import type { Choice } from "../../domain/Decision.ts";
import * as Choices from "../../policy/Choices.ts";
import type { Question } from "../../recorder/Question.ts";
import * as Words from "../../story/Words.ts";
import type { StartedCall } from "../conversation/ChatRun.ts";
import type { CallVerdict } from "../conversation/Entry.ts";
import { oneLine } from "../tools/PlainText.ts";
import type { LineReader } from "./LineReader.ts";

/** The terminal in which a person is asked. */
export interface PrompterOptions {
  readonly lines: LineReader;
  readonly line: (text: string) => void;
  /** Writes without a line's end: what is typed stands behind it. */
  readonly prompt: (text: string) => void;
  /** A line was typed; empty at the end of the input. */
  readonly typed: (text: string) => void;
  /** In a terminal, lines that were typed before a question do not answer it; in a pipe they do. */
  readonly isTerminal: boolean;
  /** Finds a call of the open run in the journal, with its input; undefined where no tool began it. */
  readonly called: (call: string) => StartedCall | undefined;
}

/**
 * Asks until an answer is understood. A retry that may run a call again names the call and needs a second answer: after a no to
 * the second question the first one is asked again.
 */
export const ask = (options: PrompterOptions, question: Question): Effect.Effect<Choice | "parked"> =>
  Effect.gen(function* () {
    const { choices, default_choice, message } = question;
    const repeated = choices.includes("retry") ? repeatedBy(question, options.called) : [];
    const repeats = repeated.length === 0 ? "" : ` A retry may run again: ${repeated.join("; ")}.`;
    while (true) {
      const choice = yield* put(options, { message: `${message}${repeats}`, choices, unattended: default_choice });
      if (choice !== "retry" || repeated.length === 0) return choice;
      const sure = yield* put(options, { message: `Run again: ${repeated.join("; ")}?`, ...confirming });
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

/** The calls that a retry may run again, each with its tool and its input. */
const repeatedBy = ({ decision, may_repeat }: Question, called: PrompterOptions["called"]): ReadonlyArray<string> => {
  const named = may_repeat.slice(0, namedMax).map((call) => {
    // The provider may have run tools unseen: these words name no call.
    if (call === Choices.providerTools || call === Choices.unknownTools) return call;
    const begun = called(call);
    const tool = begun?.tool ?? decision.calls?.find((it) => it.call === call)?.tool ?? "a tool";
    const input = begun === undefined ? "" : ` ${oneLine(begun.input)}`;
    return `${oneLine(tool)}${input} (call ${call})`;
  });
  return may_repeat.length > namedMax ? [...named, `${may_repeat.length - namedMax} more calls`] : named;
};

/** Asks about a call of unknown outcome; there is no default, because the outcome cannot be guessed. */
export const confirm = (
  options: PrompterOptions,
  { input, tool }: StartedCall,
): Effect.Effect<CallVerdict | "parked"> =>
  put(options, {
    message: `The process died while ${tool} ran: ${oneLine(input)}. Did it take effect?`,
    choices: ["it_ran", "it_did_not_run"] as const,
    unattended: undefined,
  });

/** A question with named choices. */
interface MultipleChoice<A extends string> {
  readonly message: string;
  readonly choices: ReadonlyArray<A>;
  /** The choice that Enter takes. */
  readonly unattended: A | undefined;
  readonly words?: Readonly<Record<A, string>>;
}

/** What a choice does, where the question has no words of its own for it. */
const wordsOf = (choice: string): string => choiceWords.get(choice)?.does ?? "";

const choiceWords: ReadonlyMap<string, { readonly does: string }> = new Map(Object.entries(Words.choices));

const put = <A extends string>(
  options: PrompterOptions,
  { choices, message, unattended, words }: MultipleChoice<A>,
): Effect.Effect<A | "parked"> =>
  Effect.gen(function* () {
    if (options.isTerminal) options.lines.forget();
    options.line(`? ${oneLine(message, 2_000)}`);
    for (const [index, choice] of choices.entries()) {
      const mark = choice === unattended ? " (Enter)" : "";
      options.line(`  ${index + 1}  ${choice.padEnd(14)} ${words?.[choice] ?? wordsOf(choice)}${mark}`);
    }
    while (true) {
      options.prompt("  > ");
      const typed = yield* options.lines.next;
      options.typed(typed ?? "");
      if (typed === undefined) return "parked" as const;
      const choice = choiceOf(typed.trim(), choices, unattended);
      if (choice !== undefined) return choice;
      options.line(`  type a number from 1 to ${choices.length}, or a word`);
    }
  });

/** A number, a word, or its beginning where only one word begins so. */
const choiceOf = <A extends string>(
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
