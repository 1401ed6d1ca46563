/**
 * Plays runs with several routes, each with the scripts of its own attempts.
 */
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import type { Failure } from "../../../src/domain/Failure.ts";
import type { RunOptions } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Routes from "../../../src/stages/routes/Routes.ts";
import * as S from "../../runtime/Scripted.ts";

type Script = ReadonlyArray<S.Step>;
/** `ownRoute` is true if the first route's statuses are its own fault. */
export type More = S.More & { readonly ownRoute?: boolean };

/** A run with a first route and further ones, each with the scripts of its attempts. */
export const routed = (
  first: ReadonlyArray<Script>,
  further: Readonly<Record<string, ReadonlyArray<Script>>>,
  { ownRoute = false, ...more }: More = {},
) => {
  const primary = S.scripted(...first);
  const others = Object.entries(further).map(([id, scripts]) => ({ id, provider: S.scripted(...scripts) }));
  const routes = others.map(({ id, provider }) => ({
    id,
    provider: { id: `provider-${id}`, reasoning: false },
    attempt: provider.attempt,
    ...(more.canContinue === true ? { canContinue: provider.attempt } : {}),
    observe: (it: S.ScriptedPart) => it.says,
  }));
  return {
    options: S.options(primary, { routes: Routes.of(routes, { own: ownRoute }), ...more }),
    /** The number of requests of each route, the first route first. */
    requests: () => [primary.attempts.length, ...others.map(({ provider }) => provider.attempts.length)],
    attempts: () => [primary, ...others.map(({ provider }) => provider)].flatMap(({ attempts }) => attempts),
  };
};

export const play = (it: { readonly options: RunOptions<S.ScriptedPart, S.ProviderBroke, never> }) =>
  Effect.flatMap(StreamProcessor, (processor) => S.played(processor.run(it.options)));

/** Plays a run that needs almost no time. */
export const soon = (it: ReturnType<typeof routed>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(it.options)), {
      startImmediately: true,
    });
    yield* TestClock.adjust("100 millis");
    return fiber;
  });

export const rejected = (status: number, reason: Extract<Failure, { kind: "rejected" }>["reason"]): S.Step =>
  S.fail({ kind: "rejected", reason, status });

export const quota = rejected(402, "quota");

export const serverError = S.fail({ kind: "server_error", status: 500 });

export const routeOfEach = (seen: S.Seen) =>
  seen.events.flatMap((it) => (it._tag === "AttemptStarted" ? [it.route ?? "first"] : []));
