/**
 * Defines the `--policy` flag.
 */
import { Flag } from "effect/cli";
import { type RecoveryPolicy, default as standard, strict } from "../../policy/RecoveryPolicy.ts";

const presets = { default: standard, strict } as const;

/** The flag that selects a policy preset. Without it, the standard policy decides. */
export const policyFlag = Flag.Literals("policy", ["default", "strict"]).pipe(
  Flag.withDescription("Policy preset that decides"),
  Flag.withDefault("default"),
  Flag.map((name): RecoveryPolicy => presets[name]),
);
