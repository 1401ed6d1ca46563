/**
 * Holds the mutants of waits: what a run does while its path is away, cools down or is silent, and while its process sleeps.
 */
import type { Mutant } from "./Mutant.ts";

const outages = "test/runtime/recovery/Outage.test.ts";
const edges = "test/runtime/recovery/OutageEdges.test.ts";
const spent = "test/runtime/recovery/SpentBudgets.test.ts";
const silences = "test/runtime/attempt/LostPaths.test.ts";
const deaths = "test/runtime/crash/DeadWhileWaiting.test.ts";

/** What must not go wrong with waits. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "what waited for its path goes only while its budget lasts",
    breaks: "a wait spends nothing, L11",
    within: "isWaited",
    find: '(run.path === "down" || run.waited_for_path)',
    replace: '(run.path === "down")',
    proofs: [{ test: spent, named: "after three refusals" }],
  },
  {
    name: "decisions that lead nowhere have no bound",
    breaks: "every run ends, L11",
    within: "decided",
    find: "if (retries > decisionsMax)",
    replace: "if (retries > 1_000 * decisionsMax)",
    proofs: [{ test: spent, named: "end the run with a report" }],
  },
  {
    name: "a policy is asked about a run that was stopped",
    breaks: "L10",
    within: "make",
    find: "if (isStopped(input)) return",
    replace: "if (isStopped(input) && version === undefined) return",
    proofs: [{ test: "test/runtime/recovery/Stops.test.ts", named: "is not asked after a cancel" }],
  },
  {
    name: "a stop during the first write of a run still sends its request",
    breaks: "L10",
    within: "heedInterrupt",
    find: "if (Exit.isSuccess(exit) || run.stopper !== undefined) return;",
    replace: "if (Exit.isExit(exit) || run.stopper !== undefined) return;",
    proofs: [{ test: "test/runtime/recovery/Stops.test.ts", named: "is heard before the request is sent" }],
  },
  {
    name: "a backoff costs the run's own clock nothing",
    breaks: "clocks.run holds over all attempts",
    within: "#endWait",
    find: "this.#elapsedMs += this.#openWaitMs;",
    replace: "this.#elapsedMs += 0 * this.#openWaitMs;",
    proofs: [{ test: "test/runtime/recovery/RunClock.test.ts", named: "a backoff" }],
  },
  {
    name: "a request that was not sent because its path was down costs a retry",
    breaks: "a wait spends nothing",
    within: "spend",
    find: "if (RetryBudget.isWaited(situation)) return;",
    replace: "",
    proofs: [{ test: outages, named: "of 20 s before the request" }],
  },
  {
    name: "a request whose path has come back needs a budget",
    breaks: "what waited for its path may go once, whatever is spent (design, 6)",
    within: "isWaited",
    find: '(run.path === "down" || run.waited_for_path)',
    replace: '(run.path === "down")',
    proofs: [{ test: "test/runtime/recovery/SpentBudgets.test.ts", named: "the run is whole" }],
  },
  {
    name: "a first request is sent although its path is known to be down",
    breaks: "every request asks its path, first ones too",
    within: "start",
    find: "(this.#departure?.mayGo ?? this.shared.paths.isOpen(this.scope))",
    replace: "(true)",
    proofs: [{ test: outages, named: "holds a first request too" }],
  },
  {
    name: "a connect that failed is decided before its path was asked",
    breaks: "an outage is known before the decision",
    within: "onItsPath",
    find: "yield* Effect.raceFirst(shared.paths.unconnected(scope, failure.code), stopped);",
    replace: "",
    proofs: [{ test: outages, named: "of 20 s before the request" }],
  },
  {
    name: "time that this process has slept counts as waited",
    breaks: "a gap in our own time is held time",
    within: "#noticeSuspension",
    find: "this.#sleptMs += late;",
    replace: "",
    proofs: [{ test: silences, named: "by both clocks: a run that waits for its path has not waited meanwhile" }],
  },
  {
    name: "an attempt that has heard something while its path was asked is ended with the others",
    breaks: "a byte proves that a connection lives",
    within: "lose",
    find: "if (watch.listener.path !== path || !watch.isSilentSince(since)) continue;",
    replace: "if (watch.listener.path !== path) continue;",
    proofs: [{ test: silences, named: "is asked once for all its attempts" }],
  },
  {
    name: "a path is not asked when its process has slept",
    breaks: "a path that proves lost behind a sleep ends its attempts at once",
    within: "woke",
    find: "for (const path of paths) this.silent(path);",
    replace: "",
    proofs: [{ test: silences, named: "by both clocks: a path that proves lost behind it" }],
  },
  {
    name: "a process that has just begun takes every outage for a wrong address",
    breaks: "the record knows what was reached",
    within: "reachedByRecord",
    find: "if (isAnswered) shared.paths.wasReached(scope.path);",
    replace: "",
    proofs: [{ test: deaths, named: "leaves it to be taken up" }],
  },
  {
    name: "what a dead process had waited is forgotten",
    breaks: "a run that is taken up goes on with what is left of its time",
    within: "claiming",
    find: "owners?.find(({ id }) => id === rows.get(runId)?.owner)?.renewedAt",
    replace: "undefined",
    proofs: [{ test: deaths, named: "leaves it to be taken up" }],
  },
  {
    name: "a run that is taken up may wait anew",
    breaks: "a run that is taken up goes on with what is left of its time",
    within: "restore",
    find: "{ ...(last?.run ?? fresh), waited_ms: record.waited_ms ?? 0 }",
    replace: "last?.run ?? fresh",
    proofs: [{ test: deaths, named: "leaves it to be taken up" }],
  },
  {
    name: "what its path lets go does not wait for its own announced wait",
    breaks: "a wait that is about one request alone is kept",
    within: "departed",
    find: "if (restMs > 0) {",
    replace: "if (false) {",
    proofs: [{ test: edges, named: "does not end a wait that a provider has announced for one request alone" }],
  },
  {
    name: "behind a path that is back a provider that is not is asked again at once, until the retries are spent",
    breaks: "no lost run",
    within: "delayMs",
    find: "isWaited(s) ? (retryAfter ?? 0) : wait",
    replace: "retryAfter ?? 0",
    proofs: [{ test: edges, named: "with a provider behind it that is not" }],
  },
  {
    name: "a person's retry that may not wait is asked about again at once",
    breaks: "no needless question",
    within: "carryOut",
    find: "if (run.spent.waited_ms > 0) return",
    replace: "if (true) return",
    proofs: [{ test: edges, named: "and whose person wants it to go all the same goes" }],
  },
];
