import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Scope } from "effect";
import { Traffic } from "../../../src/gateway/api/Traffic.ts";
import { eventually, polled } from "../../Polling.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as StatementProxy from "../../recorder/postgres/StatementProxy.ts";
import { again, ask, attach, type Client, eventsOf, providerOf, whole } from "../attach/AttachCases.ts";
import { protocols } from "../GatewayCases.ts";
import { credential, type Node, node, two } from "./Nodes.ts";

const events = eventsOf("openai-chat");
const all = Buffer.concat(events);
const others = { authorization: "Bearer sk-ffffffffffffffffffffffffffffffff" } as const;

/** Waits until a client has something. */
const hears = ({ got }: Client) => eventually(() => (got().byteLength > 0 ? true : undefined));

/** Waits until everything that a client has is logged. */
const logged = (address: string, { got }: Client) =>
  Effect.gen(function* () {
    yield* eventually(() => (got().byteLength > 0 ? true : undefined));
    const admin = yield* Databases.client(address);
    const had = got().byteLength;
    yield* eventuallyRows(
      admin`SELECT 1 AS there FROM stream_recovery_deliveryparts WHERE at + octet_length(sealed) - 29 >= ${had}`,
    );
  }).pipe(Effect.scoped, Effect.orDie);

const runOf = (client: Client): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => client.head),
    ({ headers }) => String(headers["x-recovery-run"]),
  );

/** Waits until the only run that a gateway keeps is in a state. */
const stands = ({ services }: Node, state: string) =>
  polled(
    Effect.map(Context.get(services, Traffic).status, ({ attachable = [] }) =>
      attachable.at(-1)?.state === state ? true : undefined,
    ),
  );

describe("a client that comes back at another gateway", () => {
  for (const protocol of protocols) {
    it.live(`is given the response from its first byte, while its owner goes on with it: ${protocol}`, () =>
      Effect.gen(function* () {
        const said = eventsOf(protocol);
        const address = yield* Databases.empty;
        const it = yield* two(address, said);
        const first = ask(it.one, protocol, credential);
        const sent = yield* it.nth(0);
        sent.send(3);
        yield* logged(address, first);
        first.leave();
        const second = ask(it.other, protocol, { ...credential, ...again });
        yield* hears(second);
        sent.finish();
        const got = yield* whole(second);
        assert.isFalse(got.broken);
        assert.deepStrictEqual(got.body, Buffer.concat(said));
        assert.strictEqual(got.head?.headers["x-recovery-attached"], "0");
        assert.strictEqual(it.asked.length, 1);
      }).pipe(Effect.scoped),
    );
  }

  it.live("is given a response that has ended, also where its owner is gone since", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const owner = yield* Scope.make();
      const it = yield* two(address, events);
      const gone = yield* Scope.provide(node(address, it.at), owner);
      const first = ask(gone, "openai-chat", credential);
      (yield* it.nth(0)).finish();
      yield* whole(first);
      yield* Scope.close(owner, Exit.void);
      const got = yield* whole(ask(it.other, "openai-chat", { ...credential, ...again }));
      assert.isFalse(got.broken);
      assert.deepStrictEqual(got.body, all);
      assert.strictEqual(it.asked.length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("by the run's name goes on behind the byte that it has, and takes the place of who reads", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const it = yield* two(address, events);
      const first = ask(it.one, "openai-chat", credential);
      const sent = yield* it.nth(0);
      sent.send(3);
      yield* logged(address, first);
      const had = first.got().byteLength;
      const second = attach(it.other, yield* runOf(first), { ...credential, "last-event-id": String(had) });
      const lost = yield* whole(first);
      assert.isTrue(lost.broken);
      sent.finish();
      const got = yield* whole(second);
      assert.isFalse(got.broken);
      assert.deepStrictEqual(got.body, all.subarray(had));
      assert.strictEqual(got.head?.headers["x-recovery-attached"], String(had));
      assert.strictEqual(it.asked.length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("by the run's name is quicker than its owner's first write, and waits for that", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const [atOwner, atOther] = [yield* StatementProxy.make(address), yield* StatementProxy.make(address)];
      const provider = yield* providerOf(events);
      const [owner, other] = [yield* node(atOwner.address, provider.at), yield* node(atOther.address, provider.at)];
      const begins = atOwner.hold(/INSERT INTO stream_recovery_deliveries /);
      const looks = atOther.hold(/FROM stream_recovery_deliveries WHERE run_id/, "reply");
      const first = ask(owner, "openai-chat", credential);
      const sent = yield* provider.nth(0);
      sent.send(3);
      yield* hears(first);
      yield* begins.reached;
      const second = attach(other, yield* runOf(first), credential);
      // It has looked, and there was nothing.
      yield* looks.reached;
      yield* begins.release;
      yield* looks.release;
      sent.finish();
      const got = yield* whole(second);
      assert.strictEqual(got.head?.statusCode, 200);
      assert.isFalse(got.broken);
      assert.deepStrictEqual(got.body, all);
    }).pipe(Effect.scoped),
  );

  it.live("loses its place to a client of the owner, and what it has is no end", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const it = yield* two(address, events);
      const first = ask(it.one, "openai-chat", credential);
      const sent = yield* it.nth(0);
      sent.send(3);
      yield* logged(address, first);
      const run = yield* runOf(first);
      first.leave();
      yield* stands(it.one, "left");
      const second = attach(it.other, run, credential);
      yield* hears(second);
      const third = attach(it.one, run, credential);
      const got = yield* whole(second);
      assert.isTrue(got.broken);
      sent.finish();
      assert.deepStrictEqual((yield* whole(third)).body, all);
    }).pipe(Effect.scoped),
  );

  it.live("and leaves again leaves the run to linger at its owner", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const it = yield* two(address, events);
      const first = ask(it.one, "openai-chat", credential);
      const sent = yield* it.nth(0);
      sent.send(3);
      yield* logged(address, first);
      first.leave();
      yield* stands(it.one, "left");
      const second = ask(it.other, "openai-chat", { ...credential, ...again });
      yield* hears(second);
      yield* stands(it.one, "read");
      second.leave();
      yield* stands(it.one, "left");
      const third = ask(it.other, "openai-chat", { ...credential, ...again });
      yield* hears(third);
      sent.finish();
      assert.deepStrictEqual((yield* whole(third)).body, all);
      assert.strictEqual(it.asked.length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("and says that its user has stopped it ends the run at its owner", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const it = yield* two(address, events);
      const first = ask(it.one, "openai-chat", credential);
      const sent = yield* it.nth(0);
      sent.send(3);
      yield* logged(address, first);
      const run = yield* runOf(first);
      const stopped = yield* whole(attach(it.other, run, credential, "DELETE"));
      assert.strictEqual(stopped.head?.statusCode, 204);
      assert.isTrue((yield* whole(first)).broken);
      yield* eventually(() => (sent.isClosed() ? true : undefined));
      const asked = yield* whole(attach(it.other, run, credential));
      assert.strictEqual(asked.head?.statusCode, 404);
    }).pipe(Effect.scoped),
  );

  it.live(
    "is nobody without the credential of the run's request: there is nothing by its name, and a repeat is a new run",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const it = yield* two(address, events);
        const first = ask(it.one, "openai-chat", credential);
        const sent = yield* it.nth(0);
        sent.finish();
        yield* whole(first);
        yield* ended(address);
        const run = yield* runOf(first);
        const [wrong, none] = [attach(it.other, run, others), attach(it.other, run)];
        assert.strictEqual((yield* whole(wrong)).head?.statusCode, 404);
        assert.strictEqual((yield* whole(none)).head?.statusCode, 404);
        const repeat = ask(it.other, "openai-chat", { ...others, ...again });
        (yield* it.nth(1)).finish();
        assert.isUndefined((yield* whole(repeat)).head?.headers["x-recovery-attached"]);
      }).pipe(Effect.scoped),
  );

  it.live(
    "has its response to itself: the database holds no word of it, and no word of a client without a secret",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const it = yield* two(address, events);
        const named = { "idempotency-key": "the-name-that-it-gave" };
        const first = ask(it.one, "openai-chat", { ...credential, ...named });
        (yield* it.nth(0)).finish();
        yield* whole(first);
        const weak = ask(it.one, "openai-chat", { authorization: "Bearer dummy", ...named });
        (yield* it.nth(1)).finish();
        yield* whole(weak);
        const admin = yield* Databases.client(address);
        const kept = yield* eventuallyRows(
          admin<{
            readonly state: string;
            readonly text: string;
          }>`SELECT d.state, d::text AS text FROM stream_recovery_deliveries d
          WHERE state = 'whole'`,
        );
        const parts = yield* admin<{ readonly sealed: Uint8Array }>`SELECT sealed FROM stream_recovery_deliveryparts`;
        assert.strictEqual(kept.length, 1);
        const dump = Buffer.concat([
          ...kept.map(({ text }) => Buffer.from(text)),
          ...parts.map(({ sealed }) => Buffer.from(sealed)),
        ]);
        for (const word of ["data:", "content-type", "sk-0123456789", named["idempotency-key"]])
          assert.isFalse(dump.includes(word), word);
      }).pipe(Effect.scoped, Effect.orDie),
  );

  it.live(
    "whose owner is cut off has a run of its own by asking again, and what was written, then a break, by the run's name",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const proxy = yield* StatementProxy.make(address);
        const it = yield* two(address, events);
        const owner = yield* node(proxy.address, it.at);
        const first = ask(owner, "openai-chat", credential);
        const sent = yield* it.nth(0);
        sent.send(3);
        yield* logged(address, first);
        const run = yield* runOf(first);
        const admin = yield* Databases.client(address);
        yield* eventuallyRows(admin<{ readonly n: number }>`SELECT n FROM stream_recovery_deliveryparts WHERE n > 0`);
        proxy.isDown = true;
        proxy.cut();
        const had = first.got();
        first.leave();
        const named = attach(it.other, run, credential);
        const repeat = ask(it.other, "openai-chat", { ...credential, ...again });
        (yield* it.nth(1)).finish();
        const got = yield* whole(repeat);
        assert.deepStrictEqual(got.body, all);
        assert.isUndefined(got.head?.headers["x-recovery-attached"]);
        const cut = yield* whole(named);
        assert.isTrue(cut.broken);
        assert.deepStrictEqual(cut.body, had);
      }).pipe(Effect.scoped, Effect.orDie),
  );
});

/** Waits until a response is logged to its end. */
const ended = (address: string) =>
  Effect.flatMap(Databases.client(address), (admin) =>
    eventuallyRows(admin`SELECT 1 AS there FROM stream_recovery_deliveries WHERE state = 'whole'`),
  ).pipe(Effect.scoped, Effect.orDie);

/** Asks until there are rows. */
const eventuallyRows = <A, E>(rows: Effect.Effect<ReadonlyArray<A>, E>): Effect.Effect<ReadonlyArray<A>, E> =>
  polled(Effect.map(rows, (found) => (found.length > 0 ? found : undefined)));
