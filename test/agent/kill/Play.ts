/**
 * Plays a batch: starts its process, kills it with SIGKILL at the drawn moments, lets the last one come to its end, and judges
 * after each what is left.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deferred, Effect, Schedule, Schema, type Scope } from "effect";
import { FaultProvider } from "../../../src/testing/index.ts";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import { type Batch, Work } from "./Plan.ts";
import { filesOf, path } from "./Worker.ts";

/** What came of a batch. */
export interface Outcome {
  /** Chats that were in the middle of their turn at a kill, counted at each. */
  readonly hit: number;
  readonly kills: number;
  /** Calls of the shell tool whose outcome a person or a tool had to say. */
  readonly judged: number;
  readonly effects: number;
  readonly problems: ReadonlyArray<string>;
}

/** A process that does not come to its end by itself is a chat without an end, in milliseconds. */
const endMsMax = 60_000;

/** How a batch is played. */
export interface Manner {
  /** The store of its runs; left out, a file of its own. */
  readonly db?: string;
  /** Each kill waits for a tool that begins, however long a busy machine takes to it. */
  readonly inTools?: boolean;
}

/** How long behind the mark of a tool a kill comes, in milliseconds: the tool is still at it. */
const behindMarkMsMax = 50;

/** From one look at the marks to the next, in milliseconds. */
const lookEveryMs = 10;

/** Plays a batch to its end. */
export const play = (
  batch: Batch,
  { db, inTools = false }: Manner = {},
): Effect.Effect<Outcome, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const at = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "agent-kill-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })),
    );
    const provider = yield* FaultProvider.make({ script: batch.script });
    const work = Schema.encodeSync(Schema.fromJsonString(Work))({
      url: provider.url,
      at,
      ...(db === undefined ? {} : { db }),
      plans: batch.plans,
    });
    const problems: Array<string> = [];
    const journals = batch.plans.map(({ chat }) => filesOf(at, chat));
    let kills = 0;
    let hit = 0;
    const marksNow = Effect.sync(() => journals.reduce((sum, { marks }) => sum + linesOf(marks).length, 0));
    for (const afterMs of batch.kills) {
      const before = yield* marksNow;
      const marked = Effect.repeat(marksNow, {
        until: (now) => now > before,
        schedule: Schedule.spaced(lookEveryMs),
      });
      if (!(yield* inTools ? lifeOf(work, afterMs % behindMarkMsMax, marked) : lifeOf(work, afterMs))) break;
      kills += 1;
      for (const { journal } of journals) {
        const entries = Judge.read(journal);
        problems.push(...Judge.problems(entries));
        if (isOpen(entries)) hit += 1;
      }
    }
    if (yield* lifeOf(work, endMsMax)) problems.push(`batch ${batch.seed}: the last process did not end`);
    let judged = 0;
    let effects = 0;
    for (const { journal, marks } of journals) {
      const entries = Judge.read(journal);
      const tally = Judge.tally(entries, "shell");
      const made = linesOf(marks).length;
      judged += tally.judged;
      effects += made;
      problems.push(...Judge.problems(entries).map((problem) => `${journal}: ${problem}`));
      if (isOpen(entries)) problems.push(`${journal}: the turn has no end`);
      if (made !== tally.settled + tally.ran) {
        problems.push(`${journal}: ${made} marks, ${tally.settled} results and ${tally.ran} that are said to have run`);
      }
      if (tally.started !== tally.settled + tally.judged) {
        problems.push(
          `${journal}: ${tally.started} calls began, ${tally.settled} settled, ${tally.judged} were asked for`,
        );
      }
    }
    return { hit, kills, judged, effects, problems };
  });

/** Whether a turn has begun and a run of it has not ended. */
const isOpen = (entries: ReturnType<typeof Judge.read>): boolean =>
  entries.some((entry) => entry._tag === "User") && entries.at(-1)?._tag !== "End";

/**
 * A process from its first word on; whether it had to be killed.
 *
 * @param from its time counts from then on; left out, from its first word
 */
const lifeOf = (
  work: string,
  afterMs: number,
  from: Effect.Effect<unknown> = Effect.void,
): Effect.Effect<boolean, Error> =>
  Effect.gen(function* () {
    const child = spawn(process.execPath, [path, work], { stdio: ["ignore", "pipe", "pipe"] });
    const ready = Deferred.makeUnsafe<void>();
    const ended = Deferred.makeUnsafe<number | null>();
    let errors = "";
    child.stdout.once("data", () => Deferred.doneUnsafe(ready, Effect.void));
    child.stderr.on("data", (bytes: Buffer) => {
      errors = `${errors}${bytes.toString()}`.slice(-4_000);
    });
    child.once("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code)));
    yield* Effect.raceFirst(Deferred.await(ready), Deferred.await(ended));
    yield* Effect.raceFirst(from, Deferred.await(ended));
    const inTime = yield* Effect.timeoutOption(Deferred.await(ended), afterMs);
    if (inTime._tag === "Some") {
      return inTime.value === 0 ? false : yield* Effect.die(new Error(`a process failed: ${errors}`));
    }
    child.kill("SIGKILL");
    yield* Deferred.await(ended);
    return true;
  });
