/**
 * Starts nodes and callers of a cluster as processes over one PostgreSQL, and reads what they left in it.
 */
import { existsSync, unwatchFile, watchFile } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Effect, Exit, Schedule, Schema, type Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { Entry } from "../../../src/agent/index.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import * as Command from "../../cli/AgentProcess.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as Rig from "../Rig.ts";

/** A port of this machine on which nothing listens. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    server.close(() => resume(Effect.succeed(port)));
  });
});

/** A node that runs. */
export interface Node extends Command.Running {
  readonly address: string;
}

/** Several nodes over one store, and a provider. */
export interface Nodes {
  readonly at: string;
  readonly db: string;
  readonly provider: Effect.Success<ReturnType<typeof FaultProvider.make>>;
  readonly node: Effect.Effect<Node, never, Scope.Scope>;
  readonly nodeAt: (address: string) => Effect.Effect<Node, never, Scope.Scope>;
  /** A caller of the conversation `c`. */
  readonly caller: (args: ReadonlyArray<string>) => Effect.Effect<Command.Running, never, Scope.Scope>;
  /** The address of the owner of `c`. */
  readonly owner: Effect.Effect<string>;
  /** The journal of `c`. */
  readonly journal: Effect.Effect<ReadonlyArray<Entry>>;
  readonly sql: SqlClient;
  /** What the tools of `c` have written. */
  readonly marks: string;
}

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Entry));

/** Makes a store and a provider. */
export const make = (script: FaultScriptInput, db?: string): Effect.Effect<Nodes, never, Scope.Scope> =>
  Effect.gen(function* () {
    const at = yield* Rig.folder;
    const store = db ?? (yield* Databases.empty);
    const provider = yield* FaultProvider.make({ script });
    const sql = yield* Databases.client(store, "judge");
    const flags = ["--cluster", "--db", store, "--lease-ms", "300"];
    const playing = ["--dir", at, "--model", "m", "--url", provider.url];
    const nodeAt = (address: string) =>
      Effect.map(Command.start([...flags, ...playing, "--node", address]), (running) => ({ ...running, address }));
    return {
      ...{ at, db: store, provider, sql, marks: join(at, "c", "marks") },
      nodeAt,
      node: Effect.flatMap(freePort, (port) => nodeAt(`127.0.0.1:${port}`)),
      caller: (args: ReadonlyArray<string>) => Command.start([...flags, "--chat", "c", ...args]),
      owner: Effect.orDie(
        Effect.map(
          sql<{ readonly owner: string }>`SELECT owner FROM stream_recovery_chats`,
          ([row]) => row?.owner ?? "",
        ),
      ),
      journal: Effect.orDie(
        Effect.map(sql<{ readonly line: string }>`SELECT line FROM stream_recovery_chat_lines ORDER BY n`, (rows) =>
          rows.map(({ line }) => decode(line)),
        ),
      ),
    };
  }).pipe(Effect.orDie);

/** Waits until nodes are ready. */
export const ready = (nodes: ReadonlyArray<Node>): Effect.Effect<void> =>
  Effect.forEach(nodes, (it) => it.until("owns its part"), { discard: true });

/** Which of the nodes owns the conversation, and which do not. */
export const divided = Effect.fnUntraced(function* ({ owner }: Nodes, nodes: ReadonlyArray<Node>) {
  const address = yield* owner;
  const mine = nodes.find((it) => it.address === address);
  if (mine === undefined) return yield* Effect.die(new Error(`no node is ${address}`));
  return { owner: mine, others: nodes.filter((it) => it !== mine) };
});

/** What a caller exits with that has found no owner: on a machine that is busy enough, 10 s are not enough for a new one. */
const noOwner = 5;

/** The code of a caller that was answered, or of one that was started again. */
export const answered = (nodes: Nodes, caller: Command.Running): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const code = yield* caller.ended;
    if (code !== noOwner) return code ?? -1;
    return yield* answered(nodes, yield* nodes.caller(["--resume"]));
  });

/** The caller that is asked what became of a call: this one, or one that was started again. */
export const asked = (nodes: Nodes, caller: Command.Running): Effect.Effect<Command.Running, never, Scope.Scope> =>
  Effect.gen(function* () {
    const seen = yield* Effect.exit(caller.until("it_did_not_run"));
    if (Exit.isSuccess(seen)) return caller;
    if ((yield* caller.ended) !== noOwner) return yield* seen.pipe(Effect.andThen(Effect.never));
    return yield* asked(nodes, yield* nodes.caller(["--resume"]));
  });

/** Waits until a file is there. */
export const made = (file: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const look = () => {
      if (existsSync(file)) resume(Effect.void);
    };
    watchFile(file, { interval: 20 }, look);
    look();
    return Effect.sync(() => unwatchFile(file));
  });

/** Waits until something is so. The test's own limit ends it. */
export const until = <E>(looks: Effect.Effect<boolean, E>): Effect.Effect<void> =>
  Effect.orDie(Effect.asVoid(Effect.repeat(looks, { until: (yes) => yes, schedule: Schedule.spaced("50 millis") })));
