/**
 * Lives of runs as their processes recorded them, write by write. Tests recover after each write.
 */
import { Effect, Layer } from "effect";
import { type AttemptFacts, fresh as freshFacts } from "../../../src/domain/AttemptFacts.ts";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { Failure } from "../../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../../src/domain/RunIncident.ts";
import { snapshot } from "../../../src/domain/SideEffects.ts";
import type { Question } from "../../../src/recorder/Question.ts";
import { type Entry, isDriving } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as E from "../../recorder/Entries.ts";
import * as S from "../Scripted.ts";
import { live, type Scenario } from "./Crashes.ts";

/** The writes of one process in order; each element is one commit. */
export type Life = ReadonlyArray<ReadonlyArray<Entry>>;

export const runId = "r";

/** Writes the first `writes` of a life. Like any process, it claims a run without an owner before it continues it. */
export const written = (recorder: RunRecorder["Service"], life: Life, writes = life.length) =>
  Effect.forEach(
    life.slice(0, writes),
    (entries) => Effect.andThen(Effect.ignore(claimedFor(recorder, entries)), recorder.write(runId, entries)),
    { discard: true },
  );

const claimedFor = (recorder: RunRecorder["Service"], entries: ReadonlyArray<Entry>) =>
  entries.some(isDriving) ? recorder.claim(runId) : Effect.void;

const tool = { name: "bash", executor: "runtime", effect: "mutating" } as const;

export const guarded = snapshot([tool], true);

export const facts = (more: Partial<AttemptFacts> = {}): AttemptFacts => ({
  ...freshFacts,
  delivery: "accepted",
  side_effects: guarded,
  ...more,
});

export const call = (
  phase: AttemptFacts["tools"][number]["phase"],
  key = "0.0",
  effect: AttemptFacts["tools"][number]["effect"] = "mutating",
): AttemptFacts["tools"][number] => E.call(phase, { call: key, effect });

export const text = { progress: "output", shown: "text", text_through: 1 } as const;
export const dispatched = facts({ progress: "output", call_through: 1, tools: [call("dispatched")] });
export const settled = facts({ progress: "output", call_through: 1, settled_through: 2, tools: [call("settled")] });

export const begun = (more: { readonly policy?: string; readonly budget?: Budget } = {}): Entry => ({
  _tag: "RunStarted",
  transcript: "the digest of what the user asked",
  run_id: runId,
  provider: { id: "scripted", model: "m" },
  at: 0,
  policy: "default",
  ...more,
});

export const attempt = (
  number: number,
  more: Partial<Omit<Extract<Entry, { readonly _tag: "AttemptStarted" }>, "_tag" | "attempt">> = {},
): Entry => ({
  _tag: "AttemptStarted",
  attempt: number,
  mode: "first",
  at_ms: 0,
  facts: { ...freshFacts, side_effects: guarded },
  request: "first",
  run: freshRun,
  ...more,
});

/** A run as adapters and the gateway start it, whose request is lost with its caller. */
export const withoutTranscript = (entry: Entry): Entry => {
  if (entry._tag !== "RunStarted") return entry;
  const { transcript: _, ...rest } = entry;
  return rest;
};

export const raised = (number: number, its: AttemptFacts): Entry => ({
  _tag: "FactsRaised",
  attempt: number,
  facts: its,
});

export const reset: Failure = { kind: "transport", code: "ECONNRESET" };

/** An incident as the runtime records it, decided by the default policy. */
export const incident = (
  number: number,
  its: AttemptFacts,
  more: { readonly failure?: Failure; readonly run?: Partial<RunFacts>; readonly attempt?: number } = {},
): RunIncident =>
  E.decided(
    {
      id: `${runId}.${number}`,
      run_id: runId,
      attempt: more.attempt ?? 1,
      at: 10,
      provider: { id: "scripted", model: "m" },
    },
    {
      facts: its,
      failure: more.failure ?? reset,
      run: { ...freshRun, ...more.run },
      budget: defaultBudget,
      jitter: 0.5,
    },
  );

export const opened = (it: RunIncident): Entry => ({ _tag: "IncidentOpened", incident: it });

export const asked = E.questionOf;

export const answered = (answer: Choice, revision = 1): Entry => ({
  _tag: "QuestionAnswered",
  revision,
  answer,
  by: "person",
});

export const marked = (it: RunIncident, status: RunIncident["status"], answer?: Choice): Entry => ({
  _tag: "IncidentMarked",
  incident: it.id,
  status,
  ...(answer === undefined ? {} : { answer }),
});

export const parked = E.parked;

/** The question of an incident with shown text, as a processor asks it. */
export const textShown = (it: RunIncident): Question => ({
  run_id: runId,
  revision: 1,
  incident: it.id,
  rule: "text_shown",
  message: it.message,
  may_repeat: [],
  choices: ["retry", "accept", "stop"],
  default_choice: "stop",
  asked_at: 0,
  decision: it.decision,
});

/** A run that broke, raised its rule's question, and was answered. */
export const questioned = (its: AttemptFacts, choice?: Choice, run: Partial<RunFacts> = {}): Life => {
  const broken = incident(1, its, { run });
  const life = [[begun(), attempt(1)], [raised(1, its)], [raised(1, its), opened(broken)], [asked(broken)]];
  return choice === undefined ? life : [...life, [answered(choice), marked(broken, "acted_on", choice)]];
};

/** A run whose response was resumed with its cursor and broke again. */
const resumedLife: Life = [
  [begun(), attempt(1)],
  [raised(1, dispatched)],
  [opened(incident(1, dispatched, { run: { resumable: true } }))],
  [
    marked(incident(1, dispatched, { run: { resumable: true } }), "acted_on"),
    attempt(2, { mode: "resume", request: "resume" }),
  ],
  [raised(2, facts({ ...text }))],
];

const questionFor = (choice: Choice | undefined): Life => questioned(facts(text), choice);

/** Lives that scripted runs never or rarely leave. */
export const lives: Readonly<Record<string, Life>> = {
  "nothing was shown": [[begun(), attempt(1)], [raised(1, facts())]],
  "reasoning was shown": [[begun(), attempt(1)], [raised(1, facts({ progress: "reasoning", shown: "reasoning" }))]],
  "text was shown": [[begun(), attempt(1)], [raised(1, facts(text))]],
  "a tool was under way": [[begun(), attempt(1)], [raised(1, dispatched)]],
  "a tool had settled": [[begun(), attempt(1)], [raised(1, settled)]],
  "a tool had settled, and the runtime can continue": [
    [begun(), attempt(1, { run: { ...freshRun, can_continue: true } })],
    [raised(1, settled)],
  ],
  "the marker had come": [[begun(), attempt(1)], [raised(1, facts({ ...text, terminal_seen: true }))]],
  "a retry was decided": [
    [begun(), attempt(1)],
    [raised(1, facts()), opened(incident(1, facts()))],
  ],
  "a resume was decided": [[begun(), attempt(1)], [opened(incident(1, facts(), { run: { resumable: true } }))]],
  "a resumed response broke": resumedLife,
  "the user had cancelled": [[begun(), attempt(1)], [opened(incident(1, facts(), { run: { user_cancelled: true } }))]],
  "its caller had left it": [
    [begun(), attempt(1)],
    [opened(incident(1, facts(), { failure: { kind: "cancelled", by: "caller" } })), parked("interrupted")],
  ],
  "its question was answered: stop": questionFor("stop"),
  "its question was answered: accept": questionFor("accept"),
  "its question was answered: retry": questionFor("retry"),
  "its question was parked": [...questionFor(undefined), [parked("question")]],
  "it was parked and answered: stop": [...questionFor(undefined), [parked("question")], [answered("stop")]],
  "it was parked and answered: retry": [...questionFor(undefined), [parked("question")], [answered("retry")]],
  "a tool's outcome was told: it ran": questioned(dispatched, "it_ran"),
  "a tool's outcome was told, and the runtime can continue": questioned(dispatched, "it_did_not_run", {
    can_continue: true,
  }),
  "a tool settled while its question was open": [...questioned(dispatched), [raised(1, settled)]],
  "a question had expired": [
    [begun(), attempt(1)],
    [raised(1, facts(text)), opened(incident(1, facts(text))), asked(incident(1, facts(text)), { expires_at: 20 })],
  ],
  "a question had expired with the default accept": [
    [begun(), attempt(1)],
    [
      raised(1, facts(text)),
      opened(incident(1, facts(text))),
      asked(incident(1, facts(text)), { expires_at: 20, default_choice: "accept" }),
    ],
    [parked("question")],
  ],
  "a question had expired with the default retry": [
    [begun(), attempt(1)],
    [
      raised(1, facts(text)),
      opened(incident(1, facts(text))),
      asked(incident(1, facts(text)), { expires_at: 20, default_choice: "retry" }),
    ],
  ],
  "its policy is of a program": [[begun({ policy: "our own" }), attempt(1)], [raised(1, facts())]],
  "it decides by the strict policy": [[begun({ policy: "strict" }), attempt(1)], [raised(1, facts(text))]],
  "nothing was ever started": [[begun()]],
  "it was taken over ten times": [
    [begun(), attempt(1)],
    [raised(1, facts()), opened(incident(1, facts()))],
    [...Array.from({ length: 10 }, (): Entry => ({ _tag: "RunResumed" }))],
  ],
};

const toolThenCut = [S.start, S.callReady("bash"), S.wait(10), S.reset];
const textThenCut = [S.start, S.text("a"), S.wait(10), S.reset];

const scenarios: Readonly<Record<string, Scenario>> = {
  "replayed, then whole": {
    scripts: [
      [S.start, S.reset],
      [S.start, S.text("b"), S.done],
    ],
  },
  "asked, then retried": { scripts: [textThenCut, [S.start, S.text("b"), S.done]], answer: () => "retry" },
  "asked, then accepted": { scripts: [textThenCut], answer: () => "accept" },
  "a tool ran, then continued": {
    scripts: [toolThenCut, [S.start, S.text("b"), S.done]],
    more: { canContinue: true },
  },
  "a tool ran, then asked": { scripts: [toolThenCut] },
};

/** Lives as the runtime itself records them. */
export const recorded: Effect.Effect<Readonly<Record<string, Life>>> = Effect.suspend(() =>
  Effect.map(
    Effect.forEach(Object.entries(scenarios), ([name, scenario]) => {
      const life: Array<ReadonlyArray<Entry>> = [];
      const noted = Layer.effect(
        RunRecorder,
        Effect.map(RunRecorder, (recorder) => ({
          ...recorder,
          write: (id: string, entries: ReadonlyArray<Entry>) =>
            Effect.tap(recorder.write(id, entries), () => Effect.sync(() => life.push(entries))),
        })),
      ).pipe(Layer.provide(Layer.fresh(RunRecorder.layerMemory())));
      return live(scenario, { at: Number.POSITIVE_INFINITY, side: "before" }).pipe(
        Effect.provide(noted),
        Effect.as([name, life] as const),
      );
    }),
    Object.fromEntries,
  ),
);

/** A life by its name. */
export const lifeOf = (name: string): Life => {
  const life = lives[name];
  if (life === undefined) throw new Error(`no life "${name}"`);
  return life;
};
