/**
 * Stands between a recorder and its server, and knows each statement that passes: it holds one up until others are through, or
 * breaks a connection at its COMMIT, before the server has it or before its word comes back.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deferred, Effect, Exit, type Scope } from "effect";
import { inject } from "vitest";

/** A statement that is held up. */
export interface Held {
  /** Waits until it has come to the proxy. */
  readonly reached: Effect.Effect<void>;
  /** Lets it through. */
  readonly release: Effect.Effect<void>;
}

/** What passes between a recorder and its server. */
export interface StatementProxy {
  /** The address of the same database through the proxy. */
  readonly address: string;
  /**
   * Where the next commit breaks; undefined lets it through. `for_good`: at its reply, and the server is away from then on.
   * `in_silence`: at its reply, and fifty further connections are silent. `undecided` and `ailing`: its reply is an error that says
   * nothing of it, as a pooler has them, and the connection stays.
   */
  breaks: "request" | "reply" | "for_good" | "in_silence" | keyof typeof errors | undefined;
  /** Whether connections are refused. */
  isDown: boolean;
  /** So many further connections are taken and never answered, as by a server behind a firewall that drops what is sent. */
  silent: number;
  /** How many commits were broken. */
  broken: number;
  /** How many connections were refused. */
  refused: number;
  /** Cuts the connections that there are. */
  readonly cut: () => void;
  /** Holds the next statement that a pattern fits, once: on its way to the server, or its reply on the way back. */
  readonly hold: (pattern: RegExp, what?: "request" | "reply") => Held;
  /** Every statement that has passed, in order. */
  readonly statements: ReadonlyArray<string>;
}

/** Codes of errors that leave open what became of a commit. */
const errors = { undecided: "40003", ailing: "58000" } as const;

/** A server's error, and its word that it is ready for what comes next. */
const errorOf = (code: string): Buffer => {
  const fields = Buffer.from(`SERROR\0VERROR\0C${code}\0Mthe server was lost\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeUInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields, Buffer.from([0x5a, 0, 0, 0, 5, 0x49])]);
};

/** Whether the server is ready for what comes next. */
const isReady = (bytes: Buffer): boolean => bytes.at(-6) === 0x5a && bytes.readUInt32BE(bytes.length - 5) === 5;

const socketName = ".s.PGSQL.5432";

/** Makes a proxy for an address of `Databases`. */
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
    const sockets = new Set<Socket>();
    const proxy: StatementProxy = {
      address: address.replace(encodeURIComponent(target), encodeURIComponent(folder)),
      breaks: undefined,
      isDown: false,
      silent: 0,
      broken: 0,
      refused: 0,
      statements,
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
      pass(proxy, statements, gates, client, upstream);
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
  statements: Array<string>,
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
  /** The code of the error that stands in the place of a commit's reply. */
  let errs: string | undefined;
  /** What goes behind a statement that is held: the rest of its bytes may come in a piece of its own. */
  let behind: Array<Buffer> | undefined;
  /** What the server says while its reply is held. */
  let replies: Array<Buffer> | undefined;
  client.on("data", (bytes) => {
    if (behind !== undefined) return void behind.push(bytes);
    const sql = statementOf(bytes, named);
    if (sql !== undefined) statements.push(sql);
    if (sql === "COMMIT" && proxy.breaks !== undefined) {
      const where = proxy.breaks;
      proxy.breaks = undefined;
      proxy.broken += 1;
      if (where === "request") return end();
      if (where === "undecided" || where === "ailing") errs = errors[where];
      else swallows = true;
      proxy.isDown = where === "for_good";
      if (where === "in_silence") proxy.silent = 50;
    }
    const index = gates.findIndex(({ pattern }) => sql !== undefined && pattern.test(sql));
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
    const all = [bytes];
    behind = all;
    const release = () => {
      behind = undefined;
      upstream.write(Buffer.concat(all));
    };
    Effect.runFork(Effect.map(Deferred.await(gate.open), release));
  });
  upstream.on("data", (bytes) => {
    if (swallows) return end();
    if (errs !== undefined) {
      if (!isReady(bytes)) return;
      client.write(errorOf(errs));
      errs = undefined;
      return;
    }
    if (replies !== undefined) return void replies.push(bytes);
    client.write(bytes);
  });
};

/**
 * The statement of a client's messages: its text is on the wire when it is prepared, and from then on it has a name. Messages are
 * told apart by their lengths alone, as the bytes of a parameter may look like any other message.
 */
const statementOf = (bytes: Buffer, named: Map<string, string>): string | undefined => {
  for (let from = 0; from + 5 <= bytes.length; from += 1 + bytes.readUInt32BE(from + 1)) {
    const kind = bytes.toString("latin1", from, from + 1);
    const [first = "", second = ""] = bytes
      .toString("latin1", from + 5, from + 1 + bytes.readUInt32BE(from + 1))
      .split("\0", 2);
    if (kind === "P") {
      named.set(first, second);
      return second;
    }
    if (kind === "B") return named.get(second);
  }
  return undefined;
};
