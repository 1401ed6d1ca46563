/**
 * Generates facts, failures, decision inputs and fault scripts for property tests, on Effect's own `Arbitrary`.
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

/** Most calls in a generated ledger: the rules decide on two calls as on many, and a third one shows that they do. */
const rowsMax = 3;

/** Facts of an attempt: any values of the chains together (a policy refuses no contradiction), each call with its own key. */
export const attemptFacts: Arbitrary.Arbitrary<AttemptFacts> = Arbitrary.map(
  Arbitrary.all({
    facts: Arbitrary.schema(AttemptFacts),
    tools: Arbitrary.array(Arbitrary.schema(ToolRow), { maxLength: rowsMax }),
  }),
  ({ facts, tools }) => ({ ...facts, tools: tools.map((row, ordinal) => ({ ...row, call: `0.${ordinal}` })) }),
);

/** Failures of every kind. */
export const failure: Arbitrary.Arbitrary<Failure> = Arbitrary.schema(Failure);

/** What `decide` takes: facts, a failure, the run, a budget and jitter. */
export const decisionInput: Arbitrary.Arbitrary<DecisionInput> = Arbitrary.all({
  facts: attemptFacts,
  failure,
  run: Arbitrary.schema(RunFacts),
  budget: Arbitrary.schema(Budget),
  jitter: Arbitrary.schema(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
});

/** What generated scripts may hold. */
export interface ScriptShape {
  /** Breaks that wait until the client goes (stall, keep_alive); default false: a client without clocks would hang. */
  readonly stalls?: boolean;
  /** Names of tools that are called; default one, `tool`. */
  readonly tools?: readonly [string, ...Array<string>];
}

/** Most broken answers before the healthy one. */
const brokenMax = 3;

/** Most deltas of a generated block. */
const deltasMax = 5;

/** Breaks count events up to here, so that they fall inside, at the end of and behind answers. */
const placesMax = 12;

const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: deltasMax }));

/**
 * Scripts of a FaultProvider: up to three broken or healthy answers, then a healthy one that repeats.
 *
 * @param shape what a script may hold
 */
export const faultScript = (shape: ScriptShape = {}): Arbitrary.Arbitrary<FaultScriptInput> =>
  Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(answerOf(shape)), { maxLength: brokenMax }),
    (answers): FaultScriptInput => ({ answers: [...answers.map(playable), { content: [{ text: deltasMax }] }] }),
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

/** Before a head a break can neither end properly nor keep alive: there it is a reset. */
const playable = (answer: Generated): NonNullable<FaultScriptInput["answers"]>[number] => {
  if (!("break" in answer)) return answer;
  const { at, kind } = answer.break;
  const headless = at === "accept" || at === "request" || at === "before_head" || at === "next_request";
  const needsHead = kind === "end" || kind === "keep_alive";
  return headless && needsHead ? { ...answer, break: { ...answer.break, kind: "rst" } } : answer;
};
