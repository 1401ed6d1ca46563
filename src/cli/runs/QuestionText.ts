/**
 * Prints a question: what happened, what may be answered, what each answer does, and what to type.
 */
import type { RunIncident } from "../../domain/RunIncident.ts";
import type { QuestionRecord } from "../../recorder/RunRecord.ts";
import { broken, paragraph } from "../terminal/Prose.ts";
import { quoted, type Screen } from "../terminal/Screen.ts";
import { relative } from "../terminal/When.ts";
import { choiceWords, mayRepeat } from "./ChoiceWords.ts";

const margin = 16;

/**
 * The lines of an open question.
 *
 * @param incident what it is about; undefined where the record has dropped it
 */
export const questionText = (
  runId: string,
  question: QuestionRecord,
  incident: RunIncident | undefined,
  { columns, ink, now, type }: Screen,
): string => {
  const layout = { columns, indent: 4, margin };
  const unattended = question.default_choice ?? "stop";
  const when =
    question.expires_at === undefined ? "It does not expire." : `${unattended} ${relative(question.expires_at, now)}.`;
  const repeats = incident === undefined ? "" : mayRepeat(incident);
  return [
    ...broken(incident?.message ?? question.rule, columns - 2).map((line) => `  ${line}`),
    "",
    ...question.choices.map((choice) => {
      const risk = choice === "retry" && repeats !== "" ? `. May run again: ${repeats}` : "";
      const tone = risk === "" ? "strong" : "careful";
      return paragraph(choice, `${choiceWords[choice]}${risk}`, layout, ink, tone);
    }),
    "",
    paragraph("Unattended", when, { ...layout, indent: 2, margin: margin + 2 }, ink),
    `  ${ink("quiet", "To answer")}`,
    `    ${ink("strong", type(`runs answer ${quoted(runId)} CHOICE`))}`,
  ].join("\n");
};
