/**
 * `stream-recovery policy`: prints the decision table and the table of route moves.
 */
import { Console } from "effect";
import { Command, Flag } from "effect/cli";
import { markdown, moveMarkdown, moveTable, printTable } from "../policy/PolicyTable.ts";
import type { RecoveryPolicy } from "../policy/RecoveryPolicy.ts";
import { policyFlag } from "./command/Policy.ts";

/** The `policy` command. It prints the rows that `decide` evaluates, so its output is never out of date. */
export const policyCommand = Command.make(
  "policy",
  {
    policy: policyFlag,
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print the rows as JSON instead of Markdown"),
      Flag.withDefault(false),
    ),
  },
  ({ policy, json }) =>
    Console.log(
      json ? asJson(policy) : [markdown(policy), moveMarkdown(policy)].filter((it) => it !== "").join("\n\n"),
    ),
).pipe(Command.withDescription("Print the decision table and the causes that move a run to its next route"));

const asJson = (policy: RecoveryPolicy): string =>
  JSON.stringify(
    { policy: policy.name, policy_version: policy.version, rows: printTable(policy), moves: moveTable(policy) },
    null,
    2,
  );
