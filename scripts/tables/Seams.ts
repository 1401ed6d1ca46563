/**
 * Prints the tables of docs/continue.md: reasons why text is not continued, reasons why new text is not joined, and support for prefills.
 */
import { SeamFault, SeamProof, SeamRefusal } from "../../src/domain/SeamWords.ts";
import { seamFaults } from "../../src/policy/Explanation.ts";
import { declared } from "../../src/provider/seam/Prefills.ts";
import { seamProofs, seamRefusals } from "../../src/story/SeamWords.ts";
import { code, table } from "./Markdown.ts";

/** Prints the reasons why no continuation is requested, and their remedies. */
export const refusalTable = (): string =>
  table(
    ["refusal", "why", "what can be done"],
    SeamRefusal.literals.map((reason) => [code(reason), seamRefusals[reason].why, seamRefusals[reason].remedy]),
  );

/** Prints the proofs of a seam, and the reasons why a proof fails. */
export const faultTable = (): string =>
  table(
    ["word", "meaning"],
    [
      ...SeamProof.literals.map((proof) => [code(proof), seamProofs[proof]]),
      ...SeamFault.literals.map((fault) => [code(fault), seamFaults[fault]]),
    ],
  );

/** Prints the providers that continue the text at the end of a request. All others are asked for the anchor. */
export const prefillTable = (): string =>
  table(
    ["provider", "models", "form", "repeats the prefill", "what is known", "sources"],
    declared.map(({ echo, form, models, note, provider, sources }) => [
      provider,
      models.map(code).join(" · "),
      form === "none" ? "none: by the anchor" : code(form),
      echo === true ? "yes" : "no",
      note,
      sources.join(" · "),
    ]),
  );
