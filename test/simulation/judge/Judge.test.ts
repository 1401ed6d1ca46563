/** Proves that the judge can fail: made-up traces with one lie in each. */
import { assert, describe, it } from "@effect/vitest";
import { Exit } from "effect";
import { fresh } from "../../../src/domain/AttemptFacts.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import type { Entry as Written } from "../../../src/recorder/RunRecord.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import { generate } from "../Generator.ts";
import type { Happened, Part, Trace } from "../Journal.ts";
import { plainWorld, type World } from "../Scenario.ts";
import type { Invariant } from "./Invariants.ts";
import { judge } from "./Judge.ts";

const part = (serial: number, says = Observation.text(4), attempt = 1): Part => ({
  serial: `first#${serial}`,
  attempt,
  says,
});
const done = (serial: number, attempt = 1): Part => part(serial, Observation.terminal("stop"), attempt);

const seen = (event: RunEvent<Part>): Happened => ({ what: "seen", event });
const started = (attempt: number, mode: "first" | "replay" | "continue" = attempt === 1 ? "first" : "replay") =>
  seen({ _tag: "AttemptStarted", run_id: "r", attempt, mode });
const handed = (ordinal: number, it: Part): Happened => seen({ _tag: "Part", attempt: it.attempt, ordinal, part: it });
const retried = (attempt: number) =>
  seen({ _tag: "RetryScheduled", attempt, mode: "replay", rule: "nothing_shown", delay_ms: 0, message: "" });
const discarded = (attempt: number, keep_through: number) => seen({ _tag: "AttemptDiscarded", attempt, keep_through });
const completed = (attempts: number) =>
  seen({ _tag: "RunCompleted", run_id: "r", attempts, finish: "stop", late_failure: undefined });
const opened = (attempt: number, mode: "first" | "replay" = attempt === 1 ? "first" : "replay"): Happened => ({
  what: "opened",
  context: { attempt, mode, request: "first", cursor: undefined, calls: [] },
});
const closed = (attempt: number): Happened => ({ what: "closed", attempt });
const emitted = (...parts: ReadonlyArray<Part>): Happened => ({
  what: "emitted",
  attempt: parts[0]?.attempt ?? 1,
  parts,
});
const written = (...entries: ReadonlyArray<Written>): ReadonlyArray<Happened> => [
  { what: "writing", entries },
  { what: "written", entries, ok: true },
];
const begins = (attempt: number) =>
  written(...(attempt === 1 ? [{ _tag: "RunStarted", run_id: "r", provider: { id: "p" }, at: 0 } as const] : []), {
    _tag: "AttemptStarted",
    attempt,
    mode: "first",
    at_ms: 0,
    facts: { ...fresh, shown: "text" },
  });
const ends = (state: "completed" | "stopped" = "completed") =>
  written({ _tag: "RunEnded", end: { state, reason: "stop", attempts: 1, at: 0 } });
const over: Happened = { what: "ended", exit: Exit.void };

const trace = (...happened: ReadonlyArray<Happened | ReadonlyArray<Happened>>): Trace => ({
  scenario: { ...generate(1), surface: "run" },
  journal: happened.flat().map((it, at) => ({ ...it, at })),
  record: undefined,
  ended: true,
  closed: true,
  telemetry: [],
});

/** The invariants that a made-up trace violates, except those that it violates only because it is short. */
const broken = (it: Trace, ...asked: ReadonlyArray<Invariant>): ReadonlyArray<string> => [
  ...new Set(
    judge(it)
      .map(({ invariant }) => invariant)
      .filter((invariant) => asked.includes(invariant)),
  ),
];

const lived = [opened(1), started(1), emitted(part(1), done(2)), handed(1, part(1)), handed(2, done(2))];
const whole = [...lived, closed(1), completed(1), over];
const all = ["I1", "I2", "I3", "I4", "I5"] as const;

describe("The judge", () => {
  it("finds nothing in a plain run", () => {
    assert.deepStrictEqual(broken(trace(...whole), ...all), []);
  });

  it("finds nothing if a replay withdraws what was shown", () => {
    const first = [opened(1), started(1), emitted(part(1)), handed(1, part(1)), closed(1), retried(1)];
    const second = [part(1, Observation.text(4), 2), done(2, 2)] as const;
    const rest = [opened(2), emitted(...second), handed(1, second[0]), handed(2, second[1]), closed(2), completed(2)];
    assert.deepStrictEqual(broken(trace(...first, discarded(1, 0), started(2), ...rest, over), ...all), []);
  });

  it("finds nothing in an incident that is offered again to a store that is away", () => {
    const offered = Array.from({ length: 40 }, () => incident("user_cancelled"));
    assert.deepStrictEqual(broken(trace(...offered), "I28"), []);
  });

  it("finds nothing in a response that first joined shown text and then came whole, after a person's retry", () => {
    const atSeam = { proof: "anchor", at: 1, quote: "shown" } as const;
    const joins: Happened = {
      what: "opened",
      context: { attempt: 1, mode: "continue", request: "continue", cursor: undefined, calls: [], seam: atSeam },
    };
    const second = [part(1, Observation.text(4), 2), done(2, 2)] as const;
    const rest = [opened(2), emitted(...second), handed(1, second[0]), handed(2, second[1]), closed(2), completed(2)];
    const told = inWorld(
      { seam: { anchor: 1, behind: 0, proof: "anchor" } },
      joins,
      emitted(part(1), part(2)),
      closed(1),
      ...rest,
      over,
    );
    assert.deepStrictEqual(broken(told, "I2"), []);
    const atAnchor = inWorld(
      { seam: { anchor: 1, behind: 0, proof: "anchor" } },
      joins,
      emitted(part(1), part(2), part(3)),
      handed(1, part(3)),
      over,
    );
    assert.deepStrictEqual(broken(atAnchor, "I2"), ["I2"]);
  });

  const lies: ReadonlyArray<readonly [lie: string, invariant: Invariant, trace: Trace]> = [
    ["a gap between ordinals", "I1", trace(opened(1), started(1), emitted(part(1)), handed(2, part(1)), over)],
    ["an attempt number that is left out", "I1", trace(started(1), retried(1), started(3), over)],
    ["an attempt that was not announced", "I1", trace(started(1), started(2), over)],
    ["an event after the end", "I1", trace(...lived, completed(1), retried(1), over)],
    ["two ends", "I1", trace(...lived, completed(1), over, over)],
    ["a discard of what was never handed over", "I1", trace(started(1), retried(1), discarded(1, 0), started(2), over)],
    ["a discard that no attempt follows", "I1", trace(...lived, retried(1), discarded(1, 0), completed(1), over)],
    ["a part of an attempt that is over", "I1", trace(started(1), retried(1), started(2), handed(1, part(1)), over)],
    ["a wrong count of attempts", "I1", trace(...lived, completed(2), over)],
    [
      "text that comes twice because nothing withdrew the first",
      "I2",
      trace(started(1), handed(1, part(1)), retried(1), started(2), handed(1, part(1, Observation.text(4), 2)), over),
    ],
    ["a part that was lost on the way", "I2", trace(started(1), handed(1, part(1)), handed(2, part(3)), over)],
    ["a guarded call that starts twice", "I3", trace(opened(1), starts(1), starts(1), over)],
    ["a guarded call of a superseded attempt", "I3", trace(opened(1), closed(1), opened(2), starts(1), over)],
    ["an automatic replay of a call that ran", "I3", trace(opened(1), starts(1), closed(1), opened(2), over)],
    ["two attempts at once", "I4", trace(opened(1), opened(2), over)],
    [
      "an abandoned attempt that had no time to close",
      "I4",
      trace(opened(1), noted("failure"), noted("abandoned"), opened(2), over),
    ],
    ["a completion without the marker", "I5", trace(opened(1), started(1), emitted(part(1)), completed(1), over)],
    [
      "a completion behind an error",
      "I5",
      trace(opened(1), emitted(part(1, Observation.failed({ kind: "transport" }))), emitted(done(2)), completed(1)),
    ],
    [
      "a marker at the end that is not the end",
      "I5",
      trace(
        opened(1),
        emitted(part(1, { ...Observation.none, terminal_at_end: true })),
        emitted(part(2)),
        completed(1),
      ),
    ],
    ["a stream that never ends", "I6", { ...trace(...whole), ended: false }],
    ["a scope that never closes", "I6", { ...trace(...whole), closed: false }],
    ["two recorded ends", "I6", trace(begins(1), ...lived, ends(), ends("stopped"), over)],
    ["an attempt that opens before its start is on record", "I7", trace(begins(1), opened(1), closed(1), opened(2))],
    ["a dispatch that is not on record", "I7", trace(begins(1), opened(1), starts(1))],
    ["a hand-over that is not on record", "I7", trace(opened(1), started(1), handed(1, part(1)))],
    ["a cancel that was not made", "I10", trace(begins(1), incident("user_cancelled"))],
    ["a handler that starts after the stop", "I11", trace(begins(1), opened(1), ends("stopped"), starts(1))],
    ["a plain part twice", "I13", trace(got(part(1)), got(part(1)))],
    ["a plain call before the marker", "I13", trace(opened(1), got(part(1, call)))],
  ];
  const worlds: typeof lies = [
    ["an id that is asked for twice", "I17", inWorld({ again: { how: "new_stream", when: 1 } }, opened(1), opened(1))],
    ["an entry that cannot be read back", "I18", trace(written(unreadable))],
    ["two ends that differ", "I19", inWorld({}, ends(), ends("stopped"))],
    [
      "a first attempt that waits for a write that hangs",
      "I20",
      late(60_000, inWorld({ faults: [{ at: 0, how: "hang" }] }, opened(1))),
    ],
    [
      "a clock that cut before its time",
      "I21",
      inWorld({ freezes: [{ when: { at: 1 }, wall: 9_000, monotonic: 9_000 }] }, opened(1), cut),
    ],
    ["a run that ends long after all was well", "I22", late(10_000_000, inWorld({ calmAt: 0 }, over))],
    ["text that counts as shown and was not handed over", "I23", trace(incident("user_cancelled", "text"))],
    ["a call that is said not to run while it does", "I24", trace(starts(1), written(didNotRun))],
  ];
  const crossings: typeof lies = [
    ["a run that goes back to a route that it has left", "I25", trace(opened(1), by("b", opened(2)), opened(3))],
    ["a continuation that crosses", "I25", trace(opened(1), by("b", opened(2), { request: "continue" }))],
    ["a cursor that crosses", "I25", trace(opened(1), by("b", opened(2), { cursor: "first#1" }))],
    [
      "a move behind text that was shown",
      "I25",
      trace(opened(1), incident("user_cancelled", "text"), by("b", opened(2))),
    ],
  ];
  const spins: typeof lies = [
    [
      "a loop of decisions within a second",
      "I28",
      trace(...Array.from({ length: 17 }, (_, n) => incident("user_cancelled", "nothing", `r.${n}`))),
    ],
  ];
  for (const [lie, invariant, told] of [...lies, ...worlds, ...crossings, ...spins]) {
    it(`finds ${lie} (${invariant})`, () => {
      assert.deepStrictEqual(broken(told, invariant), [invariant]);
    });
  }
});

function inWorld(world: Partial<World>, ...happened: ReadonlyArray<Happened | ReadonlyArray<Happened>>): Trace {
  const told = trace(...happened);
  return { ...told, scenario: { ...told.scenario, world: { ...plainWorld, ...world } } };
}

/** The same trace, the given number of virtual milliseconds later. */
function late(ms: number, told: Trace): Trace {
  return { ...told, journal: told.journal.map((it) => ({ ...it, at: it.at + ms })) };
}

const unreadable: Written = { _tag: "AttemptStarted", attempt: 1.5, mode: "first", at_ms: 0, facts: fresh };

const cut: ReadonlyArray<Happened> = written({
  _tag: "EvidenceNoted",
  evidence: { at_ms: 0, attempt: 1, event: "watchdog", detail: "first_progress" },
});

const didNotRun: Written = {
  _tag: "CallJudged",
  attempt: 1,
  call: "0.0",
  tool: "bash",
  verdict: "it_did_not_run",
  by: "person",
};

function starts(attempt: number): Happened {
  const named = { tool: "bash", guarded: true, effect: "mutating", call: "0.0", vague: false } as const;
  return { what: "handler_started", call: { ...named, attempt } };
}

function noted(event: "failure" | "abandoned"): ReadonlyArray<Happened> {
  return written({ _tag: "EvidenceNoted", evidence: { at_ms: 0, attempt: 1, event } });
}

/** The same attempt by another route. */
function by(
  route: string,
  it: Happened,
  more: { readonly request?: "continue"; readonly cursor?: string } = {},
): Happened {
  return it.what === "opened" ? { ...it, context: { ...it.context, ...more, route } } : it;
}

function got(it: Part): Happened {
  return { what: "got", part: it };
}

const call = Observation.calls([
  { choice: 0, ordinal: 0, id: "", tool: "bash", executor: "runtime", phase: "ready", input: "{}" },
]);

function incident(rule: "user_cancelled", shown: "nothing" | "text" = "nothing", id = "r.1"): ReadonlyArray<Happened> {
  const decision = { action: "do_not_retry", rule, delay_ms: 0, policy_version: "2", because: [] } as const;
  const run = { mode: "first" } as const;
  // The judge reads only the rule, so the rest of the incident is missing.
  const it = { id, decision, run, attempt: 1, facts: { ...fresh, shown } } as unknown as Extract<
    Written,
    { readonly _tag: "IncidentOpened" }
  >["incident"];
  return [{ what: "writing", entries: [{ _tag: "IncidentOpened", incident: it }] }];
}
