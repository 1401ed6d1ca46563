/**
 * Reads the preset that a command decides by.
 */
import { Flag } from "effect/cli";
import { type RecoveryPolicy, default as standard, strict } from "../../policy/RecoveryPolicy.ts";

const presets = { default: standard, strict } as const;

/** The flag that names a preset. */
export const policyFlag = Flag.Literals("policy", ["default", "strict"]).pipe(
  Flag.withDescription("The preset that decides"),
  Flag.withDefault("default"),
  Flag.map((name): RecoveryPolicy => presets[name]),
);
