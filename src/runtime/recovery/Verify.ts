/** Settles calls of unknown outcome by the `verify` of their tools, and records verdicts on calls. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as CallVerdicts from "../../recorder/CallVerdicts.ts";
import type { CallVerdict, VerdictBy } from "../../recorder/RunRecord.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";
import type { ToolGuard } from "../tools/ToolGuard.ts";
import type { OpenCall } from "../tools/ToolLedger.ts";
import { runAbandonable } from "./Waits.ts";

/** Maximum time for a tool's `verify`, in milliseconds. After that a person is asked. */
export const verifyMsMax = 30_000;

/**
 * Records a verdict on calls and settles them.
 *
 * @returns the number of calls settled. Calls without a row of their own cannot be settled
 */
export const recordVerdict = <P, E, R>(
  run: Run<P, E, R>,
  calls: ReadonlyArray<OpenCall>,
  verdict: CallVerdict,
  by: VerdictBy,
): Effect.Effect<number> =>
  Effect.suspend(() => {
    const settled = calls.filter((call) => run.ledger.settle(call, verdict));
    if (settled.length === 0) return Effect.succeed(0);
    const owners = new Set(settled.map(({ owner }) => owner));
    const entries = [...owners].flatMap((owner) => {
      const calls = settled.filter((call) => call.owner === owner);
      return CallVerdicts.makeEntries(owner.number, calls, { verdict, by }, owner.facts.snapshot());
    });
    return Effect.as(run.write(entries), settled.length);
  });

/**
 * Asks the tools about their calls of unknown outcome, once per call.
 *
 * @returns true if a call was settled, so that the decision must be taken again
 */
export const verifyCalls = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
): Effect.fn.Return<boolean> {
  const owners = run.chain?.links ?? [broken.attempt];
  let settled = 0;
  for (const open of run.ledger.unsettledCalls(owners)) {
    const key = `${open.owner.number}/${open.call}`;
    // A running handler reports its own outcome.
    if (run.ledger.isRunning(open) || !run.question.markToolAsked(key)) continue;
    const verdict = yield* askVerifier(run, open);
    if (verdict === "unknown") continue;
    settled += yield* recordVerdict(run, [open], verdict, "verify");
    const { call, owner, tool } = open;
    run.handoff.push({ _tag: "CallVerified", attempt: owner.number, call, tool, verdict });
  }
  return settled > 0;
});

const askVerifier = <P, E, R>(
  run: Run<P, E, R>,
  { call, id, owner, tool }: OpenCall,
): Effect.Effect<CallVerdict | "unknown"> => {
  const verify = run.options.tools.map(run.shared.guard.verifierOf).find((it) => it?.tool === tool)?.verify;
  const word = wordOf(verify, { run_id: run.runId, attempt: owner.number, call, id, tool });
  return Effect.raceFirst(word, Effect.as(Deferred.await(run.stopped), "unknown" as const));
};

/** Asks a tool for its verdict on its own call. Returns `unknown` if it has no `verify`, or if `verify` fails, dies or times out. */
export const wordOf = (
  verify: ToolGuard.Verify | undefined,
  call: ToolGuard.UnknownCall,
): Effect.Effect<CallVerdict | "unknown"> =>
  verify === undefined
    ? Effect.succeed("unknown")
    : runAbandonable(`${call.tool}.verify`, () => verify(call)).pipe(
        Effect.timeoutOption(verifyMsMax),
        Effect.map(Option.getOrElse(() => "unknown" as const)),
        Effect.catchCause((cause) =>
          Effect.as(
            Effect.logWarning(
              "a tool could not report whether its call ran",
              { run_id: call.run_id, tool: call.tool },
              cause,
            ),
            "unknown" as const,
          ),
        ),
      );
