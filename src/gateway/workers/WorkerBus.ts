/**
 * Lets the workers of `serve --workers` tell and ask each other things, through their supervisor.
 *
 * How to add a message stands in WorkerMessage.ts. Nothing here waits for a slow sibling: a notice that cannot be sent is lost, and a
 * query that cannot be sent, or that nobody replies to in time, fails with its reason. So whatever rests on a message must be right
 * without it too, only later or more coarsely.
 */
import { Context, Effect, FiberSet, type Redacted, Result, Schema, type Scope } from "effect";
import type { BusEnvelope, BusPort, QueryFailure, SentEnvelope } from "./BusEnvelope.ts";
import type { MessageSchema, Notice, Query } from "./WorkerMessage.ts";

/** The supervisor's number as a member of the bus; workers are 1 and up. */
export const supervisor = 0;

/** Queries of one member that wait for a reply at one time; what is beyond fails as `busy`. */
export const queriesMax = 4_096;

/** A query has no reply. */
export class BusError extends Schema.TaggedError<BusError>()("BusError", {
  reason: Schema.String,
  topic: Schema.String,
}) {}

/** The bus as one member of it sees it. In a gateway that is one process there is no such service. */
export class WorkerBus extends Context.Service<
  WorkerBus,
  {
    /** This member: 1 to the number of workers, in a worker. A replacement has the number of the worker that died. */
    readonly self: number;
    /** How many workers there are when all of them live: what is limited for all together is shared out by it. */
    readonly workers: number;
    /** A secret of all workers of one supervisor, and of no other process; each start of a supervisor draws another. */
    readonly secret: Redacted.Redacted<string>;
    /** A folder of all workers of one supervisor, which no other user may enter; undefined where none could be made. */
    readonly folder: string | undefined;
    /** The siblings that take messages now, without this one and the supervisor, in order. */
    readonly others: () => ReadonlyArray<number>;
    /**
     * Tells something, and waits for nothing.
     *
     * @param to a member, or all workers but this one
     * @returns whether it was sent on its way: not what does not fit its schema
     */
    readonly tell: <A>(notice: Notice<A>, value: A, to?: number | "others") => boolean;
    /** Asks one member. */
    readonly ask: <A, B>(query: Query<A, B>, value: A, to: number) => Effect.Effect<B, BusError>;
    /** Asks every sibling at once, and gives what those replied that did, in the order of their numbers. */
    readonly askOthers: <A, B>(query: Query<A, B>, value: A) => Effect.Effect<ReadonlyArray<Told<B>>>;
    /** Listens to a notice while the scope lives. The listener must not throw, nor wait. */
    readonly on: <A>(
      notice: Notice<A>,
      listener: (value: A, from: number) => void,
    ) => Effect.Effect<void, never, Scope.Scope>;
    /** Replies to a query while the scope lives, with the services that are here. A query has one who replies. A failure is told the asker as `failed`. */
    readonly replies: <A, B, E>(
      query: Query<A, B>,
      reply: (value: A, from: number) => Effect.Effect<B, E>,
    ) => Effect.Effect<void, never, Scope.Scope>;
    /** Tells of each worker that takes messages from now on, while the scope lives: it has heard nothing of what was told before. */
    readonly onJoined: (listener: (worker: number) => void) => Effect.Effect<void, never, Scope.Scope>;
    /** As `onJoined`, of those to which this worker is to tell what all know together: one sibling at most does, too. */
    readonly onToBeTold: (listener: (worker: number) => void) => Effect.Effect<void, never, Scope.Scope>;
    /** Tells of each worker that has died while the scope lives: what was said to it is lost. */
    readonly onLeft: (listener: (worker: number) => void) => Effect.Effect<void, never, Scope.Scope>;
  }
>()("effect-stream-recovery/gateway/WorkerBus") {}

/** What one worker said. */
export interface Told<A> {
  readonly worker: number;
  readonly value: A;
}

/** A member's end of the bus, and where what arrives for it is put in. */
export interface BusEnd {
  readonly bus: WorkerBus["Service"];
  readonly receive: (envelope: BusEnvelope) => void;
}

type Settle = (result: Result.Result<unknown, QueryFailure>) => void;

/** What a member listens to, and what it waits for. */
class Member {
  readonly listeners = new Map<string, Set<(body: unknown, from: number) => void>>();
  readonly repliers = new Map<string, (body: unknown, from: number, id: number) => void>();
  readonly leftListeners = new Set<(worker: number) => void>();
  readonly joinedListeners = new Set<(worker: number) => void>();
  readonly toBeToldListeners = new Set<(worker: number) => void>();
  readonly waiting = new Map<number, { readonly to: number; readonly settle: Settle }>();
  readonly present = new Set<number>();
  readonly #send: (envelope: SentEnvelope) => boolean;
  readonly #self: number;
  #ids = 0;

  constructor(self: number, { send }: BusPort) {
    this.#self = self;
    this.#send = send;
  }

  send(envelope: SentEnvelope): boolean {
    return this.#send(envelope);
  }

  /** Asks, and gives the id of the query; a reason where it could not be asked. */
  ask(topic: string, to: number, body: unknown, settle: Settle): number | QueryFailure {
    if (this.waiting.size >= queriesMax) return "busy";
    this.#ids += 1;
    const id = this.#ids;
    this.waiting.set(id, { to, settle });
    if (this.send({ _tag: "Query", topic, from: this.#self, to, id, body })) return id;
    this.waiting.delete(id);
    return "busy";
  }

  #settle(id: number, from: number, result: Result.Result<unknown, QueryFailure>): void {
    const asked = this.waiting.get(id);
    if (asked === undefined || asked.to !== from) return;
    this.waiting.delete(id);
    asked.settle(result);
  }

  receive(envelope: BusEnvelope): void {
    const { from } = envelope;
    if (envelope._tag === "Joined") this.#joined(from, envelope.isToBeTold === true);
    else if (envelope._tag === "Left") this.#left(from);
    else if (envelope._tag === "Reply") this.#settle(envelope.id, from, Result.succeed(envelope.body));
    else if (envelope._tag === "Failure") this.#settle(envelope.id, from, Result.fail(envelope.reason));
    else if (envelope._tag === "Notice") {
      for (const listener of this.listeners.get(envelope.topic) ?? []) listener(envelope.body, from);
    } else {
      const reply = this.repliers.get(envelope.topic);
      if (reply === undefined) this.fail(from, envelope.id, "unknown");
      else reply(envelope.body, from, envelope.id);
    }
  }

  fail(to: number, id: number, reason: QueryFailure): void {
    this.send({ _tag: "Failure", from: this.#self, to, id, reason });
  }

  #joined(worker: number, isToBeTold: boolean): void {
    this.present.add(worker);
    if (worker === supervisor) return;
    for (const listener of [...this.joinedListeners]) listener(worker);
    if (isToBeTold) for (const listener of [...this.toBeToldListeners]) listener(worker);
  }

  #left(worker: number): void {
    this.present.delete(worker);
    for (const [id, { to }] of [...this.waiting]) if (to === worker) this.#settle(id, worker, Result.fail("gone"));
    for (const listener of [...this.leftListeners]) listener(worker);
  }
}

/**
 * Makes a member's end of the bus.
 *
 * @param port the way of what it sends
 */
export const make = Effect.fnUntraced(function* (
  { folder, secret, self, workers }: Pick<WorkerBus["Service"], "folder" | "secret" | "self" | "workers">,
  port: BusPort,
): Effect.fn.Return<BusEnd, never, Scope.Scope> {
  const member = new Member(self, port);
  const replying = yield* FiberSet.make<void>();
  const run = yield* FiberSet.runtime(replying)();
  const ask = <A, B>(query: Query<A, B>, value: A, to: number) => asking(member, query, value, to);
  const bus = WorkerBus.of({
    ...{ self, workers, secret, folder },
    others: () => [...member.present].filter((it) => it !== self && it !== supervisor).toSorted((a, b) => a - b),
    tell: (notice, value, to = "others") => {
      const body = encoded(notice.schema, value);
      if (Result.isFailure(body)) return false;
      return member.send({ _tag: "Notice", topic: notice.name, from: self, to, body: body.success });
    },
    ask,
    // Those that are there when it runs, not when it was made.
    askOthers: (query, value) =>
      Effect.suspend(() => {
        const asking = (worker: number) =>
          Effect.option(Effect.map(ask(query, value, worker), (replied) => ({ worker, value: replied })));
        return Effect.forEach(bus.others(), asking, { concurrency: "unbounded" });
      }).pipe(Effect.map((all) => all.flatMap((it) => (it._tag === "Some" ? [it.value] : [])))),
    on: ({ name, schema }, listener) =>
      held(member.listeners, name, (body, from) => {
        const read = decoded(schema, body);
        if (Result.isSuccess(read)) listener(read.success, from);
      }),
    replies: (query, reply) =>
      Effect.flatMap(Effect.context<never>(), (context) =>
        Effect.acquireRelease(
          Effect.sync(() =>
            member.repliers.set(query.name, (body, from, id) => {
              const read = decoded(query.asked, body);
              if (Result.isFailure(read)) return member.fail(from, id, "bad_message");
              const replying = replied(member, { self, from, id }, query.replied, reply(read.success, from));
              run(Effect.provideContext(replying, context));
            }),
          ),
          () => Effect.sync(() => member.repliers.delete(query.name)),
        ),
      ),
    onJoined: (listener) => listening(member.joinedListeners, listener),
    onToBeTold: (listener) => listening(member.toBeToldListeners, listener),
    onLeft: (listener) => listening(member.leftListeners, listener),
  });
  return { bus, receive: (envelope) => member.receive(envelope) };
});

const asking = <A, B>(member: Member, query: Query<A, B>, value: A, to: number): Effect.Effect<B, BusError> => {
  const failed = (reason: QueryFailure) => new BusError({ reason, topic: query.name });
  const reply = Effect.callback<unknown, BusError>((resume) => {
    const asked = encoded(query.asked, value);
    if (Result.isFailure(asked)) return resume(Effect.fail(failed("bad_message")));
    const id = member.ask(query.name, to, asked.success, (result) =>
      resume(Result.isSuccess(result) ? Effect.succeed(result.success) : Effect.fail(failed(result.failure))),
    );
    if (typeof id === "string") return resume(Effect.fail(failed(id)));
    return Effect.sync(() => member.waiting.delete(id));
  });
  return reply.pipe(
    Effect.timeoutOrElse({ duration: query.replyMs, orElse: () => Effect.fail(failed("late")) }),
    Effect.flatMap((body) => {
      const read = decoded(query.replied, body);
      return Result.isSuccess(read) ? Effect.succeed(read.success) : Effect.fail(failed("bad_message"));
    }),
  );
};

const replied = <B, E>(
  member: Member,
  { from, id, self }: { readonly self: number; readonly from: number; readonly id: number },
  schema: MessageSchema<B>,
  reply: Effect.Effect<B, E>,
): Effect.Effect<void> =>
  reply.pipe(
    Effect.flatMap((value) => Effect.fromResult(encoded(schema, value))),
    Effect.map((body) => member.send({ _tag: "Reply", from: self, to: from, id, body })),
    Effect.asVoid,
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logWarning("a query of another worker has failed", cause),
        Effect.sync(() => member.fail(from, id, "failed")),
      ),
    ),
  );

const listening = <L>(all: Set<L>, listener: L): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => all.add(listener)),
      () => Effect.sync(() => all.delete(listener)),
    ),
  );

const held = <L>(all: Map<string, Set<L>>, name: string, listener: L): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => all.set(name, (all.get(name) ?? new Set<L>()).add(listener))),
      () => Effect.sync(() => all.get(name)?.delete(listener)),
    ),
  );

/** What is said may hold what a client has sent: that it does not fit is no defect. */
const encoded = <A>(schema: MessageSchema<A>, value: A): Result.Result<unknown, unknown> =>
  Schema.encodeResult(schema)(value);

const decoded = <A>(schema: MessageSchema<A>, body: unknown): Result.Result<A, unknown> =>
  Schema.decodeUnknownResult(schema)(body);
