/**
 * Stores runs that broke after shown text: one that was continued at two seams, one whose seam could not be proven, and one that
 * was not continued.
 */
import type { AttemptFacts } from "../../../src/domain/AttemptFacts.ts";
import type { RunFacts } from "../../../src/domain/RunFacts.ts";
import type { SeamProof, SeamRefusal } from "../../../src/domain/SeamWords.ts";
import type * as RunRecord from "../../../src/recorder/RunRecord.ts";
import * as E from "../../recorder/Entries.ts";
import * as Runs from "./PageRuns.ts";

const { claude, facts, noted, now } = Runs;

/** The facts of an attempt that shows only text, with its length. */
const wrote = (characters: number, whole = false) =>
  facts({
    shown: "text",
    text_through: 1,
    terminal_seen: whole,
    counters: { parts: Math.ceil(characters / 4), bytes: characters * 31, characters, input_tokens: 18_211 },
  });

const auto: Partial<RunFacts> = { can_continue: true, continue_text: "auto" };

const goesOn = (
  attempt: number,
  at_ms: number,
  its: AttemptFacts,
  seam: { readonly at: number; readonly proof: SeamProof },
): RunRecord.Entry => ({
  _tag: "AttemptStarted",
  attempt,
  mode: "continue",
  request: "continue",
  at_ms,
  facts: its,
  seam,
});

const opened = (incident: ReturnType<typeof Runs.broken>): ReadonlyArray<RunRecord.Entry> => [
  { _tag: "IncidentOpened", incident },
  { _tag: "IncidentMarked", incident: incident.id, status: "acted_on" },
];

/** It broke twice after shown text and was continued both times: once by its anchor, once by a prefill. */
export const joined = (run_id = "run_0600fj2seam4", at = now - 64_000): ReadonlyArray<RunRecord.Entry> => [
  Runs.begun(run_id, claude, at),
  Runs.attempted(1, wrote(412), 0),
  noted(1_900, 1, "shown", "text"),
  noted(7_400, 1, "failure", "transport"),
  ...opened(Runs.broken(run_id, 1, at + 7_400, { provider: claude, facts: wrote(412), run: auto })),
  goesOn(2, 7_900, wrote(792), { at: 412, proof: "anchor" }),
  noted(9_800, 2, "seam", "anchor"),
  noted(9_810, 2, "shown", "text"),
  E.joined(2, 412),
  noted(18_300, 2, "failure", "transport"),
  ...opened(
    Runs.broken(run_id, 2, at + 18_300, {
      provider: claude,
      facts: wrote(792),
      run: { ...auto, mode: "continue", auto_retries: 1 },
    }),
  ),
  goesOn(3, 19_200, wrote(1_640, true), { at: 1_204, proof: "prefill" }),
  noted(20_600, 3, "seam", "prefill"),
  noted(20_610, 3, "shown", "text"),
  E.joined(3, 1_204, "prefill"),
  noted(37_900, 3, "terminal_candidate", "end_turn"),
  noted(37_910, 3, "source_ended"),
  { _tag: "RunEnded", end: { state: "completed", reason: "end_turn", attempts: 3, at: at + 37_920 } },
];

/** Its continuation does not join the shown text. Its caller cannot discard, and is asked. */
export const unproven = (run_id = "run_0600fj5seam7", at = now - 41_000): ReadonlyArray<RunRecord.Entry> => {
  const held = facts({ counters: { parts: 2, bytes: 240, characters: 8 } });
  const second = Runs.broken(run_id, 2, at + 9_900, {
    provider: claude,
    facts: held,
    failure: { kind: "protocol", reason: "seam_unproven", code: "differs", retryable: false },
    run: { ...auto, mode: "continue", auto_retries: 1, discardable: false },
  });
  return [
    Runs.begun(run_id, claude, at),
    Runs.attempted(1, wrote(412), 0),
    noted(1_900, 1, "shown", "text"),
    noted(7_400, 1, "failure", "transport"),
    ...opened(Runs.broken(run_id, 1, at + 7_400, { provider: claude, facts: wrote(412), run: auto })),
    goesOn(2, 7_900, held, { at: 412, proof: "anchor" }),
    noted(9_900, 2, "failure", "protocol"),
    noted(9_900, 2, "seam", "differs"),
    { _tag: "IncidentOpened", incident: second },
    E.questionOf(second, { expires_at: now + 300_000 }),
    E.parked("question"),
  ];
};

/** It broke after shown text, and no continuation was requested. */
export const refused = (
  reason: SeamRefusal = "repeats_itself",
  run_id = "run_0600fj8seam9",
  at = now - 23_000,
): ReadonlyArray<RunRecord.Entry> => {
  const incident = Runs.broken(run_id, 1, at + 7_400, {
    provider: claude,
    facts: wrote(412),
    run: { can_continue: true },
  });
  return [
    Runs.begun(run_id, claude, at),
    Runs.attempted(1, wrote(412), 0),
    noted(1_900, 1, "shown", "text"),
    noted(7_400, 1, "failure", "transport"),
    noted(7_400, 1, "seam_refused", reason),
    { _tag: "IncidentOpened", incident },
    E.questionOf(incident, { expires_at: now + 300_000 }),
    E.parked("question"),
  ];
};
