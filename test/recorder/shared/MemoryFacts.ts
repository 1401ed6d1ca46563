/**
 * Keeps the shared facts of several processes in the memory of one, for tests. It behaves like the database, without delay.
 */
import { Effect, Redacted } from "effect";
import { Listeners } from "../../../src/recorder/shared/Listeners.ts";
import {
  type Fact,
  type FactsFault,
  type SharedFacts,
  toldKinds,
  type Word,
} from "../../../src/recorder/shared/SharedFacts.ts";

export interface MemoryFacts {
  /** Adds a process. */
  readonly process: () => SharedFacts;
  /** True while the store is unavailable. */
  isAway: boolean;
  /** True to lose notifications. */
  isMute: boolean;
  /** Sends a notification to every process, as after a connection is restored. */
  readonly say: (word: Word) => void;
  /** Every key and value that was ever put. */
  readonly seen: ReadonlyArray<string>;
  /** Counts all calls and notifications. */
  readonly calls: () => number;
}

interface Row extends Pick<Fact, "value" | "node" | "stamp"> {
  readonly at: number;
  readonly until: number;
}

/**
 * Creates a store.
 *
 * @param now the current time in milliseconds
 */
export const make = (now: () => number): MemoryFacts => {
  const rows = new Map<string, Row>();
  const groups = new Map<string, { retries: number; tokens: number; until: number }>();
  const buckets = new Map<string, { tokens: number; at: number }>();
  const ears: Array<Listeners> = [];
  const seen: Array<string> = [];
  let calls = 0;
  let stamps = 0;
  const asked = <A>(does: () => A): Effect.Effect<A, FactsFault> =>
    Effect.suspend(() => {
      calls += 1;
      // Lets other fibers run in between, as a network would.
      return Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() => (store.isAway ? Effect.fail({ message: "away" }) : Effect.succeed(does()))),
      );
    });
  const factOf = (key: string, { at, node, stamp, until, value }: Row): Fact => ({
    ...{ key, value, node, stamp },
    ageMs: now() - at,
    leftMs: until - now(),
  });
  const process = (): SharedFacts => {
    const listeners = new Listeners();
    ears.push(listeners);
    const node = `node ${ears.length}`;
    const find = (kind: string, key: string) => {
      const row = rows.get(`${kind} ${key}`);
      return row === undefined || row.until <= now() ? undefined : factOf(key, row);
    };
    return {
      node,
      secret: Redacted.make("the secret of a test"),
      put: (kind, key, value, keepMs) =>
        asked(() => {
          stamps += 1;
          seen.push(key, value);
          rows.set(`${kind} ${key}`, { value, node, stamp: `${stamps}`, at: now(), until: now() + keepMs });
          const told = toldKinds.find((it) => it === kind);
          if (told !== undefined && !store.isMute) store.say({ _tag: "Put", kind: told });
        }),
      find: (kind, key) => asked(() => find(kind, key)),
      take: (kind, key) =>
        asked(() => {
          const found = find(kind, key);
          rows.delete(`${kind} ${key}`);
          return found;
        }),
      all: (kind) =>
        asked(() =>
          [...rows.keys()].flatMap((name) => {
            const key = name.slice(kind.length + 1);
            const found = name.startsWith(`${kind} `) ? find(kind, key) : undefined;
            return found === undefined ? [] : [found];
          }),
        ),
      spend: (group, { retries, tokens }, keepMs) =>
        asked(() => {
          seen.push(group);
          const known = groups.get(group);
          const before = known === undefined || known.until <= now() ? { retries: 0, tokens: 0 } : known;
          const spent = { retries: before.retries + retries, tokens: before.tokens + tokens };
          groups.set(group, { ...spent, until: now() + keepMs });
          return spent;
        }),
      draw: (bucket, count, { max, perSecond }) =>
        asked(() => {
          const known = buckets.get(bucket) ?? { tokens: max, at: now() };
          const came = (Math.max(0, now() - known.at) / 1_000) * perSecond;
          const tokens = Math.min(max, known.tokens + came) - count;
          buckets.set(bucket, { tokens, at: now() });
          return tokens;
        }),
      hasNotifications: () => !store.isMute,
      on: listeners.on,
    };
  };
  const store: MemoryFacts = {
    process,
    isAway: false,
    isMute: false,
    say: (word) => {
      for (const listeners of ears) listeners.notify(word);
    },
    seen,
    calls: () => calls,
  };
  return store;
};
