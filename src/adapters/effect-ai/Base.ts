/**
 * Holds what the runs of a recovered model are made with, and which model is below it.
 */
import type { Effect } from "effect";
import type { LanguageModel } from "effect/ai";
import type { Provider } from "../../domain/RunFacts.ts";
import type { RunOptions } from "../../runtime/contract/RunOptions.ts";

/**
 * What every run of a recovered model is made with. With `reveal: "on_complete"` an answer is handed over when it is whole,
 * so that every break of it is replayed unseen, also for a caller that cannot discard.
 */
export interface Options
  extends Pick<RunOptions<never, never, never>, "budget" | "clocks" | "emptyIsFailure" | "policy" | "reveal"> {
  /** Names the provider, and says whether the model reasons. Left out: what `effect/ai`'s `Model` says of itself. */
  readonly provider?: Provider;
  /**
   * `live` (the default) hands reasoning on as it comes: a caller of `streamText` cannot discard it, so a break behind it
   * ends the stream. `held` keeps it back until the first text or the end of the answer: such a break is replayed unseen.
   */
  readonly reasoning?: "live" | "held";
  /** Renews the credentials after a `rejected.auth`; tried once a run. */
  readonly refreshCredentials?: Effect.Effect<unknown, unknown>;
}

/** The options with their provider. */
export type Base = Options & { readonly provider: Provider };

/** A model and what its runs are made with. */
export interface Recovered {
  readonly model: LanguageModel.LanguageModel;
  readonly base: Base;
}

/** The provider that nobody named. */
export const unnamed: Provider = { id: "effect-ai" };

const below = new WeakMap<LanguageModel.LanguageModel, Recovered>();

/** Remembers which model is below a recovered one. */
export const remember = (wrapped: LanguageModel.LanguageModel, recovered: Recovered): void =>
  void below.set(wrapped, recovered);

/** The model below a recovered one; a model that is not recovered is its own. */
export const unwrap = (model: LanguageModel.LanguageModel): Recovered =>
  below.get(model) ?? { model, base: { provider: unnamed } };
