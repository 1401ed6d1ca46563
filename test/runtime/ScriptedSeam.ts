/**
 * Joins the scripted provider's texts: a new text has to begin with everything that was shown. It shares nothing with the rule that is
 * shipped, so that what a run makes of a seam is judged alone.
 */
import { none, type Observation } from "../../src/domain/Observation.ts";
import type { SeamProof, SeamRefusal } from "../../src/domain/SeamWords.ts";
import type { RunSeam } from "../../src/runtime/contract/RunOptions.ts";
import type { SeamJoin, SeamPassed, SeamPlan, TextSeam } from "../../src/seam/TextSeam.ts";
import * as Seam from "../../src/stages/seam/Seam.ts";
import type { ScriptedPart } from "./Scripted.ts";

interface SeamScript {
  /** The proof of the first plan's seam. After a refusal of that the proof is an anchor. */
  readonly proof?: SeamProof;
  readonly refusal?: SeamRefusal;
  /** Parts that have left, as the seam heard of them. */
  readonly heard?: Array<string>;
  /** Maximum continuations. */
  readonly max?: number;
}

/** Makes the stage of a run. */
export const scriptedSeam = ({ max, ...script }: SeamScript = {}): RunSeam<ScriptedPart> =>
  Seam.of(() => seamOf(script), max === undefined ? {} : { max });

const seamOf = ({ heard = [], proof = "anchor", refusal }: SeamScript): TextSeam<ScriptedPart> => {
  let shown = "";
  let by = proof;
  return {
    begins: () => {
      heard.push("begins");
      shown = "";
    },
    left: (part, says) => {
      heard.push(part.name);
      if (says.shows === "text") shown += part.name;
    },
    plan: () => refusal ?? (shown === "" ? "blank" : { proof: by, at: shown.length, quote: shown }),
    joins: (plan) => joins(plan),
    refused: () => {
      heard.push("refused");
      by = "anchor";
    },
  };
};

const wait: SeamPassed<ScriptedPart> = { type: "passed", parts: [], observations: [], joined: false };
const passed = (part: ScriptedPart, says: Observation): SeamPassed<ScriptedPart> => ({
  type: "passed",
  parts: [part],
  observations: [says],
  joined: true,
});

const joins = ({ proof, quote }: SeamPlan): SeamJoin<ScriptedPart> => {
  let left = proof === "prefill" ? "" : quote;
  let held: SeamPassed<ScriptedPart> = { type: "passed", parts: [], observations: [], joined: true };
  return {
    take: (part, says) => {
      // "again" plays a repetition behind the seam.
      if (part.name === "again") return { type: "unproven", fault: "repeats" };
      // "maybe" plays what may become a repetition: it is held to the end. So is "finish", which that end makes the marker.
      if (part.name === "maybe" || part.name === "finish") {
        held = passed(part, part.name === "maybe" ? says : { ...none, terminal: true, finish: "stop" });
        return { type: "passed", parts: [], observations: [], joined: true };
      }
      if (left === "") return passed(part, says);
      if (says.calls.length > 0) return { type: "unproven", fault: "not_text" };
      if (says.terminal) return { type: "unproven", fault: "stopped" };
      if (says.shows !== "text") return wait;
      if (!left.startsWith(part.name.slice(0, left.length))) return { type: "unproven", fault: "differs" };
      const rest = part.name.slice(left.length);
      left = left.slice(part.name.length);
      if (left !== "") return wait;
      return rest === ""
        ? { type: "passed", parts: [], observations: [], joined: true }
        : passed({ ...part, name: rest }, { ...says, characters: rest.length });
    },
    end: () => (left === "" ? held : { type: "unproven", fault: "stopped" }),
  };
};
