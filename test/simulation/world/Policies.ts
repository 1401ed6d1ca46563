/** The policies of a simulation by their name in incidents. */
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";

export const policyOf = (name: string): RecoveryPolicy.RecoveryPolicy =>
  name === "strict" ? RecoveryPolicy.strict : RecoveryPolicy.default;
