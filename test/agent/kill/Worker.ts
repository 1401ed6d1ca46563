/**
 * The process that is killed: plays its chats beside each other, goes on with what the one before left open, and answers
 * questions as a careful person would.
 *
 * Started with one JSON argument: where the provider is, where the files are, and which chats there are.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Effect, References, Schema } from "effect";
import { layer, open } from "../../../src/agent/index.ts";
import type { Choice } from "../../../src/domain/Decision.ts";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import { type Plan, Work } from "./Plan.ts";

/** How long a silent process keeps its runs, in milliseconds: short, so that a batch is over soon. */
const leaseMs = 300;

/** The files of a chat. */
export const filesOf = (at: string, chat: string) => ({
  folder: join(at, "chats"),
  journal: join(at, "chats", `${chat}.jsonl`),
  box: join(at, chat),
  marks: join(at, chat, "marks"),
  db: join(at, "runs.db"),
});

/** This file. */
export const path = fileURLToPath(import.meta.url);

const main = (work: Work) =>
  Effect.gen(function* () {
    process.stdout.write("ready\n");
    yield* Effect.forEach(work.plans, (plan) => lived(work, plan), { concurrency: "unbounded", discard: true });
    process.stdout.write("done\n");
  });

/** A chat until its one turn is over; what a process before has left open comes first. */
const lived = (work: Work, plan: Plan) =>
  Effect.gen(function* () {
    const { box, folder, journal } = filesOf(work.at, plan.chat);
    const begun = existsSync(journal) && Judge.read(journal).some((entry) => entry._tag === "User");
    const agent = yield* open({
      chat: plan.chat,
      folder,
      dir: box,
      protocol: plan.protocol,
      model: "fault-model",
      url: `${work.url}/s/${plan.chat}`,
      continueText: plan.continueText,
      watch: () => {},
      confirm: () => Effect.sync(() => verdictOf(work, plan.chat)),
    });
    const end = begun ? yield* agent.goOn : yield* agent.say("Tidy up");
    if (end.how === "parked") return yield* Effect.die(new Error(`${plan.chat}: ${end.message}`));
  }).pipe(Effect.scoped);

/** Looks whether the mark of the call that was cut off is there: one more than those that are accounted for. */
const verdictOf = (work: Work, chat: string): "it_ran" | "it_did_not_run" => {
  const { journal, marks } = filesOf(work.at, chat);
  const { ran, settled } = Judge.tally(Judge.read(journal), "shell");
  return linesOf(marks).length > settled + ran ? "it_ran" : "it_did_not_run";
};

const answered = (work: Work, runId: string, choices: ReadonlyArray<Choice>): Choice => {
  const chat = work.plans.find((plan) => runId.startsWith(`${plan.chat}-`))?.chat ?? "";
  if (choices.includes("it_ran")) return verdictOf(work, chat);
  const wanted: ReadonlyArray<Choice> = ["continue", "accept"];
  return wanted.find((choice) => choices.includes(choice)) ?? "stop";
};

if (process.argv[1] === path) {
  const work = Schema.decodeSync(Schema.fromJsonString(Work))(process.argv[2] ?? "{}");
  const services = layer({
    db: work.db ?? filesOf(work.at, "").db,
    leaseMs,
    ask: ({ choices, run_id }) => Effect.sync(() => answered(work, run_id, choices)),
  });
  await Effect.runPromise(
    main(work).pipe(Effect.provide(services), Effect.provideService(References.MinimumLogLevel, "None")),
  );
}
