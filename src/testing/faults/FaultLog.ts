/**
 * Records every request that a fault server received, and counts every byte that it sent.
 */
import type { Effect } from "effect";
import type { ScriptedCall } from "../answers/Answers.ts";
import type { Break } from "../script/FaultScript.ts";
import { Watchers } from "./Watchers.ts";

/** Maximum requests in the log. The oldest are dropped and counted. */
export const logRequestsMax = 100_000;

/** The end of a request. `unscripted`: no answer was left, the script does not exist, or the path belongs to no protocol. */
export type RequestOutcome = "open" | "complete" | "broken" | "client_closed" | "unscripted" | "refused";

/** One request and its response, without header values, queries and bodies. */
export interface RequestLog {
  /** Number of the request at the server, from 1, in the order of first bytes. */
  readonly number: number;
  /** Number of the connection, from 1. */
  readonly connection: number;
  /** True if the connection carried an earlier request. */
  readonly reused: boolean;
  readonly script: string;
  readonly method: string;
  readonly path: string;
  readonly protocol?: string;
  readonly header_names: ReadonlyArray<string>;
  readonly bytes_received: number;
  readonly body_bytes: number;
  /** SHA-256 of the request body, in hex. Requests with equal hashes are repeats. */
  readonly body_hash: string;
  readonly status?: number;
  /** Bytes of the response, including head and framing. */
  readonly bytes_sent: number;
  /** SHA-256 of the response body without its framing, in hex. */
  readonly sent_hash: string;
  /** Serials of the deltas that were sent completely. */
  readonly text: ReadonlyArray<string>;
  readonly reasoning: ReadonlyArray<string>;
  /** Calls whose arguments were sent completely. A call to one of the provider's own tools has also run by then. */
  readonly calls: ReadonlyArray<ScriptedCall>;
  /** True if the protocol's terminal event was sent. */
  readonly terminal: boolean;
  readonly outcome: RequestOutcome;
  readonly break?: Break;
  /** Wall clock time, in milliseconds since the epoch. */
  readonly started_ms: number;
  readonly ended_ms?: number;
}

/** A row that is still being written. */
export type OpenLog = { -readonly [K in keyof RequestLog]: RequestLog[K] } & {
  text: Array<string>;
  reasoning: Array<string>;
  calls: Array<ScriptedCall>;
};

/** The rows of a fault server, one per request. Tests can wait for a row without sleeping. */
export interface FaultLog {
  readonly open: (connection: number, reused: boolean, started_ms: number) => OpenLog;
  /** Ends a row. A row that has already ended stays unchanged. */
  readonly end: (row: OpenLog, outcome: RequestOutcome, ended_ms: number) => void;
  /** Makes every `until` check its condition again, because a row has changed. */
  readonly wake: () => void;
  readonly rows: () => ReadonlyArray<RequestLog>;
  readonly omittedCount: () => number;
  /** Waits until `look` returns a value. */
  readonly until: <A>(look: (rows: ReadonlyArray<RequestLog>) => A | undefined) => Effect.Effect<A>;
}

/** Creates an empty log. Beyond `logRequestsMax`, the oldest rows are dropped and counted as omitted. */
export const make = (): FaultLog => {
  const rows: Array<OpenLog> = [];
  const watchers = new Watchers();
  let opened = 0;
  let omitted = 0;
  const wakeAll = () => watchers.wake();
  return {
    open: (connection, reused, started_ms) => {
      opened += 1;
      const row: OpenLog = {
        ...blank,
        number: opened,
        connection,
        reused,
        started_ms,
        header_names: [],
        text: [],
        reasoning: [],
        calls: [],
      };
      if (rows.length >= logRequestsMax) {
        rows.shift();
        omitted += 1;
      }
      rows.push(row);
      wakeAll();
      return row;
    },
    end: (row, outcome, ended_ms) => {
      if (row.outcome !== "open") return;
      row.outcome = outcome;
      row.ended_ms = ended_ms;
      wakeAll();
    },
    wake: wakeAll,
    rows: () =>
      rows.map((row) => ({ ...row, text: [...row.text], reasoning: [...row.reasoning], calls: [...row.calls] })),
    omittedCount: () => omitted,
    until: (look) =>
      watchers.waitUntil(() => {
        const value = look(rows);
        return value === undefined ? undefined : { value };
      }),
  };
};

const blank = {
  script: "",
  method: "",
  path: "",
  bytes_received: 0,
  body_bytes: 0,
  body_hash: "",
  bytes_sent: 0,
  sent_hash: "",
  terminal: false,
  outcome: "open",
} as const;
