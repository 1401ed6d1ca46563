/**
 * Judges the outcome of a story: no tool runs twice without a person's consent, no text is repeated or torn, the run ends, and its
 * record repeats its decisions (L9).
 */
import { Exit } from "effect";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import type { Lived } from "./Lives.ts";
import { responseOf } from "./Playing.ts";

/** The problems of a story; empty if there are none. */
export const problemsOf = (it: Lived): ReadonlyArray<string> => [
  ...it.world.problems,
  ...tools(it),
  ...screen(it),
  ...ends(it),
  ...record(it),
];

/** A person who answers `retry`, or that a call did not run, consents to one more start of every earlier call. */
const tools = ({ world }: Lived): ReadonlyArray<string> => {
  const agreed = world.answers.filter((it) => it === "retry" || it === "it_did_not_run").length;
  return [...new Set(world.started)].flatMap((name) => {
    const times = world.started.filter((it) => it === name).length;
    return times > 1 + agreed ? [`${name} ran ${times} times, and a person agreed ${agreed} times`] : [];
  });
};

const screen = ({ deaths, world }: Lived): ReadonlyArray<string> => {
  const shown = world.screen.map(({ name }) => name).filter((name) => /^[tcr]\d/.test(name));
  const twice = shown.filter((name, index) => shown.indexOf(name) !== index);
  // One fault has no remedy: a store that takes nothing until its process dies. The stream continued, and the last parts that it
  // showed are not on record.
  const unknown = world.refusals > 0 && deaths > 0;
  const problems = twice.length > 0 && !unknown ? [`twice on screen: ${twice.join(" ")}`] : [];
  const last = Math.max(0, ...shown.map((name) => Number(name.slice(1).split(".")[0])));
  for (let response = 0; response <= last; response += 1) {
    const own = shown.filter((name) => name.slice(1).startsWith(`${response}.`));
    const whole = responseOf(world, response).map(({ kind }, n) => `${kind[0]}${response}.${n}`);
    // `accept` hands over only text: no frozen call may start after it. A caller that cannot discard does not get calls that a
    // continuation leaves open either.
    const accepted = world.answers.includes("accept") || !world.story.discardable;
    const due = whole
      .slice(0, whole.indexOf(own.at(-1) ?? "") + 1)
      .filter((name) => !accepted || own.includes(name) || name.startsWith("t"));
    if (twice.length === 0 && own.join(" ") !== due.join(" "))
      problems.push(`response ${response} has holes: ${own.join(" ")}`);
    if (response === last && world.completed && own.length < whole.length) {
      problems.push(`completed, and of ${whole.join(" ")} only ${own.join(" ")} is on screen`);
    }
  }
  return problems;
};

const ends = ({ exit, record: run, world }: Lived): ReadonlyArray<string> => {
  if (run === undefined)
    return world.refusals > 0 || world.screen.length === 0 ? [] : ["something was shown, and there is no record"];
  // A caller that was told that its response is complete does not resume, even if the store lost the end.
  if (run.state !== "ended" && !world.completed) return [`neither an end nor a question: ${run.state} ${run.parked}`];
  if (exit !== undefined && Exit.isFailure(exit) && exit.cause.reasons.some((reason) => reason._tag === "Die"))
    return [`died: ${String(exit.cause)}`];
  return [];
};

const record = ({ record: run }: Lived): ReadonlyArray<string> => {
  if (run === undefined) return [];
  const again = run.incidents.filter((it) => JSON.stringify(RecoveryPolicy.decide(it)) !== JSON.stringify(it.decision));
  const open = run.incidents.filter(({ status }) => status === "open");
  const finals = run.incidents.filter(({ status }) => status === "final");
  const revisions = run.questions.map(({ revision }) => revision);
  const ids = run.incidents.map(({ id }) => id);
  const ended = run.end?.incident;
  return [
    ...again.map(({ id }) => `${id} is not decided again as it was (L9)`),
    ...(open.length > 0 && run.state === "ended" ? ["an incident is open after the end"] : []),
    ...(finals.length > 1 ? ["two final incidents"] : []),
    ...(ended !== undefined && !ids.includes(ended) ? [`the incident ${ended} that ended the run is lost`] : []),
    ...(new Set(revisions).size < revisions.length ? ["a revision was asked twice"] : []),
    ...(new Set(ids).size < ids.length ? ["an incident id was given twice"] : []),
  ];
};
