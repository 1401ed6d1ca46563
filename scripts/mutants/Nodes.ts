/**
 * Holds the mutants of what processes of several machines know together through their store.
 */
import type { Mutant } from "./Mutant.ts";

const repeats = "test/gateway/proxy/StoredRepeats.test.ts";
const waits = "test/gateway/api/StoredPaths.test.ts";
const groups = "test/runtime/run/SharedGroups.test.ts";
const outages = "test/recorder/shared/OutageLog.test.ts";

/** The mutants of facts that processes share, and of what rests on them. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a repeat at another gateway has a whole budget",
    breaks: "a client's own retries are not multiplied, DESIGN 18",
    within: "#remember",
    find: "return this.#elsewhere?.remember(change) ?? Effect.void;",
    replace: "return Effect.void;",
    proofs: [{ test: repeats, named: "gives what is left of a budget" }],
  },
  {
    name: "two repeats at two gateways are both given what is left",
    breaks: "of several repeats only the first counts",
    within: "take",
    find: "return taken === undefined ? undefined : failedFrom(taken);",
    replace: "return failedFrom(taken ?? found);",
    proofs: [{ test: repeats, named: "taken by one of two" }],
  },
  {
    name: "requests that run side by side share a budget",
    breaks: "programs sample",
    within: "counts",
    find: "ageMs >= begunMs && ",
    replace: "",
    proofs: [{ test: repeats, named: "however late it breaks" }],
  },
  {
    name: "a failure of ten minutes ago counts",
    breaks: "a user who asks again is asked for again",
    within: "counts",
    find: " && ageMs - begunMs <= repeatMs",
    replace: "",
    proofs: [{ test: repeats, named: "however late it breaks" }],
  },
  {
    name: "a run that breaks late has forgotten whose repeat it is",
    breaks: "a client's own retries are not multiplied, DESIGN 18",
    within: "counts",
    find: "ageMs - begunMs <= repeatMs",
    replace: "ageMs <= repeatMs",
    proofs: [{ test: repeats, named: "however late it breaks" }],
  },
  {
    name: "every request asks the store whether it repeats one",
    breaks: "no latency is added, and a happy run costs what it cost",
    within: "elsewhere",
    find: "if (says) return Fiber.join",
    replace: "if (says || begunAt >= 0) return Fiber.join",
    proofs: [{ test: repeats, named: "asks nothing" }],
  },
  {
    name: "a request that does not say so is told what another gateway's client was told",
    breaks: "no first attempt waits for the store",
    within: "recall",
    find: "if (elsewhere === undefined || !saysRetry(request)) return here;",
    replace: "if (elsewhere === undefined) return here;",
    proofs: [{ test: repeats, named: "to those only that say" }],
  },
  {
    name: "a client that has cancelled lessens the budget of who asks the same",
    breaks: "a user's cancel is no failure",
    within: "take",
    find: "(failed.cancelled && !says)",
    replace: "(failed.cancelled && says)",
    proofs: [{ test: repeats, named: "was cancelled counts only" }],
  },
  {
    name: "a store that is away ends the request",
    breaks: "without a store a gateway goes on with what it knows itself",
    within: "tried",
    find: "Effect.catch(({ message }) => Effect.as(outage.failed(message), undefined)),",
    replace: "Effect.catch(({ message }) => Effect.die(message)),",
    proofs: [{ test: repeats, named: "while the store is away" }],
  },
  {
    name: "a wait that one gateway hears is kept by it alone",
    breaks: "a cooldown holds on every gateway, DESIGN 18",
    within: "look",
    find: "if (word !== undefined) heard({",
    replace: "if (word === undefined) heard({",
    proofs: [{ test: waits, named: "hold at each of them" }],
  },
  {
    name: "a wait is as long for who hears of it late",
    breaks: "a wait ends when the provider has said",
    within: "look",
    find: "waitMs: Math.ceil(leftMs)",
    replace: "waitMs: word.waitMs",
    proofs: [{ test: waits, named: "hold at each of them" }],
  },
  {
    name: "a wait is heard anew with every look",
    breaks: "what a trial has found out stands",
    within: "look",
    find: "node === facts.node || known.has(stamp) ?",
    replace: "node === facts.node ?",
    proofs: [{ test: waits, named: "are heard once" }],
  },
  {
    name: "a word that was lost is never made up for",
    breaks: "nothing rests on a message",
    within: "storedIn",
    find: 'if (word._tag === "Look" || (word._tag === "Put" && word.kind === "cooldown")) rung();',
    replace: 'if (word._tag === "Put" && word.kind === "cooldown") rung();',
    proofs: [{ test: waits, named: "found by the next look" }],
  },
  {
    name: "a storm of refusals is a storm of writes",
    breaks: "L11",
    within: "storedIn",
    find: "if (until < (told.get(key) ?? Number.NEGATIVE_INFINITY) + laterMs) return;",
    replace: "",
    proofs: [{ test: waits, named: "are told once" }],
  },
  {
    name: "a group has a budget at each gateway",
    breaks: "groups hold across gateways, DESIGN 18",
    within: "facts",
    find: "if (share?.everywhere !== undefined) return share.everywhere;",
    replace: "",
    proofs: [{ test: groups, named: "no more retries than on one" }],
  },
  {
    name: "a retry that was not taken stays counted everywhere",
    breaks: "no needless question",
    within: "decided",
    find: "this.#groups.holds(member) ? Effect.void : this.#givesBack(member)",
    replace: "Effect.void",
    proofs: [{ test: groups, named: "has a retry again" }],
  },
  {
    name: "a run that decides again counts its retry twice everywhere",
    breaks: "no needless question",
    within: "adds",
    find: "retries: share?.retry === true ? 0 : 1",
    replace: "retries: 1",
    proofs: [{ test: groups, named: "counts a retry once" }],
  },
  {
    name: "each gateway has the whole throttle",
    breaks: "a broken provider is not stormed, DESIGN 18",
    within: "#max",
    find: "return Math.max(1, tokensMax / this.#processes);",
    replace: "return tokensMax;",
    proofs: [{ test: groups, named: "each have its part" }],
  },
  {
    name: "a store that is away is said with every try",
    breaks: "everything is bounded: a log too",
    within: "failed",
    find: "if (now - this.#saidAt < saidAgainMs) return Effect.void;",
    replace: "",
    proofs: [{ test: outages, named: "once a minute while it lasts" }],
  },
  {
    name: "what comes and goes all the time is said each time",
    breaks: "everything is bounded: a log too",
    within: "worked",
    find: "this.#outage = undefined;\n    if (outage === undefined || !outage.isSaid) return Effect.void;",
    replace:
      "this.#outage = undefined;\n    this.#saidAt = Number.NEGATIVE_INFINITY;\n    if (outage === undefined || !outage.isSaid) return Effect.void;",
    proofs: [{ test: outages, named: "fills no log" }],
  },
];
