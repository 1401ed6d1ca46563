/**
 * Asks the store, by PostgreSQL's own client, which runs a dead gateway has left, and looks until the others have decided them.
 */
import type { Cluster } from "../postgres/Cluster.ts";
import type { Diary } from "./Diary.ts";

/** The name of the database. */
export const database = "cluster";

/** From one look to the next, in milliseconds. */
const lookMs = 400;

/** A run that a gateway left when it was killed, or had ended. Times are milliseconds. */
export interface Left {
  readonly run: string;
  readonly killedAt: number;
  /** Undefined while its record has no end. */
  decidedAt: number | undefined;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** The runs that gateways left when they were gone. */
export class Deaths {
  readonly left: Array<Left> = [];
  readonly #cluster: Cluster;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async #rows(sql: string): Promise<ReadonlyArray<string>> {
    return (await this.#cluster.query(database, sql)).split("\n").filter((line) => line !== "");
  }

  /**
   * Writes down what a gateway has left.
   *
   * @param label what the store calls its process
   */
  async killed(label: string, killedAt: number): Promise<void> {
    const rows = await this.#rows(
      `SELECT run_id FROM stream_recovery_runs WHERE ended_at IS NULL
        AND owner IN (SELECT id FROM stream_recovery_leases WHERE label = ${quoted(label)})`,
    );
    this.left.push(...rows.map((run) => ({ run, killedAt, decidedAt: undefined })));
  }

  async #look(): Promise<void> {
    const open = this.left.filter(({ decidedAt }) => decidedAt === undefined);
    if (open.length === 0) return;
    const names = open.map(({ run }) => quoted(run)).join(",");
    const rows = await this.#rows(
      `SELECT run_id FROM stream_recovery_runs WHERE ended_at IS NULL AND run_id IN (${names})`,
    );
    const still = new Set(rows);
    for (const one of open) if (!still.has(one.run)) one.decidedAt = Date.now();
  }

  /** Looks again and again. */
  watch(): void {
    const look = () => {
      this.#looking = this.#look().finally(() => {
        this.#timer = setTimeout(look, lookMs);
      });
    };
    look();
  }

  /** Looks no more. */
  async close(): Promise<void> {
    await this.#looking.catch(() => undefined);
    clearTimeout(this.#timer);
  }

  /** All runs, how many of them have no end, and questions that anybody was asked. */
  async remains(): Promise<Diary["remains"]> {
    const [row = "0|0"] = await this.#rows(
      `SELECT (SELECT count(*) FROM stream_recovery_runs WHERE ended_at IS NULL),
        (SELECT count(*) FROM stream_recovery_questions)`,
    );
    const [open = 0, questions = 0] = row.split("|").map(Number);
    return { open, questions, runs: new Set(await this.#rows("SELECT run_id FROM stream_recovery_runs")) };
  }

  /** Version of the tables. */
  async schema(): Promise<number> {
    const [row] = await this.#rows("SELECT value FROM stream_recovery_meta WHERE name = 'schema_version'");
    return Number(row);
  }
}
