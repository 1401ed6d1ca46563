/**
 * Generates histories of runs: every order of writes at which a runtime could be stopped, and some impossible ones.
 */
import type { AttemptFacts } from "../../../src/domain/AttemptFacts.ts";
import { Choice } from "../../../src/domain/Decision.ts";
import type { Failure } from "../../../src/domain/Failure.ts";
import type { RunFacts } from "../../../src/domain/RunFacts.ts";
import { empty } from "../../../src/domain/SideEffects.ts";
import { join } from "../../../src/facts/Growth.ts";
import { type Entry, openQuestion, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { folded } from "../../recorder/Entries.ts";
import type { Dice } from "../../simulation/Dice.ts";
import * as L from "./Lives.ts";

/** A history of a few writes. Only the last one ends the run, and rarely. */
export const history = (dice: Dice): L.Life => {
  const life: Array<ReadonlyArray<Entry>> = [
    [L.begun({ policy: dice.pick(["default", "default", "strict", "another"]) }), L.attempt(1)],
  ];
  const writes = dice.between(1, 9);
  while (life.length <= writes) life.push(written(dice, folded(life.flat())));
  return life;
};

const written = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> =>
  dice.weighted([
    [4, grown],
    [4, broken],
    [3, asked],
    [3, answered],
    [2, started],
    [1, parked],
    [1, resumed],
  ])(dice, record);

const last = ({ attempts }: RunRecord) => attempts.at(-1)?.attempt ?? 0;

const factsOf = (record: RunRecord, attempt: number): AttemptFacts =>
  record.attempts.find((it) => it.attempt === attempt)?.facts ?? L.facts();

const grown = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> => {
  const attempt = dice.chance(0.8) ? last(record) : dice.between(1, last(record));
  return [L.raised(attempt, join(factsOf(record, attempt), someFacts(dice)))];
};

const someFacts = (dice: Dice): AttemptFacts =>
  L.facts({
    delivery: dice.pick(["not_sent", "ambiguous", "accepted"]),
    progress: dice.pick(["none", "started", "reasoning", "output"]),
    shown: dice.pick(["nothing", "nothing", "reasoning", "text"]),
    text_through: dice.between(0, 3),
    call_through: dice.between(0, 3),
    settled_through: dice.between(0, 3),
    side_effects: dice.chance(0.8) ? L.guarded : dice.pick([empty, null]),
    terminal_seen: dice.chance(0.05),
    tools: dice.times(dice.between(0, 2), (index) =>
      L.call(
        dice.pick(["input_started", "input_complete", "handed_over", "dispatched", "outcome_unknown", "settled"]),
        `0.${index}`,
        dice.pick(["read_only", "mutating", "unknown"]),
      ),
    ),
  });

const someFailure = (dice: Dice): Failure =>
  dice.pick<Failure>([
    L.reset,
    { kind: "truncated" },
    { kind: "rate_limited", retry_after_ms: 90_000 },
    { kind: "overloaded" },
    { kind: "unknown" },
    { kind: "rejected", reason: "invalid_request" },
    { kind: "cancelled", by: "caller" },
    { kind: "invalid_tool_input" },
  ]);

const someRun = (dice: Dice): Partial<RunFacts> => ({
  can_continue: dice.chance(0.3),
  resumable: dice.chance(0.2),
  discardable: dice.chance(0.8),
  user_cancelled: dice.chance(0.05),
  auto_retries: dice.between(0, 3),
});

const broken = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> => {
  const attempt = last(record);
  const facts = dice.chance(0.8) ? factsOf(record, attempt) : join(factsOf(record, attempt), someFacts(dice));
  const number = record.incidents.length + dice.between(1, 2);
  const incident = L.incident(number, facts, { attempt, failure: someFailure(dice), run: someRun(dice) });
  const entry = L.opened(dice.chance(0.1) ? { ...incident, status: "late" } : incident);
  return dice.chance(0.8) ? [L.raised(attempt, facts), entry] : [entry];
};

const asked = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> => {
  const incident = record.incidents.findLast(({ status }) => status === "open");
  if (incident?.decision.action !== "ask_user") return broken(dice, record);
  const revision = (record.questions.at(-1)?.revision ?? 0) + 1;
  const terms = { default_choice: dice.pick([...Choice.literals]), expires_at: dice.between(0, 2_000) };
  return [L.asked(incident, { revision, attempt: last(record), ...(dice.chance(0.4) ? terms : {}) })];
};

const answered = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> => {
  const question = openQuestion(record);
  const [first, ...others] = question?.choices ?? [];
  const incident = record.incidents.find(({ id }) => id === question?.incident);
  if (question === undefined || first === undefined || incident === undefined) return asked(dice, record);
  const choice = dice.pick([first, ...others]);
  const entry = L.answered(choice, question.revision);
  return dice.chance(0.5) ? [entry] : [entry, L.marked(incident, "acted_on", choice)];
};

const started = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> => {
  const incident = record.incidents.findLast(({ status }) => status === "open");
  const request = dice.pick<"first" | "continue" | "resume">(["first", "continue", "resume"]);
  const mode = request === "first" ? "replay" : request;
  const attempt = L.attempt(last(record) + 1, { mode, request });
  return incident === undefined ? [attempt] : [L.marked(incident, "acted_on"), attempt];
};

const parked = (dice: Dice, record: RunRecord): ReadonlyArray<Entry> =>
  openQuestion(record) === undefined
    ? [L.parked("interrupted")]
    : dice.chance(0.5)
      ? [L.parked("question")]
      : [L.parked("interrupted")];

const resumed = (dice: Dice): ReadonlyArray<Entry> => dice.times(dice.pick([1, 1, 4]), () => ({ _tag: "RunResumed" }));
