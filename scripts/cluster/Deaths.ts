/**
 * Reads from the store, with PostgreSQL's own client, which runs a dead gateway left unfinished, and polls until other gateways have
 * decided them.
 */
import type { Cluster } from "../postgres/Cluster.ts";
import type { Diary } from "./Diary.ts";

/** Name of the database. */
export const database = "cluster";

/** Polling interval, in milliseconds. */
const lookMs = 400;

/** A run that a gateway left unfinished when it was killed or stopped. Times are in milliseconds. */
export interface Left {
  readonly run: string;
  readonly killedAt: number;
  /** Undefined while the record has no end. */
  decidedAt: number | undefined;
}

const quoteSql = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Tracks the runs that dead gateways left unfinished. */
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
   * Records the runs that a dead gateway left unfinished.
   *
   * @param label the name of its process in the store
   */
  async recordKill(label: string, killedAt: number): Promise<void> {
    const rows = await this.#rows(
      `SELECT run_id FROM stream_recovery_runs WHERE ended_at IS NULL
        AND owner IN (SELECT id FROM stream_recovery_leases WHERE label = ${quoteSql(label)})`,
    );
    this.left.push(...rows.map((run) => ({ run, killedAt, decidedAt: undefined })));
  }

  async #look(): Promise<void> {
    const open = this.left.filter(({ decidedAt }) => decidedAt === undefined);
    if (open.length === 0) return;
    const names = open.map(({ run }) => quoteSql(run)).join(",");
    const rows = await this.#rows(
      `SELECT run_id FROM stream_recovery_runs WHERE ended_at IS NULL AND run_id IN (${names})`,
    );
    const still = new Set(rows);
    for (const one of open) if (!still.has(one.run)) one.decidedAt = Date.now();
  }

  /** Starts polling. */
  watch(): void {
    const look = () => {
      this.#looking = this.#look().finally(() => {
        this.#timer = setTimeout(look, lookMs);
      });
    };
    look();
  }

  async close(): Promise<void> {
    await this.#looking.catch(() => undefined);
    clearTimeout(this.#timer);
  }

  /** Reads the ids of all runs, the number of runs without an end, and the number of questions ever asked. */
  async readRemains(): Promise<Diary["remains"]> {
    const [row = "0|0"] = await this.#rows(
      `SELECT (SELECT count(*) FROM stream_recovery_runs WHERE ended_at IS NULL),
        (SELECT count(*) FROM stream_recovery_questions)`,
    );
    const [open = 0, questions = 0] = row.split("|").map(Number);
    return { open, questions, runs: new Set(await this.#rows("SELECT run_id FROM stream_recovery_runs")) };
  }

  async schema(): Promise<number> {
    const [row] = await this.#rows("SELECT value FROM stream_recovery_meta WHERE name = 'schema_version'");
    return Number(row);
  }
}
