/**
 * Negates each law, one way or several. The simulations find them by themselves; the law's own tests
 * stand behind them.
 */
import type { Mutant, Proof } from "./Mutant.ts";

/** Simulated runs of one process. */
const runs: Proof = { simulate: "runs", runs: 2_000 };

/** Simulated runs of several processes. */
const crash: Proof = { simulate: "crash", runs: 1_500 };

/** One mutant or more a law. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a call's row takes whatever was said last, also an earlier phase",
    breaks: "L1",
    within: "#grown",
    find: "return isFolded(known) ? foldRows(known, row) : laterRow(known, row);",
    replace: "return isFolded(known) ? foldRows(known, row) : row;",
    proofs: [runs, { test: "test/facts/Facts.test.ts" }],
  },
  {
    name: "what was shown goes back to what the last part shows",
    breaks: "L1",
    within: "handedOver",
    find: "if (shows !== this.#now.shown && !chainAtMost(Shown, shows, this.#now.shown)) {\n      this.#now.shown = shows;",
    replace: "if (shows !== this.#now.shown) {\n      this.#now.shown = shows;",
    proofs: [runs, { test: "test/facts/Facts.test.ts" }],
  },
  {
    name: "a dispatched call that may have run no longer forbids a replay",
    breaks: "L2",
    within: "recoveryRows",
    find: '"a runtime call dispatched, not read_only", (s) => s.ledger.dispatched),',
    replace: '"a runtime call dispatched, not read_only", (s) => s.ledger.dispatched && s.shown === "nothing"),',
    proofs: [runs, { test: "test/policy/Laws.test.ts" }],
  },
  {
    name: "a call that the provider runs is forgiven once reasoning was shown",
    breaks: "L2",
    within: "recoveryRows",
    find: "(s) => s.ledger.providerChanging,",
    replace: '(s) => s.ledger.providerChanging && s.shown === "nothing",',
    proofs: [{ test: "test/policy/Laws.test.ts" }, runs],
  },
  {
    name: "a replay sends the run's first request, whatever the failed attempt sent",
    breaks: "L3",
    within: "prepared",
    find: 'const setup = { mode: "replay", request: first.request, calls: first.calls, cursor: from } as const;',
    replace: 'const setup = { mode: "replay", request: "first", calls: [], cursor: undefined } as const;',
    proofs: [runs, { test: "test/runtime/attempt/Handover.test.ts" }],
  },
  {
    name: "a part that was decoded and not handed over counts as shown",
    breaks: "L4",
    within: "keepFrozen",
    find: "this.#frozen = [...this.#frozen, transit];\n    this.#countDecoded(transit);",
    replace: "this.#frozen = [...this.#frozen, transit];\n    this.#count(transit);",
    proofs: [runs, { test: "test/runtime/attempt/Handover.test.ts" }],
  },
  {
    name: "what was frozen at a failure is still handed over",
    breaks: "L4",
    within: "freeze",
    find: "this.#next = [];\n    this.#host.handoff.clear();",
    replace: "this.#next = [];",
    proofs: [runs, { test: "test/runtime/attempt/Handover.test.ts" }],
  },
  {
    name: "a clean end without the provider's marker is a success",
    breaks: "L5",
    within: "brokenBy",
    find: 'if (!own.terminal_seen) return broken({ kind: "truncated" }, undefined);',
    replace: "",
    proofs: [runs, { test: "test/laws/NoFalseSuccess.test.ts" }],
  },
  {
    name: "a marker behind an error event counts",
    breaks: "L5",
    within: "decoded",
    find: "if (o.terminal && !this.#failed && !this.#now.terminal_seen) {",
    replace: "if (o.terminal && !this.#now.terminal_seen) {",
    proofs: [{ test: "test/laws/NoFalseSuccess.test.ts" }, { test: "test/facts/Facts.test.ts" }, runs],
  },
  {
    name: "a retry does not wait for the attempt before it to close",
    breaks: "L6",
    within: "retry",
    find: '=== "late") return "again";\n  yield* run.response.closed;',
    replace: '=== "late") return "again";',
    proofs: [runs],
  },
  {
    name: "a superseded attempt's calls start all the same",
    breaks: "L6",
    within: "withdraw",
    find: "chain.seal();\n  chain.discardFrozen();",
    replace: "chain.open();\n  chain.discardFrozen();",
    proofs: [runs, crash],
  },
  {
    name: "the stream ends and the record does not",
    breaks: "L7",
    within: "#end",
    find: "const write = this.#writer.write([...this.#ends(attempt, end), ...entries], true);",
    replace: "const write = this.#writer.write([...this.#ends(attempt, end)], true);",
    proofs: [runs],
  },
  {
    name: "a run whose end is on record takes more entries",
    breaks: "L7",
    within: "apply",
    find: 'return record.state === "ended" ? "run_ended" : applyLive(record, entry);',
    replace: "return applyLive(record, entry);",
    proofs: [runs, { test: "test/recorder/RunRecord.test.ts" }],
  },
  {
    name: "a handler starts although its dispatch could not be recorded",
    breaks: "L8",
    within: "recordDispatch",
    find: '!recorded ? "not_recorded" : owner.fence.isSealed ? "superseded" : "recorded",',
    replace: 'owner.fence.isSealed && recorded ? "superseded" : "recorded",',
    proofs: [runs, { test: "test/runtime/tools/ToolGuard.test.ts" }],
  },
  {
    name: "parts are handed over and recorded afterwards",
    breaks: "L8",
    within: "#takeSlot",
    find: "return Effect.flatMap(record, (may) => {\n      if (this.#slot !== slot) return this.take;",
    replace:
      "return Effect.flatMap(Effect.as(Effect.forkDetach(record), true), (may) => {\n      if (this.#slot !== slot) return this.take;",
    proofs: [runs],
  },
  {
    name: "an attempt starts although its start is not on record",
    breaks: "L8",
    within: "launch",
    find: "if (!recorded) {\n    run.dropPrepared();",
    replace: "if (!recorded && run.attempts < 0) {\n    run.dropPrepared();",
    proofs: [runs],
  },
  {
    name: "an incident forgets the jitter that its delay was drawn with",
    breaks: "L9",
    within: "make",
    find: "provider,\n    ...input,",
    replace: "provider,\n    ...input,\n    jitter: 0,",
    proofs: [runs],
  },
  {
    name: "an unsigned interrupt is taken for the user's cancel",
    breaks: "L10",
    within: "stopFailure",
    find: 'return { kind: "cancelled", by: by === "consumer_finished" ? "caller" : by };',
    replace: 'return { kind: "cancelled", by: by === "lifecycle" ? by : "user" };',
    proofs: [runs, { test: "test/runtime/run/Interrupts.test.ts" }],
  },
  {
    name: "a provider's own cancel is taken for the caller's",
    breaks: "L10",
    within: "endOf",
    find: 'return failed({ kind: "cancelled", by: "provider" }, cause);',
    replace: 'return failed({ kind: "cancelled", by: "caller" }, cause);',
    proofs: [runs, { test: "test/runtime/run/Interrupts.test.ts" }],
  },
  {
    name: "a record keeps all of its first evidence",
    breaks: "L11",
    within: "evidenceFirstMax",
    find: "export const evidenceFirstMax = 16;",
    replace: "export const evidenceFirstMax = 16_000_000;",
    proofs: [{ test: "test/laws/Bounded.test.ts" }, runs],
  },
  {
    name: "a tool ledger grows with every call",
    breaks: "L11",
    within: "#full",
    find: "return this.#index !== undefined && this.#index.size >= ownRowsMax;",
    replace: "return false;",
    proofs: [{ test: "test/laws/Bounded.test.ts" }, { test: "test/policy/Laws.test.ts" }],
  },
  {
    name: "what the caller gets as the cause is a copy of the provider's error",
    breaks: "L12",
    within: "interrupted",
    find: "message: loss === undefined ? message : sentences[loss],\n    ...(route === undefined ? {} : { route }),\n    ...(cause === undefined ? {} : { cause }),",
    replace:
      "message: loss === undefined ? message : sentences[loss],\n    ...(route === undefined ? {} : { route }),\n    ...(cause === undefined ? {} : { cause: new Error(String(cause)) }),",
    proofs: [runs, { test: "test/laws/OriginalError.test.ts" }],
  },
];
