/**
 * Is the person who answers questions, through the API at whichever worker takes the connection.
 */
import { Effect } from "effect";
import { openQuestion, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { sent } from "../../../test/cli/Workers.ts";
import type { WorkersRound } from "./WorkersPlan.ts";

/** Statuses behind which an answer is given again: nobody was there, or no store. */
const again: ReadonlySet<number> = new Set([0, 503]);

/** What a person was told. */
interface Told {
  readonly run: string;
  readonly revision: number;
  readonly choice: string;
  readonly status: number;
  /** When the answer was begun, in milliseconds since the epoch. */
  readonly at: number;
}

/** Before an answer is given again, in milliseconds. */
const againMs = 400;

/** So long a person waits for a response, in milliseconds. */
const waitsMs = 3_000;

const unheard = { status: 0, text: "" };

/** A person. */
export class WorkersPerson {
  /** What it was told; at most a few for each question. */
  readonly answers: Array<Told> = [];
  /** When a run's answer was taken last, in milliseconds since the epoch. */
  readonly answeredAt = new Map<string, number>();
  readonly #round: WorkersRound;
  readonly #url: string;
  readonly #settled = new Set<string>();

  constructor(round: WorkersRound, url: string) {
    this.#round = round;
    this.#url = url;
  }

  /** Answers the question of a run, where it has an open one. */
  readonly answer = Effect.fnUntraced({ self: this }, function* (this: WorkersPerson, record: RunRecord) {
    const question = openQuestion(record);
    const stream = this.#round.streams.find(({ name }) => name === record.provider.model);
    if (question === undefined || record.state !== "asking" || stream === undefined) return;
    const { revision } = question;
    const key = `${record.run_id} ${revision}`;
    if (this.#settled.has(key)) return;
    const choice = question.choices.includes(stream.choice) ? stream.choice : "stop";
    const at = Date.now();
    const one = Effect.promise(() =>
      sent({
        url: `${this.#url}/recovery/api/runs/${record.run_id}/answer`,
        headers: { "x-recovery-answer": "1" },
        body: JSON.stringify({ revision, choice, confirm_may_repeat: true }),
      }).catch(() => unheard),
    ).pipe(Effect.timeoutOrElse({ duration: waitsMs, orElse: () => Effect.succeed(unheard) }));
    const told = yield* Effect.all(this.#round.answersTwice ? [one, one] : [one], { concurrency: 2 });
    for (const { status } of told) this.answers.push({ run: record.run_id, revision, choice, status, at });
    if (told.some(({ status }) => !again.has(status))) this.#settled.add(key);
    else yield* Effect.sleep(againMs);
    this.answeredAt.set(record.run_id, Date.now());
  });
}
