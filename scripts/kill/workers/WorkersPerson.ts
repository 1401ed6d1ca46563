/**
 * The person who answers questions. Each answer goes through the API to any worker that accepts the connection.
 */
import { Effect } from "effect";
import { openQuestion, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { sent } from "../../../test/cli/Workers.ts";
import type { WorkersRound } from "./WorkersPlan.ts";

/** Statuses after which an answer is repeated: no connection, or no store. */
const again: ReadonlySet<number> = new Set([0, 503]);

interface Told {
  readonly run: string;
  readonly revision: number;
  readonly choice: string;
  readonly status: number;
  /** The time at which the answer was sent, in milliseconds since the epoch. */
  readonly at: number;
}

/** Delay before an answer is repeated, in milliseconds. */
const againMs = 400;

/** Timeout for a response, in milliseconds. */
const waitsMs = 3_000;

const unheard = { status: 0, text: "" };

/** The person of one round. */
export class WorkersPerson {
  /** All responses; at most a few for each question. */
  readonly answers: Array<Told> = [];
  /** The time of the last answer to each run, in milliseconds since the epoch. */
  readonly answeredAt = new Map<string, number>();
  readonly #round: WorkersRound;
  readonly #url: string;
  readonly #settled = new Set<string>();

  constructor(round: WorkersRound, url: string) {
    this.#round = round;
    this.#url = url;
  }

  /** Answers the open question of a run, if it has one. */
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
