import { describeChoice } from "../../story/FailureWords.ts";
import { describeRepeats, expiryOf, type OpenQuestion } from "../../story/Question.ts";
import { refusalText } from "../../story/SeamWords.ts";
import { paragraph, wrap } from "../terminal/Prose.ts";
import { quoteForShell, type Screen } from "../terminal/Screen.ts";

const margin = 16;

/** Formats an open question as lines for a terminal: the message, each choice with its effect, and the command that answers it. */
export const questionText = (runId: string, open: OpenQuestion, { columns, ink, now, type }: Screen): string => {
  const layout = { columns, indent: 4, margin };
  return [
    ...wrap(open.message, columns - 2).map((line) => `  ${line}`),
    ...(open.refusal === undefined ? [] : wrap(refusalText(open.refusal), columns - 2).map((line) => `  ${line}`)),
    "",
    ...open.question.choices.map((choice) => {
      const repeats = choice === "retry" ? open.repeats : undefined;
      const risk = repeats === undefined ? "" : `. May run again: ${describeRepeats(repeats)}`;
      const tone = repeats === undefined ? "strong" : "ask";
      return paragraph(choice, `${describeChoice(choice, open.incident)}${risk}`, layout, ink, tone);
    }),
    "",
    paragraph(
      "Unattended",
      expiryOf(open, now, (choice) => `“${choice}”`),
      { ...layout, indent: 2, margin: margin + 2 },
      ink,
    ),
    `  ${ink("quiet", "To answer")}`,
    `    ${ink("strong", type(`runs answer ${quoteForShell(runId)} CHOICE`))}`,
  ].join("\n");
};
