/** The vocabulary of the policy's hand-written cases. */
import { type AttemptFacts, fresh as freshFacts, type ToolPhase, type ToolRow } from "../../src/domain/AttemptFacts.ts";
import type { Rule } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import { empty } from "../../src/domain/SideEffects.ts";
import type * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";

export const guarded = { ...empty, guarded: true };
export const hosted = { ...empty, provider: { read_only: 0, mutating: 0, unknown: 1 } };
export const row = (
  effect: ToolRow["effect"],
  phase: ToolPhase,
  executor: ToolRow["executor"] = "runtime",
): ToolRow => ({
  call: `0.${phase}`,
  tool: "tool",
  executor,
  effect,
  phase,
});
export const provider = (effect: ToolRow["effect"], phase: ToolPhase) => row(effect, phase, "provider");

export const cut: Failure = { kind: "transport", code: "ECONNRESET" };
export const limited: Failure = { kind: "rate_limited", status: 429 };
export const auth: Failure = { kind: "rejected", reason: "auth", status: 401 };
export const malformed: Failure = { kind: "invalid_tool_input" };
export const sent = { delivery: "accepted", progress: "output" } as const;
export const text = { ...sent, shown: "text", text_through: 1 } as const;
export const refreshable = { can_refresh_credentials: true };
export const can = { can_continue: true };

export interface Case {
  readonly name: string;
  readonly facts?: Partial<AttemptFacts>;
  readonly failure?: Failure;
  readonly run?: Partial<RunFacts>;
  readonly budget?: Partial<Budget>;
  readonly is: `${"replay" | "continue" | "resume" | "ask" | "stop"} ${Rule}`;
}

export const inputOf = ({ facts, failure, run, budget }: Omit<Case, "name" | "is">): RecoveryPolicy.DecisionInput => ({
  facts: { ...freshFacts, ...facts },
  failure: failure ?? cut,
  run: { ...freshRun, ...run },
  budget: { ...defaultBudget, ...budget },
  jitter: 0.5,
});

export const spoken = ({ action, mode, rule }: ReturnType<typeof RecoveryPolicy.decide>): string =>
  `${mode ?? (action === "ask_user" ? "ask" : "stop")} ${rule}`;
