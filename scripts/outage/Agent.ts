/**
 * Plays one agent: it thinks, sends requests, runs its tool, and answers the library's questions as a person would.
 */
import { Effect, Stream } from "effect";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Question } from "../../src/recorder/Question.ts";
import type { PartEvent, RunEvent, RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import type { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import type { GuardedTool, ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import type { Dice } from "../../test/simulation/Dice.ts";
import { answerOf, type Part, toolName } from "./Answer.ts";
import { type Asker, type RunEntry, type Spendable, spendable } from "./Diary.ts";
import { attemptOf } from "./Provider.ts";
import type { World } from "./World.ts";

/** An agent's output mode: a terminal that can discard, one that shows only complete answers, or a proxy that discards nothing. */
export type Style = "terminal" | "on_complete" | "proxy";

/** The identity and the limits of an agent. */
export interface Self extends Asker {
  readonly name: string;
  readonly style: Style;
  readonly may: Spendable;
}

/** Maximum decisions of a run. A run that spins would stop virtual time, and the play would hang instead of failing. */
const decisionsMax = 1_000;

/** Number of agents in a limited group. They share a key. */
const agentsPerGroup = 4;

/**
 * Draws the retries that an agent's runs may spend.
 *
 * @param number of the agent
 */
export const spendableOf = (dice: Dice, number: number): Spendable =>
  dice.weighted<Spendable>([
    [6, spendable],
    [1, { ...spendable, refusals: dice.pick([0, 1, 3]) }],
    [2, { ...spendable, breaks: dice.pick([0, 1]) }],
    [1, { refusals: dice.pick([0, 1]), breaks: dice.pick([0, 1]) }],
    [2, { ...spendable, group: { id: `g${Math.floor(number / agentsPerGroup)}`, retries: dice.between(0, 12) } }],
  ]);

/** Converts to the library's budget. Default limits are left out. */
const budgetOf = ({ breaks, group, refusals }: Spendable): NonNullable<RunOptions<Part, unknown, never>["budget"]> => ({
  max_outage_ms: "forever",
  ...(refusals === spendable.refusals ? {} : { max_not_processed: refusals }),
  ...(breaks === spendable.breaks ? {} : { max_auto_retries: breaks }),
  ...(group === undefined ? {} : { max_group_retries: group.retries }),
});

/** The services that an agent uses. */
export interface Household {
  readonly world: World;
  readonly dice: Dice;
  readonly processor: StreamProcessor["Service"];
  readonly guard: ToolGuard["Service"];
  /** The runs whose questions a person answers, by id. */
  readonly asking: Map<string, Asking>;
}

/** The person of a run that may ask. */
export interface Asking {
  readonly ask: (question: Question) => Effect.Effect<Choice>;
}

interface ToolInput {
  readonly effect: string;
  readonly ms: number;
}

type Tool = GuardedTool<ToolInput, void, never, never>;

/** The parts that one run of an agent has received and kept. */
class View {
  #kept: Array<PartEvent<Part>> = [];
  /** Every part delivered by the current attempt. */
  handed: Array<Part> = [];

  take(event: RunEvent<Part>): void {
    if (event._tag === "Part") {
      this.#kept.push(event);
      this.handed.push(event.part);
    }
    if (event._tag === "AttemptStarted") this.handed = [];
    if (event._tag === "AttemptDiscarded")
      this.#kept = this.#kept.filter((it) => it.attempt !== event.attempt || it.ordinal <= event.keep_through);
  }

  /** Serial numbers that were kept more than once. */
  get twice(): ReadonlyArray<string> {
    const seen = new Set<string>();
    return this.#kept.map(serialOf).filter((serial) => seen.size === seen.add(serial).size);
  }

  /** Serial numbers of the completed answer that were not kept. */
  findMissing(answers: ReadonlyMap<string, ReadonlyArray<Part>>): ReadonlyArray<string> {
    const kept = new Set(this.#kept.map(serialOf));
    const last = this.#kept.findLast(({ part }) => part.word === "end");
    const whole = last === undefined ? undefined : answers.get(last.part.answer);
    if (whole === undefined) return ["the end"];
    return whole.map((part) => `${part.answer}#${part.number}`).filter((serial) => !kept.has(serial));
  }
}

const serialOf = ({ part }: PartEvent<Part>): string => `${part.answer}#${part.number}`;

/** One turn of an agent: a request, its tool, and a second request with the tool's result. */
export const turn = (self: Self, home: Household, name: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const calls = home.dice.chance(0.6);
    yield* ask(self, home, `${name}.1`, calls);
    if (calls) yield* ask(self, home, `${name}.2`, false);
  });

const ask = (self: Self, home: Household, run: string, calls: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { dice, guard, world } = home;
    const { diary, time } = world;
    const entry = diary.begin(run, self, self.style, time.now, self.may);
    const view = new View();
    const input: ToolInput = { effect: `${run}:${toolName}`, ms: dice.chance(0.5) ? 0 : dice.between(100, 5_000) };
    const handler = ({ effect, ms }: ToolInput) =>
      Effect.andThen(
        Effect.sync(() => diary.effect(effect)),
        ms === 0 ? Effect.void : Effect.sleep(ms),
      );
    const tool: Tool = guard.mutating(toolName, handler);
    const answers = new Map<string, ReadonlyArray<Part>>();
    home.asking.set(run, { ask: (question) => answerLater(question, self, home, entry, view) });
    const inBackground = dice.chance(0.5);
    let waited = Number.NEGATIVE_INFINITY;
    const options = optionsOf(self, home, { entry, answers, tool, calls });
    const told = (event: RunEvent<Part>): Effect.Effect<void> => {
      view.take(event);
      if (event._tag === "Waiting" && event.for === "path") entry.waitsFrom ??= time.now;
      if (event._tag === "RetryScheduled") entry.decisions += 1;
      if (entry.decisions > decisionsMax) return Effect.die(new Error(`${run} decides in a loop`));
      // Counts one wait per moment: a repeated wait without any time between is no progress.
      if (event._tag === "Waiting" && time.now > waited) {
        entry.waits += 1;
        waited = time.now;
      }
      if (event._tag !== "Part" || event.calls === undefined) return Effect.void;
      const used =
        self.style === "proxy"
          ? handler(input)
          : Effect.forEach(event.calls, (call) => Effect.exit(tool.run(call, input)), { discard: true });
      return inBackground ? Effect.asVoid(Effect.forkDetach(used)) : used;
    };
    const ended = yield* Stream.runForEach(home.processor.run(options), told).pipe(
      Effect.match({ onSuccess: () => undefined, onFailure: (error) => error }),
    );
    home.asking.delete(run);
    entry.to = time.now;
    entry.waitsFrom = undefined;
    entry.twice = view.twice;
    if (ended === undefined) {
      entry.end = "whole";
      entry.missing = view.findMissing(answers);
    } else {
      entry.end = endOf(ended, entry);
      entry.rule = ended.rule;
      entry.why = `${ended.reason} ${ended.rule} ${ended.failure.kind} ${ended.failure.code ?? ""}`.trim();
    }
  });

const endOf = ({ reason }: RunInterrupted, { questions }: RunEntry): RunEntry["end"] =>
  questions.length > 0 && (reason === "stopped" || reason === "accepted_partial") ? "asked" : "lost";

/** The parts of a run that its options need. */
interface Made {
  readonly entry: RunEntry;
  readonly answers: Map<string, ReadonlyArray<Part>>;
  readonly tool: Tool;
  readonly calls: boolean;
}

const optionsOf = (
  self: Self,
  { dice, world }: Household,
  { answers, calls, entry, tool }: Made,
): RunOptions<Part, unknown, never> => {
  const { path } = self;
  const served = world.servedOn(path);
  const isProbed = !world.diary.unprobed.has(path);
  const reports = isProbed && self.style !== "proxy";
  let continued = 0;
  const answer = ({ mode, request }: AttemptContext): ReadonlyArray<Part> => {
    if (request === "continue" && mode === "continue") continued += 1;
    const name = request === "continue" ? `${entry.run}:continued${continued}` : `${entry.run}:first`;
    const known = answers.get(name) ?? answerOf(dice, name, calls && request === "first");
    answers.set(name, known);
    return known;
  };
  const attempt = (context: AttemptContext) =>
    attemptOf(served, { ...self, run: entry, reports, answer: answer(context) }, context);
  return {
    runId: entry.run,
    provider: { id: `provider-${path}`, model: `model-${self.model}`, reasoning: false },
    path: {
      id: `https://provider-${path}`,
      credential: `key-${self.key}`,
      ...(isProbed && !reports ? { way: served.line.way } : {}),
    },
    tools: self.style === "proxy" ? [{ name: toolName, executor: "runtime", effect: "unknown" }] : [tool],
    attempt,
    observe: (part) => part.says,
    discardable: self.style !== "proxy",
    reveal: self.style === "on_complete" ? "on_complete" : "live",
    ...(self.style === "proxy" ? {} : { canContinue: attempt }),
    budget: budgetOf(self.may),
    ...(self.may.group === undefined ? {} : { group: self.may.group.id }),
  };
};

/** Answers after a while, and never so that an effect could happen twice. */
const answerLater = (question: Question, self: Self, home: Household, entry: RunEntry, view: View) =>
  Effect.gen(function* () {
    const { dice, world } = home;
    const { handed } = view;
    const seen = (word: Part["word"]) => handed.some((part) => part.word === word);
    const answer = chooseAnswer(question, (world.diary.effects.get(`${entry.run}:${toolName}`) ?? 0) > 0);
    entry.questions.push({
      at: world.time.now,
      rule: question.rule,
      shown: seen("text") || (self.style === "proxy" && (seen("call") || seen("reasoning"))),
      reasoned: seen("reasoning"),
      answer,
    });
    yield* Effect.sleep(dice.between(2_000, 20_000));
    return answer;
  });

const chooseAnswer = ({ choices, may_repeat }: Question, happened: boolean): Choice => {
  const takes = (choice: Choice) => choices.includes(choice);
  if (takes("it_ran") && happened) return "it_ran";
  if (takes("it_did_not_run") && !happened) return "it_did_not_run";
  if (takes("retry") && may_repeat.length === 0) return "retry";
  if (takes("continue")) return "continue";
  return takes("accept") ? "accept" : "stop";
};
