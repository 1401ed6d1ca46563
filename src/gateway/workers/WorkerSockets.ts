/**
 * Lets each worker of `serve --workers` query its siblings over Unix sockets, and answer their queries.
 *
 * The folder of the sockets is accessible to no other user, and each request is signed (`SignedWire`). A worker does not know which
 * siblings are alive: it asks all of them, and the socket of a dead one refuses the connection at once. State that all workers must agree
 * on is in the store. Queries are for state that only one worker has: its current activity, and the bytes of its runs.
 */
import { rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { Context, Effect, Layer, type Scope } from "effect";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { sharedKey } from "./SharedKey.ts";
import { AskError, type HopListener, type HopTarget, hopHeadBytesMax, type Query, SignedWire } from "./SignedWire.ts";

/** The place of a worker in its gateway. */
export interface WorkerNumber {
  /** Number from 1 to the number of workers. The replacement of a dead worker has the same number. */
  readonly self: number;
  /** Number of workers. Limits for the whole gateway are divided by it. */
  readonly workers: number;
  /** Folder of the sockets. Undefined if it could not be created; then workers cannot reach each other. */
  readonly folder: string | undefined;
}

/** The reply of one worker to a query. */
export interface Told<A> {
  readonly worker: number;
  readonly value: A;
}

/** The sockets of all workers, as seen by one of them. A gateway with a single process has no such service. */
export class WorkerSockets extends Context.Service<
  WorkerSockets,
  WorkerNumber & {
    /** Numbers of the siblings, in order. Empty without a folder. */
    readonly others: ReadonlyArray<number>;
    readonly ask: <A, B>(query: Query<A, B>, value: A, to: number) => Effect.Effect<B, AskError>;
    /** Sends a query to all siblings at once. Returns the replies that arrived, in the order of the siblings. */
    readonly askOthers: <A, B>(query: Query<A, B>, value: A) => Effect.Effect<ReadonlyArray<Told<B>>>;
    /** Answers queries of this kind while the scope is open. */
    readonly serveQuery: <A, B>(
      query: Query<A, B>,
      reply: (value: A) => Effect.Effect<B>,
    ) => Effect.Effect<void, never, Scope.Scope>;
    /** Serves the hops of siblings while the scope is open. */
    readonly serveHops: (listener: HopListener) => Effect.Effect<void, never, Scope.Scope>;
    readonly hopTo: (worker: number) => HopTarget;
  }
>()("effect-stream-recovery/gateway/WorkerSockets") {
  /** Listens on the worker's own socket while the scope is open. */
  static readonly layer = (place: WorkerNumber): Layer.Layer<WorkerSockets, never, RunRecorder> =>
    Layer.effect(
      WorkerSockets,
      Effect.flatMap(RunRecorder, ({ shared }) => make(place, shared && sharedKey(shared.secret, "hop"))),
    );
}

/** Returns the path of a worker's socket. */
export const socketOf = (folder: string, worker: number): string => join(folder, `${worker}.sock`);

/**
 * Creates the service.
 *
 * @param key signs the messages between workers. Undefined if the store has no secret; then workers cannot reach each other
 */
export const make = Effect.fnUntraced(function* (
  place: WorkerNumber,
  key: ReturnType<typeof sharedKey> | undefined,
): Effect.fn.Return<WorkerSockets["Service"], never, Scope.Scope> {
  const { folder, self, workers } = place;
  if (folder === undefined || key === undefined) return makeAlone(place);
  const wire = yield* SignedWire.make(key);
  yield* listenOn(socketOf(folder, self), (request, response) => void wire.take(request, response));
  const others = Array.from({ length: workers }, (_, at) => at + 1).filter((it) => it !== self);
  const addressOf = (worker: number) => ({ socketPath: socketOf(folder, worker) });
  const ask = <A, B>(query: Query<A, B>, value: A, worker: number) => wire.ask(query, value, addressOf(worker));
  return WorkerSockets.of({
    ...{ ...place, others, ask },
    hopTo: (worker) => wire.hopTo(addressOf(worker)),
    askOthers: (query, value) =>
      Effect.forEach(
        others,
        (worker) => Effect.option(Effect.map(ask(query, value, worker), (replied) => ({ worker, value: replied }))),
        { concurrency: "unbounded" },
      ).pipe(Effect.map((all) => all.flatMap((it) => (it._tag === "Some" ? [it.value] : [])))),
    serveQuery: (query, reply) => wire.serveQuery(query, reply),
    serveHops: (listener) => wire.serveHops(listener),
  });
});

/** Creates the service of a worker that cannot reach its siblings. */
const makeAlone = (place: WorkerNumber): WorkerSockets["Service"] =>
  WorkerSockets.of({
    ...{ ...place, others: [] },
    ask: ({ name }) => Effect.fail(new AskError({ reason: "gone", question: name })),
    askOthers: () => Effect.succeed([]),
    serveQuery: () => Effect.void,
    serveHops: () => Effect.void,
    hopTo: (worker) => ({ to: { socketPath: socketOf(place.folder ?? "", worker) }, headersOf: () => ({}) }),
  });

const listenOn = (
  socket: string,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: Server; readonly wrong?: string }>((resume) => {
      const server = createServer({ maxHeaderSize: hopHeadBytesMax, requestTimeout: 0 }, onRequest);
      const onError = (error: unknown) => resume(Effect.succeed({ server, wrong: codeOf(error) }));
      server.once("error", onError);
      try {
        // A predecessor that was killed has left its socket behind, so the file is removed.
        rmSync(socket, { force: true });
      } catch (error) {
        return resume(Effect.succeed({ server, wrong: codeOf(error) }));
      }
      server.listen(socket, () => {
        server.off("error", onError).on("error", () => undefined);
        resume(Effect.succeed({ server }));
      });
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  ).pipe(
    Effect.flatMap(({ wrong }) =>
      wrong === undefined
        ? Effect.void
        : Effect.logWarning("clients of the other workers cannot attach to the runs of this one", { code: wrong }),
    ),
  );

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "unknown");
