/**
 * Folds runs of every length, ending and tool phase, and compares the headline of each with the events.
 */
import { assert, describe, it } from "@effect/vitest";
import type { ToolRow } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { fresh as freshRun } from "../../src/domain/RunFacts.ts";
import { runStateAfter } from "../../src/policy/Rules.ts";
import type * as RunRecord from "../../src/recorder/RunRecord.ts";
import { cancelWords } from "../../src/story/CancelWords.ts";
import { runStatuses, statusOf } from "../../src/story/RunStatus.ts";
import { runSteps } from "../../src/story/RunSteps.ts";
import { runStory } from "../../src/story/RunStory.ts";
import { summaryOf } from "../../src/story/RunSummary.ts";
import * as S from "../cli/Stored.ts";
import { call, folded, parked, questionOf } from "../recorder/Entries.ts";

type Outcome = "completed" | "cancelled" | "interrupted" | "failed" | "asked";

const failures: Readonly<Record<Exclude<Outcome, "completed">, Failure>> = {
  cancelled: { kind: "cancelled", by: "user" },
  interrupted: { kind: "cancelled", by: "caller" },
  failed: { kind: "rejected", reason: "invalid_request" },
  asked: { kind: "unknown" },
};

const tools: Readonly<Record<string, ReadonlyArray<ToolRow>>> = {
  "no tool": [],
  "a dispatched read-only tool": [call("dispatched", { effect: "read_only", tool: "read_file" })],
  "a dispatched mutating tool": [call("dispatched")],
  "two mutating tools of unknown outcome": [
    call("outcome_unknown"),
    call("dispatched", { call: "0.1", tool: "write_file" }),
  ],
  "a mutating tool that ran": [call("settled")],
};

interface Case {
  readonly attempts: 1 | 2;
  readonly outcome: Outcome;
  readonly rows: ReadonlyArray<ToolRow>;
  /** True if the last attempt's end marker came before it ended. */
  readonly isWhole: boolean;
}

const at = S.startedAt + 4_200;

/** The run as the processor records it. The policy decides the end of its last attempt. */
const recordOf = ({ attempts, isWhole, outcome, rows }: Case): RunRecord.RunRecord => {
  const facts = S.factsOf({ terminal_seen: isWhole, tools: rows });
  const before = S.incidentOf("r", 1, {});
  const start = [
    S.begun("r"),
    ...(attempts === 1
      ? []
      : ([
          S.attempted(1, S.factsOf({})),
          { _tag: "IncidentOpened", incident: before },
          { _tag: "IncidentMarked", incident: before.id, status: "acted_on" },
        ] as const)),
    S.attempted(attempts, facts, 1_600),
    ...rows.map((row): RunRecord.Entry => {
      const { call, tool } = row;
      return { _tag: "CallHandedOver", attempt: attempts, call, id: `toolu_${call}`, tool };
    }),
  ];
  const completed = { _tag: "RunEnded", end: { state: "completed", reason: "tool_use", attempts, at } } as const;
  if (outcome === "completed") return folded([...start, completed]);
  const run = { ...freshRun, user_cancelled: outcome === "cancelled" };
  const last = { ...S.incidentOf("r", attempts, { facts, failure: failures[outcome], run }, at), id: "r.last" };
  const opened = [...start, { _tag: "IncidentOpened", incident: last } as const];
  if (last.decision.action === "ask_user") return folded([...opened, questionOf(last), parked("question")]);
  const after = runStateAfter(last.decision.rule);
  if (after === "completed") return folded([...opened, completed]);
  if (after === "left") return folded([...opened, parked("interrupted")]);
  const end = { state: "stopped", reason: last.decision.rule, attempts, at, incident: last.id } as const;
  return folded([...opened, { _tag: "RunEnded", end }]);
};

const cases = ([1, 2] as const).flatMap((attempts) =>
  (["completed", "cancelled", "interrupted", "failed", "asked"] as const).flatMap((outcome) =>
    Object.entries(tools).flatMap(([tool, rows]) =>
      (outcome === "completed" ? [true] : [false, true]).map((isWhole) => ({
        title: `${attempts} attempt(s), ${outcome} ${isWhole ? "behind" : "before"} the end marker, ${tool}`,
        it: { attempts, outcome, rows, isWhole },
      })),
    ),
  ),
);

const isCut = ({ phase }: ToolRow): boolean => phase === "dispatched" || phase === "outcome_unknown";

describe("The headline of a run", () => {
  for (const { it: run, title } of cases) {
    it(`is true of ${title}`, () => {
      const record = recordOf(run);
      const story = runStory(record, at);
      const said = [...story.head, story.end ?? ""].join("; ");
      const cut = run.rows.filter(isCut);

      const { word } = runStatuses[story.status];
      assert.strictEqual(statusOf(record), story.status);
      if (run.attempts === 1) {
        assert.notStrictEqual(word, "recovered");
        for (const { became } of story.incidents) assert.notInclude(became, "a later attempt");
      }
      // A cancel after the end marker cancels nothing unless a tool is still running.
      const isCancelled = run.outcome === "cancelled" && (!run.isWhole || cut.length > 0);
      if (isCancelled) {
        assert.include(["cancelled", "stopped"], word);
        assert.notInclude(["completed", "recovered"], summaryOf(record, new Set()).standing);
        assert.strictEqual(summaryOf(record, new Set()).outcome, "user_cancelled");
        assert.match(story.end ?? "", /^(Cancelled|Stopped by user_cancelled) /);
        assert.notInclude(runSteps(record).at(-1)?.text ?? "", "completed");
        assert.notInclude(cancelWords({ outcome: "here", driver: undefined, record }), "completed");
      }
      // A tool of a whole response may still run.
      const unknown = cut.filter(
        ({ effect, phase }) => effect !== "read_only" && (run.outcome !== "completed" || phase === "outcome_unknown"),
      );
      for (const { tool } of unknown) assert.include(said, tool);
      assert.strictEqual(/not known/.test(said), unknown.length > 0, said);
    });
  }

  it("does not mention a cancel after the end marker because of a tool of an earlier attempt", () => {
    const rows = [call("dispatched", { effect: "read_only", tool: "search" })];
    const record = folded([
      S.begun("r"),
      S.attempted(1, S.factsOf({ tools: rows })),
      S.attempted(2, S.factsOf({ terminal_seen: true }), 1_600),
      { _tag: "EvidenceNoted", evidence: { at_ms: 4_200, attempt: 2, event: "cancel", detail: "user" } },
      { _tag: "RunEnded", end: { state: "completed", reason: "stop", attempts: 2, at } },
    ]);
    assert.notStrictEqual(statusOf(record), "cancelled");
  });

  it("says recovered if a later attempt completed the run", () => {
    const record = recordOf({ attempts: 2, outcome: "completed", rows: [], isWhole: true });
    assert.strictEqual(statusOf(record), "recovered");
    assert.strictEqual(record.incidents[0]?.status, "recovered");
  });

  it("says completed if a whole response's connection broke after its end marker", () => {
    const record = recordOf({ attempts: 1, outcome: "failed", rows: [], isWhole: true });
    assert.strictEqual(statusOf(record), "completed");
    assert.strictEqual(record.incidents[0]?.status, "final");
  });
});
