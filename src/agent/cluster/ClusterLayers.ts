/**
 * Puts nodes and callers together: shards on Effect Cluster, their locks and the nodes' addresses in PostgreSQL, and journals there
 * too.
 *
 * No message is kept by the cluster: a call is sent again by its caller, and what has been done stands in the journal.
 */
import { timingSafeEqual } from "node:crypto";
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket";
import { Cause, Context, Effect, Layer, Option, type Scope } from "effect";
import {
  Entity,
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  RunnerStorage,
  Runners,
  type Sharding,
  ShardingConfig,
  SocketRunner,
  SqlRunnerStorage,
} from "effect/cluster";
import { RpcSerialization } from "effect/rpc";
import type { SocketServerError } from "effect/socket/SocketServer";
import { Migrator, SqlClient } from "effect/sql";
import * as PostgresAddress from "../../recorder/postgres/PostgresAddress.ts";
import * as PostgresClient from "../../recorder/postgres/PostgresClient.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { explained } from "../../recorder/sql/SqlFailure.ts";
import type { AgentError } from "../conversation/AgentError.ts";
import type { Carrier } from "./ConversationCaller.ts";
import { ConversationError } from "./ConversationError.ts";
import * as ConversationOwner from "./ConversationOwner.ts";
import * as ForgottenChats from "./ForgottenChats.ts";
import * as PostgresChats from "./PostgresChats.ts";
import { Conversation, contentOf, contentOfOrder } from "./Protocol.ts";

/** Where a node listens, and how others reach it. */
export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

/** Conversations are divided into so many parts, each of which has one owner. Every node of a store must have the same number. */
const shards = 32;

/** How long a node that says nothing keeps its shards, in milliseconds. */
const lockMs = 4_000;

/** Most conversations that are open in a node. */
const residentMax = 256;

/** After so long without a call a conversation is closed at its owner. A turn of it stays open, and goes on at the next call. */
const idle = "30 minutes";

/** Connections of a process to the store, besides those of its runs. One of them holds the locks. */
const connections = 4;

/** Longest wait for another transaction's lock, in milliseconds. */
const lockWaitMs = 3_000;

/** What the tables' names begin with where the address says nothing else. */
const prefixDefault = "stream_recovery_";

/** The part of the store that a cluster uses, and what its tables' names begin with. */
class ClusterStore extends Context.Service<
  ClusterStore,
  { readonly prefix: string; readonly place: string; readonly sql: SqlClient.SqlClient }
>()("effect-stream-recovery/ClusterStore") {}

/**
 * A node: it owns its part of the conversations as long as it lives.
 *
 * Fails where the store cannot be used, or the address is taken.
 *
 * @param db `postgres://…`
 * @param address where it listens; other nodes and callers have to reach it there
 * @param options what new conversations are begun with, and how all are played
 */
export const layerNode = (
  db: string,
  address: NodeAddress,
  options: Omit<ConversationOwner.OwnerOptions, "node" | "chats">,
): Layer.Layer<never, RecorderError | SocketServerError, ConversationOwner.OwnerServices> =>
  entity(`${address.host}:${address.port}`, options).pipe(
    Layer.provide(
      SocketRunner.layer.pipe(
        Layer.provide([NodeClusterSocket.layerSocketServer, NodeClusterSocket.layerClientProtocol]),
        Layer.provide(
          RunnerHealth.layerPing.pipe(
            Layer.provide(Runners.layerRpc),
            Layer.provide(NodeClusterSocket.layerClientProtocol),
          ),
        ),
        Layer.provide(shared(Option.some(address))),
      ),
    ),
    Layer.provide(store(db)),
  );

/** What calls conversations of a store, from a process that owns none. */
export class ClusterCarrier extends Context.Service<ClusterCarrier, Carrier>()(
  "effect-stream-recovery/ClusterCarrier",
) {
  /**
   * Calls over the store's nodes. The recorder gives the key by which a caller shows that it may.
   *
   * @param db `postgres://…`
   */
  static readonly layer = (db: string): Layer.Layer<ClusterCarrier, RecorderError, RunRecorder> =>
    Layer.effect(ClusterCarrier, carrier).pipe(
      Layer.provide(
        SocketRunner.layerClientOnly.pipe(
          Layer.provide(NodeClusterSocket.layerClientProtocol),
          Layer.provideMerge(shared(Option.none())),
        ),
      ),
      Layer.provide(store(db)),
    );
}

/**
 * Forgets conversations of a store: their journals, and nothing of their runs. An owner that lives writes nothing more of them.
 *
 * Fails where the store cannot be used, or a journal of one that is not forced cannot be read.
 *
 * @param db `postgres://…`
 */
export const forgetConversations = (
  db: string,
  meant: ForgottenChats.Meant,
): Effect.Effect<ForgottenChats.Forgotten, RecorderError | AgentError> =>
  Effect.scoped(
    Effect.flatMap(opened(db), ({ place, prefix, sql }) => ForgottenChats.forget(sql, prefix, place, meant)),
  );

const carrier: Effect.Effect<Carrier, never, RunRecorder | Sharding.Sharding | RunnerStorage.RunnerStorage> =
  Effect.gen(function* () {
    const { digest } = yield* RunRecorder;
    const nodes = yield* RunnerStorage.RunnerStorage;
    const of = yield* Conversation.client;
    return {
      look: (chat) => Effect.flatMap(digest(contentOf(chat, "look", 0)), (proof) => of(chat).Look({ proof })),
      turn: (chat, order) =>
        Effect.flatMap(digest(contentOfOrder(chat, order)), (proof) => of(chat).Turn({ ...order, proof })),
      cancel: (chat, turn) =>
        Effect.flatMap(digest(contentOf(chat, "cancel", turn)), (proof) => of(chat).Cancel({ turn, proof })),
      nodes: Effect.map(nodes.getRunners, (all) => all.map(([{ address }]) => `${address.host}:${address.port}`)),
    };
  });

/** The conversations of a node. */
const entity = (node: string, options: Omit<ConversationOwner.OwnerOptions, "node" | "chats">) =>
  Conversation.toLayer(
    Effect.gen(function* () {
      const { digest } = yield* RunRecorder;
      const { place, prefix, sql } = yield* ClusterStore;
      const chat = (yield* Entity.CurrentAddress).entityId;
      const owner = yield* ConversationOwner.make(chat, {
        ...options,
        node,
        chats: PostgresChats.make(sql, prefix, place),
      });
      const shown = <A>(content: string, proof: string, then: Effect.Effect<A, ConversationError>) =>
        Effect.flatMap(Effect.mapError(digest(content), unusable), (own) =>
          isSame(own, proof) ? then : Effect.fail(forbidden),
        );
      return Conversation.of({
        Look: ({ payload: { proof } }) => shown(contentOf(chat, "look", 0), proof, owner.look),
        Turn: ({ payload: { proof, ...order } }) => shown(contentOfOrder(chat, order), proof, owner.turn(order)),
        Cancel: ({ payload: { proof, turn } }) => shown(contentOf(chat, "cancel", turn), proof, owner.cancel(turn)),
      });
    }),
    { concurrency: "unbounded", maxIdleTime: idle },
  );

const isSame = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
};

const forbidden = new ConversationError({
  reason: "forbidden",
  message: "the call was not made with this store's key: callers and nodes have to name the same --db",
});

const unusable = ({ message }: RecorderError) => new ConversationError({ reason: "store", message });

/** What nodes and callers have in common. */
const shared = (address: Option.Option<NodeAddress>) =>
  Layer.mergeAll(MessageStorage.layerNoop, RpcSerialization.layerSchemaBinary(), runners).pipe(
    Layer.provideMerge(
      ShardingConfig.layer({
        runnerAddress: Option.map(address, ({ host, port }) => RunnerAddress.make(host, port)),
        shardsPerGroup: shards,
        // Rows, and no locks of a session: those belong to the whole database, whatever its schemas, and not to a pooler's client.
        shardLockDisableAdvisory: true,
        shardLockExpiration: lockMs,
        shardLockRefreshInterval: lockMs / 3,
        refreshAssignmentsInterval: 500,
        runnerHealthCheckInterval: 1_000,
        maxResidentEntities: residentMax,
        simulateRemoteSerialization: false,
      }),
    ),
  );

/** The nodes' addresses and the locks of their shards. */
const runners = Layer.unwrap(
  Effect.map(ClusterStore, ({ prefix, sql }) =>
    Layer.provide(
      SqlRunnerStorage.layerStorage({ prefix: `${prefix}cluster` }),
      Layer.succeed(SqlClient.SqlClient, sql),
    ),
  ),
);

const store = (db: string): Layer.Layer<ClusterStore, RecorderError> => Layer.effect(ClusterStore, opened(db));

const opened = (db: string): Effect.Effect<ClusterStore["Service"], RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const address = PostgresAddress.parse(db);
    if (address instanceof RecorderError) return yield* address;
    const sql = yield* PostgresClient.make({
      ...{ address, connections, lockMs: lockWaitMs, name: "stream-recovery cluster" },
      password: PostgresClient.passwordOf(process.env),
    });
    const [prefix, place] = [address.prefix ?? prefixDefault, PostgresAddress.placeOf(address)];
    yield* prepared(sql, prefix).pipe(Effect.catchCause((cause) => Effect.fail(explained(Cause.squash(cause), place))));
    return { prefix, place, sql };
  });

/** Makes the tables. A role that may make none needs them to be there. */
const prepared = (sql: SqlClient.SqlClient, prefix: string) =>
  Effect.gen(function* () {
    const [may] = yield* sql<{ readonly may: boolean }>`SELECT has_schema_privilege(current_schema(), 'CREATE') AS may`;
    if (may?.may !== true) return;
    const name = `${prefix}cluster`;
    // One process after the other makes them.
    yield* sql`SELECT current_schema(), pg_advisory_xact_lock(hashtextextended(current_schema() || '.' || ${name}, 0))`;
    yield* PostgresChats.makeTables(sql, prefix);
    const loader = SqlRunnerStorage.migrations({ prefix: name });
    yield* Migrator.make({})({ loader, table: `${name}_runner_migrations` });
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql), sql.withTransaction);
