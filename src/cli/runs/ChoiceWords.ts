/**
 * Says what each answer does, and which calls a repeat would meet again.
 */
import type { Choice } from "../../domain/Decision.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import * as Repeats from "../../policy/Repeats.ts";
import { cut } from "../terminal/Table.ts";

/** What an answer does. */
export const choiceWords: Readonly<Record<Choice, string>> = {
  retry: "ask again from the start; what was shown is withdrawn",
  continue: "go on from what is settled; open calls are closed as not run or unknown",
  it_ran: "the tool did its work: go on from there",
  it_did_not_run: "the tool did nothing: go on without it",
  accept: "keep the part of the answer that is there, and end",
  stop: "end the run",
};

/** Most calls that are named. */
const namedMax = 6;

/** Longest name of a tool, in characters. */
const toolCharactersMax = 40;

/** What a `retry` could run again, calls as `tool (call)`; empty when there is nothing. */
export const mayRepeat = (incident: RunIncident): string => {
  const { decision } = incident;
  const calls = Repeats.of(incident);
  const named = calls.slice(0, namedMax).map((call) => {
    const tool = decision.calls?.find((it) => it.call === call)?.tool;
    return tool === undefined ? call : `${cut(tool, toolCharactersMax)} (${call})`;
  });
  return calls.length > namedMax ? `${named.join(", ")} and ${calls.length - namedMax} more` : named.join(", ");
};
