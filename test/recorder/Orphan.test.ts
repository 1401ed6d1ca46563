import { assert, describe, it } from "@effect/vitest";
import type { AttemptFacts } from "../../src/domain/AttemptFacts.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import { resumesMax } from "../../src/domain/Limits.ts";
import { fresh as freshRun } from "../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import { canGrowInto } from "../../src/facts/Growth.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import * as Orphan from "../../src/recorder/Orphan.ts";
import type { Entry } from "../../src/recorder/RunRecord.ts";
import * as L from "../runtime/crash/Lives.ts";
import { folded } from "./Entries.ts";

const due = (...entries: ReadonlyArray<Entry>) => Orphan.findDueStep(folded([L.begun(), ...entries]));

/** The `decide` of a history. Fails the test if the history has another result. */
const decide = (...entries: ReadonlyArray<Entry>) => {
  const found = due(...entries);
  if (found?._tag !== "decide") throw new Error(`expected decide, got ${found?._tag}`);
  return found;
};

const decided = ({ input }: ReturnType<typeof decide>) => RecoveryPolicy.decide({ ...input, jitter: 0.5 });

const textShown = L.facts(L.text);

describe("A run without an owner", () => {
  it("needs nothing without an attempt, and nothing after its end", () => {
    assert.isUndefined(due());
    const end = { state: "completed", reason: "stop", attempts: 1, at: 1 } as const;
    assert.isUndefined(due(L.attempt(1), { _tag: "RunEnded", end }));
  });

  it("needs a decision on its recorded facts if nothing was decided, because the request may have been sent", () => {
    const { attempt, input, standing } = decide(L.attempt(1, { run: { ...freshRun, auto_retries: 2 } }));
    assert.deepStrictEqual(
      [attempt.attempt, input.failure, input.facts.delivery, input.run.auto_retries, standing],
      [1, { kind: "crashed" }, "ambiguous", 2, undefined],
    );
  });

  it("has no other route: the process that continues it knows the remaining ones", () => {
    const run = { ...freshRun, next_route: "up" as const, route_failures: 3, own_route: true };
    assert.strictEqual(decide(L.attempt(1, { run })).input.run.next_route, "none");
  });

  it("gets the decision that permits least if the record does not say what the run could do", () => {
    const unsaid: Entry = { _tag: "AttemptStarted", attempt: 1, mode: "first", at_ms: 0, facts: textShown };
    const { input } = decide(unsaid);
    assert.deepInclude(input.run, { discardable: false, can_continue: false, can_refresh_credentials: false });
  });

  it("has an unknown outcome for a started call without an outcome", () => {
    const found = decide(L.attempt(1), L.raised(1, L.dispatched));
    assert.deepStrictEqual(
      found.input.facts.tools.map(({ phase }) => phase),
      ["outcome_unknown"],
    );
    assert.strictEqual(decided(found).rule, "tool_outcome_unknown");
  });

  it("keeps hosted calls, settled calls and calls that were not started as they are", () => {
    const provider = {
      call: "0.3",
      tool: "mcp",
      executor: "provider",
      effect: "unknown",
      phase: "input_started",
    } as const;
    const tools = [L.call("settled", "0.0"), L.call("handed_over", "0.1"), L.call("input_started", "0.2"), provider];
    assert.deepStrictEqual(Orphan.assumeCrash(L.facts({ tools })).tools, tools);
  });
});

describe("A decision that was not carried out", () => {
  it("is offered if it is a retry", () => {
    const retry = L.incident(1, L.facts());
    assert.deepInclude(due(L.attempt(1), L.opened(retry)), { _tag: "offered", incident: retry });
  });

  it("is offered although the crash came before anything was sent, because the attempt had ended", () => {
    const retry = L.incident(1, L.facts({ delivery: "not_sent" }));
    assert.deepInclude(due(L.attempt(1), L.opened(retry)), { _tag: "offered" });
  });

  it("is not offered if facts have grown since", () => {
    const found = decide(L.attempt(1), L.opened(L.incident(1, L.facts())), L.raised(1, textShown));
    assert.deepStrictEqual([found.input.failure, decided(found).rule], [L.reset, "text_shown"]);
  });

  it("is not offered if it would resume with a cursor, which was lost with its process", () => {
    const resume = L.incident(1, L.dispatched, { run: { resumable: true } });
    assert.strictEqual(resume.decision.mode, "resume");
    const found = decide(L.attempt(1), L.raised(1, L.dispatched), L.opened(resume));
    assert.deepStrictEqual([found.input.run.resumable, decided(found).rule], [false, "tool_outcome_unknown"]);
  });

  it("is kept if it is a question or a stop", () => {
    const cancelled = L.incident(1, textShown, { run: { user_cancelled: true } });
    for (const incident of [L.incident(1, textShown), cancelled]) {
      const { standing } = decide(L.attempt(1), L.raised(1, textShown), L.opened(incident));
      assert.strictEqual(standing?.decision.rule, incident.decision.rule);
    }
  });

  it("is not kept if facts have grown since", () => {
    const found = decide(L.attempt(1), L.opened(L.incident(1, textShown)), L.raised(1, L.dispatched));
    assert.deepStrictEqual([found.standing, decided(found).rule], [undefined, "tool_outcome_unknown"]);
  });

  it("is a crash like any other if its own caller left the run, with the run's spent budget", () => {
    const left = L.incident(1, L.facts(), { failure: { kind: "cancelled", by: "caller" }, run: { auto_retries: 1 } });
    const { input, standing } = decide(L.attempt(1), L.opened(left), L.parked("interrupted"));
    assert.deepStrictEqual([input.failure, input.run.auto_retries, standing], [{ kind: "crashed" }, 1, undefined]);
  });

  it("is irrelevant if an attempt was started after it", () => {
    const retry = L.incident(1, L.facts());
    const found = decide(L.attempt(1), L.opened(retry), L.marked(retry, "acted_on"), L.attempt(2, { mode: "replay" }));
    assert.deepStrictEqual([found.attempt.attempt, found.input.failure], [2, { kind: "crashed" }]);
  });

  it("is irrelevant if it was found late", () => {
    const late: RunIncident = { ...L.incident(1, textShown), status: "late" };
    assert.deepStrictEqual(decide(L.attempt(1), L.opened(late)).input.failure, { kind: "crashed" });
  });
});

describe("A question", () => {
  const broken = (its: AttemptFacts, run = {}) => {
    const incident = L.incident(1, its, { run });
    return [L.attempt(1), L.raised(1, its), L.opened(incident), L.asked(incident)] as const;
  };

  it("is waited for, even if the crash left its call without an outcome", () => {
    assert.strictEqual(due(...broken(textShown))?._tag, "waiting");
    assert.strictEqual(due(...broken(L.dispatched))?._tag, "waiting");
  });

  it("is asked again if the facts have grown, on its original failure", () => {
    const found = decide(...broken(L.dispatched), L.raised(1, L.settled));
    assert.deepStrictEqual([found.input.failure, decided(found).rule], [L.reset, "tool_ran"]);
  });

  const answers: ReadonlyArray<Choice> = ["retry", "continue", "accept", "stop"];
  for (const choice of answers) {
    it(`that was answered "${choice}" is carried out`, () => {
      assert.deepInclude(due(...broken(textShown), L.answered(choice)), { _tag: "answered", choice });
    });

    it(`that was answered "${choice}" is over once an attempt was started`, () => {
      const later = L.attempt(2, { mode: "replay" });
      assert.deepInclude(decide(...broken(textShown), L.answered(choice), later).input, {
        failure: { kind: "crashed" },
      });
    });
  }

  it("whose answer starts something is asked again if the facts have grown since, and one that ends the run is not", () => {
    const grown = [...broken(textShown), L.raised(1, L.dispatched)];
    assert.strictEqual(due(...grown, L.answered("retry"))?._tag, "decide");
    assert.strictEqual(due(...grown, L.answered("stop"))?._tag, "answered");
  });

  it("is over if something else was decided after its answer", () => {
    const cancelled = L.incident(2, textShown, { run: { user_cancelled: true } });
    const found = decide(...broken(textShown), L.answered("retry"), L.opened(cancelled));
    assert.strictEqual(found.standing?.decision.rule, "user_cancelled");
  });

  it("is over if its run was stopped before it was asked again", () => {
    const again = L.incident(2, L.settled);
    const found = decide(...broken(L.dispatched), L.raised(1, L.settled), L.opened(again));
    assert.strictEqual(found.standing?.id, again.id);
  });

  it("about calls is answered until they are settled, and then decided again", () => {
    const word = [...broken(L.dispatched), L.answered("it_ran")];
    assert.strictEqual(due(...word)?._tag, "answered");
    const unknown = L.facts({ ...L.dispatched, tools: [L.call("outcome_unknown")] });
    assert.strictEqual(due(...word, L.raised(1, unknown))?._tag, "answered");
    assert.strictEqual(decided(decide(...word, L.raised(1, L.settled))).rule, "tool_ran");
  });
});

describe("A response that was resumed", () => {
  const resumable = L.incident(1, L.dispatched, { run: { resumable: true } });
  const resumed = [
    L.attempt(1),
    L.raised(1, L.dispatched),
    L.opened(resumable),
    L.marked(resumable, "acted_on"),
    L.attempt(2, { mode: "resume", request: "resume" }),
  ];

  it("consists of every attempt since the one that requested it", () => {
    const record = folded([L.begun(), ...resumed, L.attempt(3, { mode: "resume", request: "resume" })]);
    assert.deepStrictEqual(
      Orphan.lastResponse(record).map(({ attempt }) => attempt),
      [1, 2, 3],
    );
  });

  it("is decided as a whole: a call of an earlier attempt still has an unknown outcome", () => {
    const found = decide(...resumed, L.raised(2, textShown));
    assert.deepStrictEqual([found.attempt.attempt, decided(found).rule], [1, "tool_outcome_unknown"]);
  });

  it("distinguishes calls: one that settled in the second attempt proves nothing about its namesake in the first", () => {
    const second = L.incident(2, L.settled, { attempt: 2, run: { mode: "resume" } });
    const found = decide(...resumed, L.raised(2, L.settled), L.opened(second));
    assert.deepStrictEqual(
      found.input.facts.tools.map(({ call, phase }) => [call, phase]),
      [
        ["0.0", "outcome_unknown"],
        ["2/0.0", "settled"],
      ],
    );
  });

  it("keeps facts that only its incident has, because the first of two writes can be lost", () => {
    const second = L.incident(2, L.settled, { attempt: 2, run: { mode: "resume" } });
    const found = decide(...resumed, L.opened(second));
    assert.deepInclude(found.input.facts.tools, { ...L.call("settled"), call: "2/0.0" });
    const single = decide(L.attempt(1), L.opened(L.incident(1, L.dispatched)));
    assert.strictEqual(decided(single).rule, "tool_outcome_unknown");
  });
});

describe("A run that was taken over too often", () => {
  const resumes = (count: number) => Array.from({ length: count }, (): Entry => ({ _tag: "RunResumed" }));
  const retry = [L.attempt(1), L.opened(L.incident(1, L.facts()))];

  it(`is offered ${resumesMax} times`, () => {
    assert.strictEqual(due(...retry, ...resumes(resumesMax - 1))?._tag, "offered");
    assert.strictEqual(decided(decide(...retry, ...resumes(resumesMax))).rule, "budget_exhausted");
    assert.strictEqual(decided(decide(L.attempt(1), ...resumes(resumesMax))).rule, "budget_exhausted");
  });

  it("asks even if its failure would cost nothing", () => {
    const free = [L.attempt(1), L.opened(L.incident(1, L.facts(), { failure: { kind: "rate_limited" } }))];
    assert.strictEqual(due(...free)?._tag, "offered");
    assert.strictEqual(decided(decide(...free, ...resumes(resumesMax))).rule, "budget_exhausted");
  });

  it("is offered as often again since a person's last word, but not since a program's", () => {
    const asked = (by: "person" | "program"): ReadonlyArray<Entry> => [
      L.attempt(1),
      ...resumes(resumesMax),
      L.opened(L.incident(1, textShown)),
      L.asked(L.incident(1, textShown)),
      { _tag: "QuestionAnswered", revision: 1, answer: "retry", by },
      L.attempt(2, { mode: "replay" }),
    ];
    const spent = (entries: ReadonlyArray<Entry>) => Orphan.isSpent(folded([L.begun(), ...entries]));
    assert.isTrue(spent(asked("program")));
    assert.isFalse(spent([...asked("person"), ...resumes(resumesMax - 1)]));
    assert.isTrue(spent([...asked("person"), ...resumes(resumesMax)]));
    const lost = decide(...asked("person"), ...resumes(1));
    assert.notStrictEqual(decided(lost).rule, "budget_exhausted");
  });

  it("still carries out a person's answer", () => {
    const life = L.questioned(textShown, "retry").flat().slice(1);
    assert.strictEqual(due(...life, ...resumes(resumesMax))?._tag, "answered");
  });
});

describe("The next incident's number", () => {
  it("follows the kept and the dropped incidents", () => {
    const incidents = Array.from({ length: 40 }, (_, index) => L.opened(L.incident(index + 1, L.facts())));
    assert.strictEqual(Orphan.lastIncidentNumber(folded([L.begun(), L.attempt(1), ...incidents])), 40);
  });

  it("is never one that is on record, even if an earlier incident was never written", () => {
    const record = folded([L.begun(), L.attempt(1), L.opened(L.incident(3, L.facts()))]);
    assert.strictEqual(Orphan.lastIncidentNumber(record), 3);
    const foreign = { ...L.incident(1, L.facts()), id: "imported" };
    assert.strictEqual(Orphan.lastIncidentNumber(folded([L.begun(), L.opened(foreign)])), 1);
  });
});

describe("Over every known history", () => {
  it("no decision is weaker than the one on record (L1)", () => {
    let decisions = 0;
    for (const [name, life] of Object.entries(L.lives)) {
      for (let writes = 1; writes <= life.length; writes += 1) {
        const record = folded(life.slice(0, writes).flat());
        const found = Orphan.findDueStep(record);
        if (found?._tag !== "decide") continue;
        decisions += 1;
        const [first] = Orphan.lastResponse(record);
        // Except for the marker: parts before it that were not handed over are lost, so it no longer proves anything.
        const known = first && { ...first.facts, terminal_seen: false };
        assert.isTrue(known !== undefined && canGrowInto(known, found.input.facts), `${name}, write ${writes}`);
        assert.isFalse(found.input.facts.terminal_seen, name);
        assert.notStrictEqual(found.input.facts.delivery, "not_sent", name);
        assert.isFalse(
          found.input.facts.tools.some(({ executor, phase }) => executor === "runtime" && phase === "dispatched"),
          name,
        );
      }
    }
    assert.isAbove(decisions, 20);
  });
});
