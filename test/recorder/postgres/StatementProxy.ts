/**
 * A proxy between a recorder and its server that recognises each statement. It can hold one until others have passed, or break a
 * connection at its COMMIT, before the server gets it or before its reply arrives.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deferred, Effect, Exit, type Scope } from "effect";
import { inject } from "vitest";

/** A held statement. */
export interface Held {
  /** Waits until it has reached the proxy. */
  readonly reached: Effect.Effect<void>;
  /** Lets it through. */
  readonly release: Effect.Effect<void>;
}

/** The traffic between a recorder and its server. */
export interface StatementProxy {
  /** The address of the same database through the proxy. */
  readonly address: string;
  /**
   * The break of the next commit; undefined lets it through. `for_good`: at its reply, after which the server stays away.
   * `in_silence`: at its reply, and fifty further connections are silent. `undecided` and `ailing`: its reply is an error without its
   * outcome, as from a pooler, and the connection stays open.
   */
  breaks: "request" | "reply" | "for_good" | "in_silence" | keyof typeof errors | undefined;
  /** True to refuse connections. */
  isDown: boolean;
  /** Number of further connections that are accepted and never answered, as by a server behind a firewall that drops packets. */
  silent: number;
  /** Number of broken commits. */
  broken: number;
  /** Number of refused connections. */
  refused: number;
  /** Cuts all open connections. */
  readonly cut: () => void;
  /** Holds the next statement that matches, once: on its way to the server, or its reply on the way back. */
  readonly hold: (pattern: RegExp, what?: "request" | "reply") => Held;
  /** Every statement that has passed, in order. */
  readonly statements: ReadonlyArray<string>;
  /** The statements by round trip, that is, those that a connection sent before it got a reply. */
  readonly trips: ReadonlyArray<ReadonlyArray<string>>;
}

/** Error codes that leave the outcome of a commit open. */
const errors = { undecided: "40003", ailing: "58000" } as const;

/** An error of the server, followed by its message that it is ready. */
const errorOf = (code: string): Buffer => {
  const fields = Buffer.from(`SERROR\0VERROR\0C${code}\0Mthe server was lost\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeUInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields, Buffer.from([0x5a, 0, 0, 0, 5, 0x49])]);
};

/** The ends of the messages with which a server reports that it is ready. */
const readiesOf = (bytes: Buffer): ReadonlyArray<number> =>
  [...messagesOf(bytes)].flatMap(([kind, , to]) => (kind === "Z" && to <= bytes.length ? [to] : []));

const socketName = ".s.PGSQL.5432";

export const make = (address: string): Effect.Effect<StatementProxy, never, Scope.Scope> =>
  Effect.acquireRelease(listening(address), ({ close }) => Effect.sync(close)).pipe(Effect.map(({ proxy }) => proxy));

interface Gate {
  readonly pattern: RegExp;
  readonly what: "request" | "reply";
  readonly reached: Deferred.Deferred<void>;
  readonly open: Deferred.Deferred<void>;
}

const listening = (address: string) =>
  Effect.callback<{ readonly proxy: StatementProxy; readonly close: () => void }>((resume) => {
    const folder = mkdtempSync(join(tmpdir(), "statement-proxy-"));
    const target = inject("postgresSocket");
    const gates: Array<Gate> = [];
    const statements: Array<string> = [];
    const trips: Array<Array<string>> = [];
    const sockets = new Set<Socket>();
    const proxy: StatementProxy = {
      address: address.replace(encodeURIComponent(target), encodeURIComponent(folder)),
      breaks: undefined,
      isDown: false,
      silent: 0,
      broken: 0,
      refused: 0,
      statements,
      trips,
      cut: () => {
        for (const it of sockets) it.destroy();
        sockets.clear();
      },
      hold: (pattern, what = "request") => {
        const gate = { pattern, what, reached: Deferred.makeUnsafe<void>(), open: Deferred.makeUnsafe<void>() };
        gates.push(gate);
        return {
          reached: Deferred.await(gate.reached),
          release: Effect.sync(() => Deferred.doneUnsafe(gate.open, Exit.void)),
        };
      },
    };
    const server = createServer((client) => {
      if (proxy.silent > 0) {
        proxy.silent -= 1;
        proxy.refused += 1;
        sockets.add(client);
        return void client.on("error", () => client.destroy()).resume();
      }
      if (proxy.isDown) {
        proxy.refused += 1;
        return void client.destroy();
      }
      const upstream = connect({ path: join(target, socketName) });
      for (const it of [client, upstream]) sockets.add(it);
      pass(proxy, { statements, trips }, gates, client, upstream);
    });
    const close = () => {
      for (const it of sockets) it.destroy();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    };
    server.listen(join(folder, socketName), () => resume(Effect.succeed({ proxy, close })));
  });

const pass = (
  proxy: StatementProxy,
  seen: { readonly statements: Array<string>; readonly trips: Array<Array<string>> },
  gates: Array<Gate>,
  client: Socket,
  upstream: Socket,
): void => {
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  for (const it of [client, upstream]) it.on("error", end).on("close", end);
  const named = new Map<string, string>();
  let swallows = false;
  let trip: Array<string> | undefined;
  /** The error that replaces a commit's reply. */
  let errs: { readonly code: string; readonly behind: number; said: Buffer } | undefined;
  /** Bytes that follow a held statement, whose rest may arrive in a separate chunk. */
  let behind: Array<Buffer> | undefined;
  /** Bytes from the server while its reply is held. */
  let replies: Array<Buffer> | undefined;
  client.on("data", (bytes) => {
    if (behind !== undefined) return void behind.push(bytes);
    const all = statementsOf(bytes, named);
    seen.statements.push(...all);
    if (trip === undefined && all.length > 0) {
      trip = [];
      seen.trips.push(trip);
    }
    trip?.push(...all);
    if (all.includes("COMMIT") && proxy.breaks !== undefined) {
      const where = proxy.breaks;
      proxy.breaks = undefined;
      proxy.broken += 1;
      if (where === "request") return end();
      if (where === "undecided" || where === "ailing")
        errs = { code: errors[where], behind: all.length - 1, said: Buffer.alloc(0) };
      else swallows = true;
      proxy.isDown = where === "for_good";
      if (where === "in_silence") proxy.silent = 50;
    }
    const index = gates.findIndex(({ pattern }) => all.some((sql) => pattern.test(sql)));
    const [gate] = index === -1 ? [] : gates.splice(index, 1);
    if (gate === undefined) return void upstream.write(bytes);
    if (gate.what === "reply") {
      const said: Array<Buffer> = [];
      replies = said;
      upstream.once("data", () => Deferred.doneUnsafe(gate.reached, Exit.void)).write(bytes);
      const told = () => {
        replies = undefined;
        client.write(Buffer.concat(said));
      };
      return void Effect.runFork(Effect.map(Deferred.await(gate.open), told));
    }
    Deferred.doneUnsafe(gate.reached, Exit.void);
    const held = [bytes];
    behind = held;
    const release = () => {
      behind = undefined;
      upstream.write(Buffer.concat(held));
    };
    Effect.runFork(Effect.map(Deferred.await(gate.open), release));
  });
  upstream.on("data", (bytes) => {
    trip = undefined;
    if (swallows) return end();
    if (errs !== undefined) {
      errs.said = Buffer.concat([errs.said, bytes]);
      const readies = readiesOf(errs.said);
      if (readies.length <= errs.behind) return;
      // Earlier statements of the same round trip get their own replies.
      client.write(
        Buffer.concat([errs.said.subarray(0, errs.behind === 0 ? 0 : readies[errs.behind - 1]), errorOf(errs.code)]),
      );
      errs = undefined;
      return;
    }
    if (replies !== undefined) return void replies.push(bytes);
    client.write(bytes);
  });
};

/**
 * The statements in a client's messages. A text is sent when it is prepared, and has a name from then on. Messages are delimited only by
 * their lengths, because the bytes of a parameter may look like any other message.
 */
const statementsOf = (bytes: Buffer, named: Map<string, string>): ReadonlyArray<string> => {
  const found: Array<string> = [];
  let isParsed = false;
  for (const [kind, from, to] of messagesOf(bytes)) {
    const [first = "", second = ""] = bytes.toString("latin1", from, to).split("\0", 2);
    if (kind === "P") {
      named.set(first, second);
      found.push(second);
      isParsed = true;
    }
    const bound = kind === "B" && !isParsed ? named.get(second) : undefined;
    if (bound !== undefined) found.push(bound);
    if (kind === "S") isParsed = false;
  }
  return found;
};

/** The kind of each message, with the start and the end of its content. */
function* messagesOf(bytes: Buffer): Generator<readonly [kind: string, from: number, to: number]> {
  for (let from = 0; from + 5 <= bytes.length; from += 1 + bytes.readUInt32BE(from + 1)) {
    yield [bytes.toString("latin1", from, from + 1), from + 5, from + 1 + bytes.readUInt32BE(from + 1)];
  }
}
