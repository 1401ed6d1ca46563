/**
 * Generates facts, failures, decision inputs and fault scripts for property tests, with Effect's own `Arbitrary`.
 *
 * ```ts
 * it.prop("never repeats what a user saw", { input: Arbitraries.decisionInput }, ({ input }) => …)
 * ```
 */
import { Arbitrary, Schema } from "effect";
import { AttemptFacts, ToolRow } from "../domain/AttemptFacts.ts";
import { Failure } from "../domain/Failure.ts";
import { Budget, RunFacts } from "../domain/RunFacts.ts";
import type { DecisionInput } from "../policy/DecisionInput.ts";
import { BreakKind, BreakPlace, type FaultScriptInput, ProviderErrorName } from "./script/FaultScript.ts";

/** Maximum calls in a generated ledger. The rules do not distinguish two calls from three or more. A third call tests that they do not. */
const rowsMax = 3;

/** Generates facts of an attempt, in any combination, because a policy accepts contradictory facts too. Each call has its own key. */
export const attemptFacts: Arbitrary.Arbitrary<AttemptFacts> = Arbitrary.map(
  Arbitrary.all({
    facts: Arbitrary.schema(AttemptFacts),
    tools: Arbitrary.array(Arbitrary.schema(ToolRow), { maxLength: rowsMax }),
  }),
  ({ facts, tools }) => ({ ...facts, tools: tools.map((row, ordinal) => ({ ...row, call: `0.${ordinal}` })) }),
);

/** Generates failures of every kind. */
export const failure: Arbitrary.Arbitrary<Failure> = Arbitrary.schema(Failure);

/** Generates inputs of `decide`: facts, a failure, the run, a budget and jitter. */
export const decisionInput: Arbitrary.Arbitrary<DecisionInput> = Arbitrary.all({
  facts: attemptFacts,
  failure,
  run: Arbitrary.schema(RunFacts),
  budget: Arbitrary.schema(Budget),
  jitter: Arbitrary.schema(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
});

/** Options for generated scripts. */
export interface ScriptShape {
  /**
   * True to include breaks that wait until the client leaves (`stall`, `keep_alive`). Default false, because a client without clocks would
   * wait forever.
   */
  readonly stalls?: boolean;
  /** Names of the tools that are called. Default: only `tool`. */
  readonly tools?: readonly [string, ...Array<string>];
}

/** Maximum broken or healthy answers before the final healthy one. */
const brokenMax = 3;

const deltasMax = 5;

/** Maximum event count of a break. It exceeds the length of some answers, so breaks also fall at their end or after it. */
const placesMax = 12;

const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: deltasMax }));

/** Generates scripts of a FaultProvider: up to three broken or healthy answers, then a healthy answer that repeats. */
export const faultScript = (shape: ScriptShape = {}): Arbitrary.Arbitrary<FaultScriptInput> =>
  Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(answerOf(shape)), { maxLength: brokenMax }),
    (answers): FaultScriptInput => ({ answers: [...answers.map(makePlayable), { content: [{ text: deltasMax }] }] }),
  );

const answerOf = ({ stalls = false, tools = ["tool"] }: ScriptShape) => {
  const block = Schema.Union([
    Schema.Struct({ reasoning: count }),
    Schema.Struct({ text: count }),
    Schema.Struct({ ping: count }),
    Schema.Struct({ tool: Schema.Literals(tools), cut: Schema.Boolean }),
    Schema.Struct({ error: ProviderErrorName }),
  ]);
  const brokenBy = stalls ? BreakKind : Schema.Literals(["rst", "fin", "end"]);
  return Schema.Union([
    Schema.Struct({ status: Schema.Literals([400, 401, 408, 429, 500, 502, 503, 529]) }),
    Schema.Struct({ content: Schema.NonEmptyArray(block) }),
    Schema.Struct({
      content: Schema.NonEmptyArray(block),
      break: Schema.Struct({
        kind: brokenBy,
        at: BreakPlace,
        n: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: placesMax })),
      }),
    }),
  ]);
};

type Generated = ReturnType<typeof answerOf>["Type"];

/** Turns a break before the response head into a reset if its kind needs a head (a proper end, or keep-alives). */
const makePlayable = (answer: Generated): NonNullable<FaultScriptInput["answers"]>[number] => {
  if (!("break" in answer)) return answer;
  const { at, kind } = answer.break;
  const headless = at === "accept" || at === "request" || at === "before_head" || at === "next_request";
  const needsHead = kind === "end" || kind === "keep_alive";
  return headless && needsHead ? { ...answer, break: { ...answer.break, kind: "rst" } } : answer;
};
