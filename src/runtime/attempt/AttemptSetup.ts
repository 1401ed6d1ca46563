/**
 * Says what makes one attempt of a run different from the next.
 */
import type { AttemptMode } from "../../domain/RunFacts.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import type { Withdrawn } from "../contract/RunOptions.ts";
import type { SettledCall } from "../contract/ToolCall.ts";
import type { Carried, Reveal } from "./Reveal.ts";

/** What makes one attempt different from the next. */
export interface AttemptSetup<P> {
  readonly attempt: number;
  readonly mode: AttemptMode;
  readonly request: "first" | "continue" | "resume";
  readonly calls: ReadonlyArray<SettledCall>;
  readonly cursor: string | undefined;
  readonly discarded: ReadonlyArray<Withdrawn>;
  readonly facts: FactsFold;
  readonly reveal: Reveal<P>;
  /** Parts of the same response that were held back before; they are in `reveal` already. */
  readonly carried: Carried<P> | undefined;
}
