import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Exit, Fiber, Redacted, type Scope } from "effect";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { SharedFacts, Word } from "../../../src/recorder/shared/SharedFacts.ts";
import * as E from "../Entries.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const factsOf = (address: string): Effect.Effect<SharedFacts, RecorderError, Scope.Scope> =>
  Effect.map(Databases.open({ address }), ({ shared }) => {
    assert.isDefined(shared);
    return shared;
  });

/** Waits for a matching notification and skips all earlier ones. */
const hears = (facts: SharedFacts, wanted: (word: Word) => boolean): Effect.Effect<Effect.Effect<void>> =>
  Effect.sync(() => {
    const heard = Deferred.makeUnsafe<void>();
    const ends = facts.on((word) => {
      if (wanted(word)) Deferred.doneUnsafe(heard, Exit.void);
    });
    return Effect.ensuring(Deferred.await(heard), Effect.sync(ends));
  });

/** Waits until notifications arrive as they are sent. */
const listening = (facts: SharedFacts): Effect.Effect<void> =>
  Effect.flatMap(
    hears(facts, () => facts.hasNotifications()),
    (heard) => (facts.hasNotifications() ? Effect.void : heard),
  );

const isCooldown = (word: Word) => word._tag === "Put" && word.kind === "cooldown";

describe("shared facts of processes in PostgreSQL", () => {
  it.live("are found by every process until they expire, and a newer fact replaces an older one of the same key", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const [a, b] = [yield* factsOf(address), yield* factsOf(address)];
      assert.strictEqual(Redacted.value(a.secret), Redacted.value(b.secret));
      assert.notStrictEqual(a.node, b.node);
      yield* a.put("failed", "key", "one", 60_000);
      yield* b.put("failed", "key", "two", 60_000);
      const found = yield* a.find("failed", "key");
      assert.strictEqual(found?.value, "two");
      assert.strictEqual(found?.node, b.node);
      assert.isAbove(found?.leftMs ?? 0, 50_000);
      assert.isUndefined(yield* b.find("told", "key"));
      yield* a.put("failed", "over", "one", 0);
      assert.isUndefined(yield* b.find("failed", "over"));
      assert.isUndefined(yield* b.take("failed", "over"));
    }).pipe(Effect.scoped),
  );

  it.live("are taken once, however many processes take them at the same moment", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const all = yield* Effect.forEach([1, 2, 3], () => factsOf(address));
      yield* all[0]?.put("failed", "key", "1", 60_000) ?? Effect.void;
      const takes = all.flatMap((it) => [it.take("failed", "key"), it.take("failed", "key")]);
      const taken = yield* Effect.all(takes, { concurrency: "unbounded" });
      assert.lengthOf(
        taken.filter((it) => it !== undefined),
        1,
      );
    }).pipe(Effect.scoped),
  );

  it.live("count the spending of a group in one step, so that every process gets another number", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const all = yield* Effect.forEach([1, 2, 3], () => factsOf(address));
      const spends = Array.from({ length: 30 }, (_, n) => all[n % 3]?.spend("g", { retries: 1, tokens: 10 }, 60_000));
      const told = yield* Effect.all(
        spends.flatMap((it) => (it === undefined ? [] : [it])),
        { concurrency: "unbounded" },
      );
      const numbers = told.map(({ retries }) => retries).toSorted((x, y) => x - y);
      assert.deepStrictEqual(
        numbers,
        Array.from({ length: 30 }, (_, n) => n + 1),
      );
      assert.deepStrictEqual(yield* all[0]?.spend("g", { retries: -1, tokens: 0 }, 0) ?? Effect.void, {
        retries: 29,
        tokens: 300,
      });
      // Its time has expired, so it starts again.
      assert.deepStrictEqual(yield* all[1]?.spend("g", { retries: 1, tokens: 1 }, 60_000) ?? Effect.void, {
        retries: 1,
        tokens: 1,
      });
    }).pipe(Effect.scoped),
  );

  it.live("a repeated request counts what a group has spent once if the server's first reply was lost", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* Databases.empty);
      const facts = yield* factsOf(proxy.address);
      yield* facts.spend("g", { retries: 1, tokens: 10 }, 60_000);
      const held = proxy.hold(/counted AS/, "reply");
      const spent = yield* Effect.forkChild(facts.spend("g", { retries: 1, tokens: 5 }, 60_000));
      yield* held.reached;
      proxy.cut();
      assert.deepStrictEqual(yield* Fiber.join(spent), { retries: 2, tokens: 15 });
      const said = proxy.statements.filter((it) => it.includes("counted AS")).length;
      assert.strictEqual(said, 3, "it was said again");
      yield* held.release;
    }).pipe(Effect.scoped),
  );

  it.live(
    "a repeated request returns what was taken to the process that took it if the server's first reply was lost",
    () =>
      Effect.gen(function* () {
        const proxy = yield* StatementProxy.make(yield* Databases.empty);
        const facts = yield* factsOf(proxy.address);
        yield* facts.put("failed", "k", "2 retries", 60_000);
        const put = yield* facts.find("failed", "k");
        const held = proxy.hold(/DELETE FROM .*RETURNING/s, "reply");
        const took = yield* Effect.forkChild(facts.take("failed", "k"));
        yield* held.reached;
        proxy.cut();
        const taken = yield* Fiber.join(took);
        yield* held.release;
        const whatOf = (fact = taken) => [fact?.key, fact?.value, fact?.node, fact?.stamp];
        assert.deepStrictEqual(whatOf(), whatOf(put));
        assert.strictEqual(taken?.value, "2 retries");
        assert.isAtMost(taken?.leftMs ?? Number.NaN, put?.leftMs ?? Number.NaN);
        assert.isAtLeast(taken?.ageMs ?? Number.NaN, put?.ageMs ?? Number.NaN);
        assert.isUndefined(yield* facts.take("failed", "k"), "it is taken once");
        assert.isUndefined(yield* facts.find("failed", "k"));
      }).pipe(Effect.scoped),
  );

  it.live("include a bucket of which no two of them draw the same token, and which the server's clock refills", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const all = yield* Effect.forEach([1, 2, 3], () => Databases.open({ address }));
      const size = { max: 30, perSecond: 0 };
      const draws = Array.from(
        { length: 40 },
        (_, n) => all[n % all.length]?.shared?.draw("p", 1, size) ?? Effect.never,
      );
      const left = yield* Effect.all(draws, { concurrency: "unbounded" });
      assert.deepStrictEqual(
        left.sort((a, b) => b - a),
        Array.from({ length: 40 }, (_, n) => 29 - n),
      );
      const [first] = all;
      const draw = (count: number, perSecond: number) =>
        first?.shared?.draw("p", count, { max: 30, perSecond }) ?? Effect.never;
      assert.strictEqual(yield* draw(-1, 0), -9);
      assert.strictEqual(yield* draw(-100, 0), 91, "what is put back is there for the next one");
      assert.strictEqual(yield* draw(1, 0), 29, "which finds no more than it holds");
      assert.strictEqual(yield* draw(31, 1e9), -1, "it is full again in a moment");
      assert.strictEqual(yield* draw(1, 1e9), 29);
    }).pipe(Effect.scoped),
  );

  it.live("name the process that drives a run, and none after its end or without an owner", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const [one, other] = [yield* Databases.open({ address }), yield* Databases.open({ address })];
      const { cancels } = other;
      if (cancels === undefined) return assert.fail("a server has cancels");
      yield* one.write("r", [E.begun("r"), E.attempt(1)]);
      assert.strictEqual(yield* cancels.findOwner("r"), `${process.pid}@${hostname()}`);
      assert.isUndefined(yield* cancels.findOwner("another"));
      yield* one.release("r");
      assert.isUndefined(yield* cancels.findOwner("r"));
      yield* other.claim("r");
      yield* other.write("r", [E.ended()]);
      assert.isUndefined(yield* cancels.findOwner("r"));
    }).pipe(Effect.scoped),
  );

  it.live("reach the others as they are put, and an answer as it is given", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const driver = yield* Databases.open({ address });
      const b = yield* Databases.open({ address });
      const [here, there] = [driver.shared, b.shared];
      if (here === undefined || there === undefined) return assert.fail("a server is shared");
      yield* listening(here);
      const cooled = yield* hears(here, isCooldown);
      yield* there.put("cooldown", "scope", "{}", 60_000);
      yield* cooled;
      assert.deepStrictEqual(
        (yield* here.all("cooldown")).map(({ key }) => key),
        ["scope"],
      );
      const answered = yield* hears(here, (word) => word._tag === "Answered" && word.run_id === "r");
      yield* driver.write("r", [E.begun("r"), E.attempt(1), E.opened("r", 1), E.asked("r", 1)]);
      yield* b.answer({ run_id: "r", revision: 1, choice: "stop", by: "person" });
      yield* answered;
    }).pipe(Effect.scoped),
  );

  it.live("send a notification only for kinds that other processes wait for", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const [a, b] = [yield* factsOf(address), yield* factsOf(address)];
      yield* listening(a);
      const words: Array<Word> = [];
      a.on((word) => void words.push(word));
      yield* b.put("failed", "key", "1", 60_000);
      yield* b.put("told", "key", "1", 60_000);
      const cooled = yield* hears(a, isCooldown);
      yield* b.put("cooldown", "scope", "{}", 60_000);
      yield* cooled;
      assert.deepStrictEqual(words, [{ _tag: "Put", kind: "cooldown" }]);
    }).pipe(Effect.scoped),
  );

  it.live("are polled at once when the lost connection of the listener is back", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const a = yield* factsOf(address);
      yield* listening(a);
      const admin = yield* Databases.client(address, "operator");
      const looked = yield* hears(a, (word) => word._tag === "Look");
      const store = createHash("sha256")
        .update(`${Redacted.value(a.secret)} channel`)
        .digest("hex")
        .slice(0, 12);
      const ended = yield* admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE query = ${`LISTEN "stream_recovery_words_${store}"`}`;
      assert.lengthOf(ended, 1);
      yield* looked;
      yield* listening(a);
      const cooled = yield* hears(a, isCooldown);
      yield* (yield* factsOf(address)).put("cooldown", "scope", "{}", 60_000);
      yield* cooled;
    }).pipe(Effect.scoped),
  );

  it.live("of one store are not sent to a store of another schema", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* Databases.empty, yield* Databases.empty];
      const [a, b] = [yield* factsOf(one), yield* factsOf(other)];
      assert.notStrictEqual(Redacted.value(a.secret), Redacted.value(b.secret));
      yield* listening(a);
      const words: Array<Word> = [];
      a.on((word) => void words.push(word));
      yield* b.put("cooldown", "elsewhere", "{}", 60_000);
      // Notifications arrive in the order of their commits: another store's would have arrived before this one.
      const cancelled = yield* hears(a, (word) => word._tag === "Put" && word.kind === "cancel");
      yield* a.put("cancel", "run", "{}", 60_000);
      yield* cancelled;
      assert.deepStrictEqual(words, [{ _tag: "Put", kind: "cancel" }]);
      assert.lengthOf(yield* a.all("cooldown"), 0);
    }).pipe(Effect.scoped),
  );

  it.live("cannot be received while the listener has no connection, and the process says so", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const proxy = yield* StatementProxy.make(address);
      const gate = proxy.hold(/^LISTEN/);
      const a = yield* factsOf(proxy.address);
      yield* gate.reached;
      assert.isFalse(a.hasNotifications());
      yield* gate.release;
      yield* listening(a);
    }).pipe(Effect.scoped),
  );
});
