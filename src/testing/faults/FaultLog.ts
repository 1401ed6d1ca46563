/**
 * Remembers every request that a fault server saw and counts every byte that it sent: the judge's side of a test.
 */
import type { Effect } from "effect";
import type { ScriptedCall } from "../answers/Answers.ts";
import type { Break } from "../script/FaultScript.ts";
import { Watchers } from "./Watchers.ts";

/** Most requests that are remembered; the oldest are dropped and counted. */
export const logRequestsMax = 100_000;

/** How a request ended. `unscripted`: no answer was left, no such script, or a path of no protocol. */
export type RequestOutcome = "open" | "complete" | "broken" | "client_closed" | "unscripted" | "refused";

/** One request and its response. Header values, queries and bodies are not kept. */
export interface RequestLog {
  /** Counts the requests of the server, from 1, in the order in which their first byte came. */
  readonly number: number;
  /** Counts the connections, from 1. */
  readonly connection: number;
  /** The connection carried a request before this one. */
  readonly reused: boolean;
  readonly script: string;
  readonly method: string;
  readonly path: string;
  readonly protocol?: string;
  readonly header_names: ReadonlyArray<string>;
  readonly bytes_received: number;
  readonly body_bytes: number;
  /** SHA-256 of the request body, in hex: requests of one hash are repeats. */
  readonly body_hash: string;
  readonly status?: number;
  /** Bytes of the response, head and framing included. */
  readonly bytes_sent: number;
  /** SHA-256 of the response body without its framing, in hex. */
  readonly sent_hash: string;
  /** Serials of the deltas that were sent whole. */
  readonly text: ReadonlyArray<string>;
  readonly reasoning: ReadonlyArray<string>;
  /** Calls whose arguments were sent whole; a call of the provider's own tools has run. */
  readonly calls: ReadonlyArray<ScriptedCall>;
  /** The protocol's terminal event was sent. */
  readonly terminal: boolean;
  readonly outcome: RequestOutcome;
  readonly break?: Break;
  /** Wall clock, milliseconds since the epoch. */
  readonly started_ms: number;
  readonly ended_ms?: number;
}

/** A row that is being written. */
export type OpenLog = { -readonly [K in keyof RequestLog]: RequestLog[K] } & {
  text: Array<string>;
  reasoning: Array<string>;
  calls: Array<ScriptedCall>;
};

/** The rows of a fault server, one for each request, and a way to wait for them without sleeping. */
export interface FaultLog {
  readonly open: (connection: number, reused: boolean, started_ms: number) => OpenLog;
  /** Ends a row; a row that has ended stays as it is. */
  readonly end: (row: OpenLog, outcome: RequestOutcome, ended_ms: number) => void;
  /** Wakes the waiting looks, because a row has changed. */
  readonly changed: () => void;
  readonly rows: () => ReadonlyArray<RequestLog>;
  readonly omitted: () => number;
  /** Waits until a look at the log gives a value. */
  readonly until: <A>(look: (rows: ReadonlyArray<RequestLog>) => A | undefined) => Effect.Effect<A>;
}

/** Makes an empty log; past its limit the oldest rows are dropped and counted as omitted. */
export const make = (): FaultLog => {
  const rows: Array<OpenLog> = [];
  const watchers = new Watchers();
  let opened = 0;
  let omitted = 0;
  const changed = () => watchers.wake();
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
      changed();
      return row;
    },
    end: (row, outcome, ended_ms) => {
      if (row.outcome !== "open") return;
      row.outcome = outcome;
      row.ended_ms = ended_ms;
      changed();
    },
    changed,
    rows: () =>
      rows.map((row) => ({ ...row, text: [...row.text], reasoning: [...row.reasoning], calls: [...row.calls] })),
    omitted: () => omitted,
    until: (look) =>
      watchers.until(() => {
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
