/**
 * Judges a story of two: a living owner keeps its run, one that was fenced does nothing more, no tool runs twice without a
 * person's word, and the run ends.
 */
import { Schema } from "effect";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { leaseMsDefault } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import type { Deed, TwinsLived } from "./Twins.ts";

/** What is wrong; empty where nothing is. */
export const twinProblems = (it: TwinsLived): ReadonlyArray<string> => [
  ...it.problems,
  ...livingKeepsItsRun(it),
  ...fencedDoesNothing(it),
  ...toolsOnce(it),
  ...besideARunningOne(it),
  ...recordIsSound(it),
];

/** A process that stood still for longer than this may have missed its beat: its lease is over. */
const stillMsMax = leaseMsDefault / 3;

/** No other takes a run from a process that lives and beats, whatever the clocks say and however long the store was away. */
const livingKeepsItsRun = ({ deeds, story }: TwinsLived): ReadonlyArray<string> =>
  deeds.flatMap(({ at, what, who }) => {
    const stood = story.twins[who].stops.some(({ ms }) => ms === "for_ever" || ms > stillMsMax);
    return what === "is_told_taken_over" && !stood ? [`${"AB"[who]} lives, and lost its run at ${at} ms`] : [];
  });

/**
 * From the claim of the other on a process opens no attempt, starts no tool and completes nothing. What it had on record
 * before it stood still it may do when it goes on: it learns of the claim with its next write.
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

/** A person who says `retry`, or that a call did not run, has agreed to one more start of everything that came before. */
const toolsOnce = ({ world }: TwinsLived): ReadonlyArray<string> => {
  const agreed = world.answers.filter((it) => it === "retry" || it === "it_did_not_run").length;
  return [...new Set(world.started)].flatMap((name) => {
    const times = world.started.filter((it) => it === name).length;
    return times > 1 + agreed ? [`${name} ran ${times} times, and a person agreed ${agreed} times`] : [];
  });
};

/** Of one process: a call that runs is not settled as one that did not, so that it does not run beside itself. */
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
