/**
 * `node main.ts serve --db postgres://… --model claude-sonnet-4-5` is a node, and `node main.ts say "Book me a seat" --db …` a
 * caller. README.md says what happens when a node dies.
 */
import { NodeClusterSocket, NodeRuntime, NodeServices } from "@effect/platform-node";
import { PgClient } from "@effect/sql-pg";
import { Console, Effect, Layer, Option, Redacted } from "effect";
import { Argument, Command, Flag } from "effect/cli";
import { RunnerAddress } from "effect/cluster";
import { StreamProcessor, UserDecisions } from "effect-stream-recovery";
import { ProviderClient } from "effect-stream-recovery/client";
import { PostgresRunRecorder } from "effect-stream-recovery/postgres";
import * as Conversation from "./Conversation.ts";
import { Seats } from "./Seats.ts";

const db = Flag.String("db").pipe(Flag.withDescription("postgres://ROLE@HOST/DATABASE; the password is $PGPASSWORD"));

const database = (address: string) =>
  PgClient.layer({ url: Redacted.make(address), password: Redacted.make(process.env.PGPASSWORD ?? "") });

/** The lock of a node is a row with a time limit: one that hangs loses its conversations as one that died does. */
const shardingConfig = {
  shardLockDisableAdvisory: true,
  shardLockExpiration: "4 seconds",
  shardLockRefreshInterval: "1 second",
  runnerHealthCheckInterval: "1 second",
  entityMessagePollInterval: "1 second",
} as const;

const serve = Command.make(
  "serve",
  {
    db,
    model: Flag.String("model"),
    base: Flag.String("base").pipe(Flag.withDefault("https://api.anthropic.com/v1")),
    host: Flag.String("host").pipe(Flag.withDefault("127.0.0.1")),
    port: Flag.Int("port").pipe(Flag.withDefault(34_431)),
  },
  ({ base, db, host, model, port }) => {
    const runnerAddress = Option.some(RunnerAddress.make(host, port));
    const recovery = StreamProcessor.layer.pipe(
      Layer.provideMerge(UserDecisions.layerHeadless()),
      Layer.provideMerge(PostgresRunRecorder.layer({ address: db, leaseMs: 2_000 })),
    );
    return Conversation.layer(model, base).pipe(
      Layer.provide(NodeClusterSocket.layer({ shardingConfig: { ...shardingConfig, runnerAddress } })),
      Layer.provide(Seats.layer),
      Layer.provide(ProviderClient.layer()),
      Layer.provide(recovery),
      Layer.provide(database(db)),
      Layer.tap(() => Console.log(`a node at ${host}:${port}`)),
      Layer.launch,
    );
  },
);

const say = Command.make(
  "say",
  {
    text: Argument.String("text"),
    db,
    chat: Flag.String("chat").pipe(Flag.withDefault("chat")),
    turn: Flag.String("turn").pipe(Flag.withDefault(String(Date.now()))),
  },
  ({ chat, db, text, turn }) =>
    Effect.gen(function* () {
      const conversation = yield* Conversation.Conversation.client;
      yield* Console.log(yield* conversation(chat).Say({ turn, text }));
    }).pipe(Effect.provide(Layer.provide(NodeClusterSocket.layer({ clientOnly: true, shardingConfig }), database(db)))),
);

Command.make("cluster-agent").pipe(
  Command.withSubcommands([serve, say]),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain,
);
