/**
 * Judges a story of two processes: a living owner keeps its run, a fenced one does nothing more, no tool runs twice without a
 * person's consent, and the run ends.
 */
import { Schema } from "effect";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { leaseMsDefault } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import type { Deed, TwinsLived } from "./Twins.ts";

/** The problems of a story; empty if there are none. */
export const twinProblems = (it: TwinsLived): ReadonlyArray<string> => [
  ...it.problems,
  ...livingKeepsItsRun(it),
  ...fencedDoesNothing(it),
  ...toolsOnce(it),
  ...besideARunningOne(it),
  ...recordIsSound(it),
];

/** A process that was frozen for longer than this may have missed a heartbeat and lost its lease. */
const stillMsMax = leaseMsDefault / 3;

/** No process takes a run from an owner that sends its heartbeats, whatever the clocks say and however long the store was away. */
const livingKeepsItsRun = ({ deeds, story }: TwinsLived): ReadonlyArray<string> =>
  deeds.flatMap(({ at, what, who }) => {
    const stood = story.twins[who].stops.some(({ ms }) => ms === "for_ever" || ms > stillMsMax);
    return what === "is_told_taken_over" && !stood ? [`${"AB"[who]} lives, and lost its run at ${at} ms`] : [];
  });

/**
 * After the other process has claimed the run, a process opens no attempt, starts no tool and completes nothing. Acts that it had on
 * record before it froze may still happen when it resumes: it learns of the claim with its next write.
 */
const fencedDoesNothing = ({ deeds }: TwinsLived): ReadonlyArray<string> => {
  const problems: Array<string> = [];
  const knows = new Set<Deed["who"]>();
  let driver: Deed["who"] | undefined;
  for (const { at, name, what, who } of deeds) {
    if (what === "claims" || what === "claims_parked") {
      driver = who;
      knows.clear();
    }
    driver ??= who;
    if (what === "reaches" && who !== driver) knows.add(who);
    const acts = what === "opens" || what === "starts" || what === "completes";
    if (acts && knows.has(who)) problems.push(`${"AB"[who]} ${what} ${name} at ${at}, fenced`);
  }
  return problems;
};

/** A person who answers `retry`, or that a call did not run, consents to one more start of every earlier call. */
const toolsOnce = ({ world }: TwinsLived): ReadonlyArray<string> => {
  const agreed = world.answers.filter((it) => it === "retry" || it === "it_did_not_run").length;
  return [...new Set(world.started)].flatMap((name) => {
    const times = world.started.filter((it) => it === name).length;
    return times > 1 + agreed ? [`${name} ran ${times} times, and a person agreed ${agreed} times`] : [];
  });
};

/** Within one process, a running call is never settled as one that did not run, so it cannot run twice at once. */
const besideARunningOne = ({ deeds }: TwinsLived): ReadonlyArray<string> => {
  const problems: Array<string> = [];
  const running = new Set<string>();
  for (const { name, what, who } of deeds) {
    const key = `${"AB"[who]} ${name}`;
    if (what === "starts" && running.has(key)) problems.push(`${key} starts beside itself`);
    if (what === "starts") running.add(key);
    if (what === "returns") running.delete(key);
  }
  return problems;
};

const recordIsSound = ({ record, world }: TwinsLived): ReadonlyArray<string> => {
  if (record === undefined) return world.started.length > 0 ? ["a tool ran, and there is no record"] : [];
  const problems: Array<string> = [];
  const encoded = JSON.parse(JSON.stringify(Schema.encodeSync(RunRecord)(record)));
  if (!Schema.is(RunRecord)(Schema.decodeUnknownSync(RunRecord)(encoded))) problems.push("the record is no record");
  if (record.state !== "ended") problems.push(`neither an end nor a question: ${record.state} ${record.parked}`);
  for (const it of record.incidents) {
    const again = RecoveryPolicy.decide(it);
    if (JSON.stringify(again) !== JSON.stringify(it.decision)) problems.push(`${it.id} is not decided again as it was`);
  }
  return problems;
};
