/**
 * Prints what docs/seam.md says of seams: why a text is not gone on with, why new text is not joined, and who takes a prefill.
 */
import { SeamFault, SeamProof, SeamRefusal } from "../../src/domain/SeamWords.ts";
import { seamFaults } from "../../src/policy/Explanation.ts";
import { declared } from "../../src/provider/seam/Prefills.ts";
import { seamProofs, seamRefusals } from "../../src/story/SeamWords.ts";
import { code, table } from "./Markdown.ts";

/** Why nothing is asked of the provider, and what can be done about it. */
export const refusalTable = (): string =>
  table(
    ["refusal", "why", "what can be done"],
    SeamRefusal.literals.map((reason) => [code(reason), seamRefusals[reason].why, seamRefusals[reason].remedy]),
  );

/** How a seam is proven, and why it is not. */
export const faultTable = (): string =>
  table(
    ["word", "meaning"],
    [
      ...SeamProof.literals.map((proof) => [code(proof), seamProofs[proof]]),
      ...SeamFault.literals.map((fault) => [code(fault), seamFaults[fault]]),
    ],
  );

/** Who goes on with a text that a request ends with; what fits no row is asked for the anchor. */
export const prefillTable = (): string =>
  table(
    ["provider", "models", "form", "says it again", "what is known", "sources"],
    declared.map(({ echo, form, models, note, provider, sources }) => [
      provider,
      models.map(code).join(" · "),
      form === "none" ? "none: by the anchor" : code(form),
      echo === true ? "yes" : "no",
      note,
      sources.join(" · "),
    ]),
  );
