/**
 * States the expected outcome of a cut by hand: the first rule that fits applies.
 *
 * The rules use the terms of a person at the screen (text seen, calls handed over, tools run) instead of the policy's facts,
 * and `decide` is never called.
 */
import {
  asked,
  type Expected,
  endsClean,
  hasLateCalls,
  hasWholeCalls,
  recovered,
  stored,
  twoCalls,
  whole,
} from "../Cell.ts";
import type { Cut } from "./Cuts.ts";

interface CutRule {
  readonly if: string;
  readonly fits: (cut: Cut) => boolean;
  readonly expect: (cut: Cut) => Expected;
}

export const expectCut = (cut: Cut): Expected => {
  const rule = cutRules.find((it) => it.fits(cut));
  if (rule === undefined) throw new Error("no rule fits, although the last one always does");
  return rule.expect(cut);
};

/** The rules, in order. */
export const cutRules: ReadonlyArray<CutRule> = [
  {
    if: "the marker had arrived, and only a clean end can follow it (for Anthropic, `message_stop` must arrive too if the caller waits for the whole response)",
    fits: (cut) =>
      cut.moment === "after the marker" &&
      cut.kind === "end" &&
      !(/^(?:anthropic-messages|bedrock-invoke)$/.test(cut.protocol) && cut.mode === "on_complete"),
    expect: (cut) => ({ ...whole, keeps: talks(cut) ? [1] : [] }),
  },
  {
    if: "the marker had arrived (in Gemini it counts only with a clean end, so this row never applies there)",
    fits: (cut) => cut.moment === "after the marker" && !endsClean(cut.protocol) && !mayBeAskedAgain(cut),
    expect: (cut) => ({ ...whole, rules: alreadyComplete(cut), keeps: talks(cut) ? [1] : [] }),
  },
  {
    if: "a call that changes something started, and its outcome is unknown",
    fits: (cut) => changing(cut) && (handling(cut) === "hanging" || handling(cut) === "dying"),
    expect: (cut) => asked("tool_outcome_unknown", onScreen(cut)),
  },
  {
    if: "the caller had received an unguarded call that changes something",
    fits: (cut) => changing(cut) && !guarded(cut) && call(cut) === "handed over",
    expect: (cut) => asked("tool_call_handed_over", onScreen(cut)),
  },
  {
    if: "the caller had received a part of such a call's input",
    fits: (cut) => changing(cut) && !guarded(cut) && call(cut) === "begun",
    expect: (cut) => asked("tool_input_shown", onScreen(cut)),
  },
  {
    if: "the provider ran one of its own tools that may change something",
    fits: (cut) => cut.moment === "after a hosted call" && cut.tools.hosted?.effect === "unknown",
    expect: (cut) => asked("provider_tool_activity", onScreen(cut)),
  },
  {
    if: "the provider stores the conversation, which may contain the request already",
    fits: (cut) => cut.tools === stored,
    expect: (cut) => asked("side_effects_unprovable", onScreen(cut)),
  },
  {
    if: "the provider has such a tool, and it is unknown whether it ran",
    fits: (cut) => cut.tools.hosted?.effect === "unknown",
    expect: (cut) => asked("side_effects_unprovable", onScreen(cut)),
  },
  {
    if: "a call settled, and the caller can continue from its result",
    fits: (cut) => ran(cut) && cut.tools.canContinue === true,
    expect: (cut) => recovered("tools_settled", { keeps: [...onScreen(cut), 2] }),
  },
  {
    if: "a call that changes something settled",
    fits: (cut) => ran(cut) && changing(cut),
    expect: (cut) => asked("tool_ran", onScreen(cut)),
  },
  {
    if: "text is on the screen, a guarded call started after it, and the caller can continue",
    fits: (cut) => sees(cut) === "text" && guarded(cut) && cut.tools.canContinue === true && callBegan(cut),
    expect: (cut) => recovered("text_closed_by_call", { keeps: [...onScreen(cut), 2] }),
  },
  {
    if: "text is on the screen",
    fits: (cut) => sees(cut) === "text",
    expect: (cut) => asked("text_shown", onScreen(cut)),
  },
  {
    if: "a guarded call that changes something is open, and the fence holds it",
    fits: (cut) => guarded(cut) && changing(cut) && call(cut) !== "none",
    expect: (cut) => recovered("tool_calls_fenced", { keeps: talks(cut) ? [2] : [] }),
  },
  {
    if: "there were only calls that change nothing",
    fits: (cut) => call(cut) !== "none" || cut.moment === "after a hosted call",
    expect: (cut) => recovered("only_read_only_tools", { keeps: talks(cut) ? [2] : [] }),
  },
  {
    if: "only reasoning is on the screen",
    fits: (cut) => sees(cut) === "thoughts",
    expect: () => recovered("only_reasoning_shown"),
  },
  {
    if: "otherwise",
    fits: () => true,
    expect: (cut) => recovered("nothing_shown", { keeps: talks(cut) ? [2] : [] }),
  },
];

/** Guarded calls that run after the run's end settle after its incident, and each of them makes another incident. */
const alreadyComplete = (cut: Cut): ReadonlyArray<string> =>
  Array.from({ length: 1 + (guarded(cut) ? twoCalls.length : 0) }, () => "already_complete");

const handling = ({ tools }: Cut) => tools.runtime?.handling;
const guarded = ({ tools }: Cut): boolean => tools.runtime?.guarded === true;
const changing = ({ tools }: Cut): boolean => tools.runtime !== undefined && tools.runtime.effect !== "read_only";

/**
 * Returns true if a held, whole answer was cut between its marker and its protocol's last event. Nothing of it was shown, so
 * it is requested again unless a hosted tool may have run. Responses, Ollama and Mistral have no
 * event after their markers.
 */
const mayBeAskedAgain = ({ mode, protocol, tools }: Cut): boolean =>
  mode === "on_complete" &&
  !/^(?:openai-responses|ollama|mistral-conversations)$/.test(protocol) &&
  tools.hosted?.effect !== "unknown";

/** Returns true if a guarded call has settled before the decision: before the break, or while the run waited for it. */
const ran = ({ moment, tools }: Cut): boolean =>
  moment === "after settle" || (moment === "after dispatch" && tools.runtime?.handling === "running");

/** Returns true if the healthy answer has any text or thoughts. */
const talks = ({ moment, shape, tools }: Cut): boolean =>
  shape !== "bare" || tools.runtime === undefined || moment === "after a hosted call";

/** The content of the answer before the break. */
const stands = ({ moment, shape, tools }: Cut): "nothing" | "thoughts" | "text" => {
  switch (moment) {
    case "before head":
    case "after head":
      return "nothing";
    case "after reasoning":
      return "thoughts";
    case "after text":
      return "text";
    case "after the marker":
      return tools.runtime === undefined
        ? "text"
        : shape === "bare"
          ? "nothing"
          : shape === "spoken"
            ? "text"
            : "thoughts";
    default:
      return shape === "bare" ? "nothing" : shape === "thoughts" ? "thoughts" : "text";
  }
};

/** The content that the caller has seen. Held parts are not seen. To a caller that cannot discard, thoughts are text. */
const sees = (cut: Cut): "nothing" | "thoughts" | "text" => {
  if (cut.mode === "on_complete") return "nothing";
  return cut.mode === "parts" && stands(cut) === "thoughts" ? "text" : stands(cut);
};

const onScreen = (cut: Cut): ReadonlyArray<number> => (sees(cut) === "nothing" ? [] : [1]);

/** The state of a runtime call at the caller. A late call is whole only with the finish; in Gemini calls come in one piece. */
const call = (cut: Cut): "none" | "begun" | "handed over" => {
  if (cut.mode !== "live" || !callBegan(cut)) return "none";
  if (cut.moment === "inside arguments") return "begun";
  return hasLateCalls(cut.protocol) ? "begun" : "handed over";
};

/** Returns true if the answer had begun a runtime call before the break, even if the caller did not see it. */
const callBegan = ({ moment, protocol, tools }: Cut): boolean => {
  if (tools.runtime === undefined) return false;
  switch (moment) {
    case "inside arguments":
      return !hasWholeCalls(protocol);
    case "after a call":
    case "after all calls":
    case "after dispatch":
    case "after settle":
    case "after the marker":
      return true;
    default:
      return false;
  }
};
