/**
 * Finds the policy that decides a run of another process by the name on its record, and never a looser one.
 */
import * as RecoveryPolicy from "../../policy/RecoveryPolicy.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";

/**
 * Decides where nobody knows what the run's own policy says: the strict preset, and what that would retry is asked. A
 * policy of a program may ask about any retry, so none is taken for granted in its name.
 */
export const unknownPolicy: RecoveryPolicy.RecoveryPolicy = RecoveryPolicy.make({
  name: "strict+ask",
  base: "strict",
  stricter: {
    credentials_refreshed: "ask_user",
    not_sent: "ask_user",
    not_processed: "ask_user",
    nothing_shown: "ask_user",
  },
});

/**
 * The policy of a name.
 *
 * @param own policies of the program, besides the presets `default` and `strict`
 * @returns undefined where nobody knows the name
 */
export const named = (
  name: string,
  own: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>,
): RecoveryPolicy.RecoveryPolicy | undefined =>
  [RecoveryPolicy.default, RecoveryPolicy.strict, unknownPolicy, ...own].find((policy) => policy.name === name);

/** The policy that decides a run. A record without a name is of a run that named none: the default decides it. */
export const policyOf = (
  record: RunRecord,
  own: ReadonlyArray<RecoveryPolicy.RecoveryPolicy>,
): RecoveryPolicy.RecoveryPolicy =>
  named(record.policy ?? record.incidents.at(-1)?.policy ?? RecoveryPolicy.default.name, own) ?? unknownPolicy;
