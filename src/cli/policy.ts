/**
 * `stream-recovery policy`: prints the decision table from the rows that decide.
 */
import { Console } from "effect";
import { Command, Flag } from "effect/cli";
import { markdown, table } from "../policy/PolicyTable.ts";
import { policyFlag } from "./command/Policy.ts";

/** The command `policy`: prints the decision table from the rows that `decide` itself runs, so that it cannot go stale. */
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
      json
        ? JSON.stringify({ policy: policy.name, policy_version: policy.version, rows: table(policy) }, null, 2)
        : markdown(policy),
    ),
).pipe(Command.withDescription("Print the decision table"));
