/**
 * `stream-recovery decide`: reads JSON documents, one per line, and prints one decision per line.
 */
import { Console, Effect, Result, Runtime, Schema, Stdio, Stream } from "effect";
import { Command, Flag } from "effect/cli";
import * as Json from "../domain/Json.ts";
import { parse } from "../policy/DecisionInput.ts";
import { explain } from "../policy/Explanation.ts";
import type { RecoveryPolicy } from "../policy/RecoveryPolicy.ts";
import { policyFlag } from "./command/Policy.ts";
import { type InputLine, LineSplitter, lineBytesMax } from "./terminal/Lines.ts";

/** Some lines could not be decided. Each was reported on stderr; the exit code is 2. */
export class BadInput extends Schema.TaggedError<BadInput>()("BadInput", {
  reason: Schema.Literal("bad_lines"),
  lines: Schema.Natural,
}) {
  override readonly [Runtime.errorExitCode] = 2;
  override readonly [Runtime.errorReported] = false;
}

/** The `decide` command: reads decision inputs from stdin and prints each decision with its rule and reason. */
export const decideCommand = Command.make(
  "decide",
  {
    policy: policyFlag,
    explain: Flag.Boolean("explain").pipe(
      Flag.withDescription("Add a `message` that states the decision in a plain sentence"),
      Flag.withDefault(false),
    ),
  },
  (options) => decideLines(options.policy, options.explain),
).pipe(
  Command.withDescription(
    "Read {facts, failure, run, budget, jitter} as JSON, one document per line, and print one decision per line",
  ),
  Command.withExamples([
    {
      command: `printf '{"facts":{"shown":"text"},"failure":{"kind":"transport"}}' | stream-recovery decide`,
      description: "Show the decision for a stream that broke after text was shown",
    },
  ]),
);

const decideLines = Effect.fn("decide")(function* (policy: RecoveryPolicy, explained: boolean) {
  const stdio = yield* Stdio.Stdio;
  const splitter = new LineSplitter();
  let bad = 0;
  const decideAll = Effect.fnUntraced(function* (lines: ReadonlyArray<InputLine>) {
    const results = lines
      .filter((line) => line.tooLong || line.text !== "")
      .map((line) => decideLine(policy, explained, line));
    const decisions = results.filter(Result.isSuccess).map((decided) => decided.success);
    const errors = results.filter(Result.isFailure).map((refused) => refused.failure);
    bad += errors.length;
    if (errors.length > 0) yield* Console.error(errors.join("\n"));
    if (decisions.length > 0) yield* Console.log(decisions.join("\n"));
  });
  yield* Stream.runForEach(stdio.stdin, (bytes) => decideAll(splitter.push(bytes)));
  yield* decideAll(splitter.end());
  if (bad > 0) return yield* new BadInput({ reason: "bad_lines", lines: bad });
});

/** Returns the decision as JSON, or an error that names the line. */
const decideLine = (policy: RecoveryPolicy, explained: boolean, line: InputLine): Result.Result<string, string> => {
  if (line.tooLong) return Result.fail(`line ${line.number}: input: longer than ${lineBytesMax} bytes`);
  const document = Json.parse(line.text);
  if (document === undefined) return Result.fail(`line ${line.number}: input: not JSON`);
  const input = parse(document.json);
  if (Result.isFailure(input)) return Result.fail(`line ${line.number}: ${input.failure.message}`);
  const { facts, failure } = input.success;
  const decision = policy.decide(input.success);
  return Result.succeed(
    JSON.stringify(explained ? { ...decision, message: explain(decision, failure, facts) } : decision),
  );
};
