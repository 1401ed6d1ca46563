/**
 * Reads the state of a run for a decision, and for the record of an attempt's start.
 */
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { RunFacts } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";
import type { Entry } from "../../recorder/RunRecord.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import { standingOf } from "../attempt/Departure.ts";
import type { AttemptStarted } from "../contract/RunEvent.ts";
import type { RouteFacts } from "../contract/Stages.ts";
import { type GroupMember, groupKey } from "../pacing/Groups.ts";
import type { BrokenAttempt } from "./Chain.ts";
import type { Run } from "./Run.ts";

/** The route facts of a run with a single route. */
const oneRoute: RouteFacts = { next_route: "none", route_failures: 0, own_route: false, moves: 0 };

/**
 * Returns the run's facts for a decision about an attempt.
 *
 * @param resumable true if the attempt's cursor may be used
 * @param cost the cost of the attempt's response, if it broke
 */
export const factsOf = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  resumable: boolean,
  cost: Tokens.TokenCost = Tokens.free,
): RunFacts => {
  const { options, shared, spent } = run;
  return {
    // A replay of a continuation with a seam is a continuation too. If the request is refused, the shown text remains.
    mode: attempt.setup.seam === undefined ? attempt.setup.mode : "continue",
    user_cancelled: run.isUserCancelled,
    lifecycle_closed: run.isLifecycleClosed,
    can_continue: canContinue(run, attempt),
    continue_text: continueTextOf(run, attempt),
    resumable: resumable && attempt.cursor !== undefined,
    discardable: run.discardable,
    can_refresh_credentials: options.refreshCredentials !== undefined,
    ...spent,
    throttle_wait_ms: shared.throttle.own.waitMs(options.provider.id, run.now()),
    ...standingOf(run),
    ...(run.routes?.facts(attempt.setup) ?? oneRoute),
    ...tokensOf(run, cost),
    same_partial: run.response.isSamePartial(attempt),
    ...shared.groups.facts(memberOf(run), run.now()),
  };
};

/** A caller that cannot discard would read a continuation as the next part of its text, so the seam must join the two. */
const canContinue = <P, E, R>({ chain, discardable, options, seams }: Run<P, E, R>, attempt: Attempt<P>): boolean => {
  if (options.canContinue === undefined) return false;
  if (discardable || seams === undefined || !isTextOpen(chain?.facts() ?? attempt.facts.snapshot())) return true;
  return typeof seams.plan() === "object";
};

/** Returns true if text is the last thing that was shown, so that further text would join it directly. */
export const isTextOpen = ({
  call_through,
  settled_through,
  shown,
  side_effects,
  text_through,
}: AttemptFacts): boolean =>
  shown === "text" &&
  text_through >= settled_through &&
  !(side_effects?.guarded === true && text_through < call_through);

/** Returns `auto` only if a seam can be planned and no marker was seen. Text before a marker is complete, so it is not continued. */
const continueTextOf = <P, E, R>({ options, seams }: Run<P, E, R>, { facts }: Attempt<P>): RunFacts["continue_text"] =>
  options.continueText === "auto" && !facts.snapshot().terminal_seen && typeof seams?.plan() === "object"
    ? "auto"
    : "ask";

/**
 * Returns the cost of broken responses, and of the request that the next attempt would repeat: as reported by the provider, else as
 * estimated by the caller.
 */
const tokensOf = <P, E, R>(
  { options, spent }: Run<P, E, R>,
  cost: Tokens.TokenCost,
): Pick<RunFacts, "wasted_tokens" | "next_tokens" | "tokens_estimated"> => {
  const told = spent.next_tokens;
  const next = told > 0 ? told : (options.requestTokens ?? 0);
  const wasted = Tokens.sum(spent.wasted_tokens, Tokens.total(cost));
  const isGuessed = spent.tokens_estimated || cost.estimated || told === 0;
  return { wasted_tokens: wasted, next_tokens: next, tokens_estimated: isGuessed && wasted + next > 0 };
};

/** Returns the cost of a broken response so far, over all attempts that read it. */
export const costOf = <P, E, R>(run: Run<P, E, R>, { attempt, failure }: BrokenAttempt<P>): Tokens.TokenCost => {
  const links = run.chain?.links ?? [attempt];
  // The cost of attempts before the newest seam was already counted when the run continued from there.
  const from = links.findLastIndex(({ setup }) => setup.seam !== undefined);
  return Tokens.estimateResponse(
    links.slice(Math.max(0, from)).map(({ facts }) => facts.snapshot()),
    failure,
    run.options.requestTokens,
  );
};

/**
 * Returns the run as its group sees it. Groups are separate per credential, and on every route the credential of the first route counts.
 */
export const memberOf = <P, E, R>({ options, routes, runId }: Run<P, E, R>): GroupMember => {
  const { group, path } = routes?.own ?? options;
  const credential = typeof path === "object" ? path.credential : undefined;
  return { runId, group: group === undefined ? undefined : groupKey(group, credential) };
};

/** Returns the entry that starts an attempt. The entry holds the input of a decision, in case this process dies before it decides. */
export const startOf = <P, E, R>(
  run: Run<P, E, R>,
  attempt: Attempt<P>,
  at_ms: number,
): Extract<Entry, { readonly _tag: "AttemptStarted" }> => ({
  _tag: "AttemptStarted",
  attempt: attempt.number,
  mode: attempt.setup.mode,
  at_ms,
  facts: attempt.facts.snapshot(),
  request: attempt.setup.request,
  run: {
    ...factsOf(run, attempt, false),
    // These waits are known only to this process, so they are not recorded.
    throttle_wait_ms: 0,
    path: "up",
    waited_for_path: false,
    cooldown_ms: 0,
    route_failures: run.routes?.failures ?? 0,
    // The process that takes the run up decides for itself whether the text can be joined.
    continue_text: run.seams === undefined ? "ask" : (run.options.continueText ?? "ask"),
  },
  ...routeOf(attempt),
  ...seamOf(attempt),
});

/** Returns the seam that the attempt must prove. */
const seamOf = <P>({
  setup: { seam },
}: Attempt<P>): Pick<Extract<Entry, { readonly _tag: "AttemptStarted" }>, "seam"> =>
  seam === undefined ? {} : { seam: { at: seam.at, proof: seam.proof } };

/** Returns the event that reports the start of an attempt to the caller. */
export const startEvent = <P, E, R>({ runId }: Run<P, E, R>, attempt: Attempt<P>): AttemptStarted => ({
  _tag: "AttemptStarted",
  run_id: runId,
  attempt: attempt.number,
  mode: attempt.setup.mode,
  ...routeOf(attempt),
});

/** Returns the route of an attempt; empty on the run's first route. */
export const routeOf = <P>({ setup }: Pick<Attempt<P>, "setup">): { readonly route?: string } =>
  setup.route === undefined ? {} : { route: setup.route };
