/**
 * Holds the mutants of waits: what a run does while its path is away, cools down or is silent, and while its process sleeps.
 */
import type { Mutant } from "./Mutant.ts";

const outages = "test/runtime/recovery/Outage.test.ts";
const silences = "test/runtime/attempt/LostPaths.test.ts";
const deaths = "test/runtime/crash/DeadWhileWaiting.test.ts";

/** What must not go wrong with waits. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a request that was not sent because its path was down costs a retry",
    breaks: "a wait spends nothing",
    within: "spend",
    find: "if (RetryBudget.isWaited(situation)) return;",
    replace: "",
    proofs: [{ test: outages, named: "of 20 s before the request" }],
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
    find: "owners.find(({ id }) => id === owned.owner)?.renewedAt",
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
];
