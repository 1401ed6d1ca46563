/** How a run that lingers serves one client after the other, how its time is kept, and what it keeps behind its end. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert, describe, it } from "@effect/vitest";
import { Clock, Deferred, Effect, Exit, Fiber, Scope } from "effect";
import { TestClock } from "effect/testing";
import { Alarms } from "../../../src/adapters/relay/Alarms.ts";
import type { KeyedRequest } from "../../../src/gateway/attach/AttachKey.ts";
import { Attachments, unkeyedBytesMax } from "../../../src/gateway/attach/Attachments.ts";
import { type AttachWish, attachWishOf } from "../../../src/gateway/attach/AttachWish.ts";
import type { LingeringRun } from "../../../src/gateway/attach/LingeringRun.ts";
import type { Siblings } from "../../../src/gateway/attach/Siblings.ts";
import { Access } from "../../../src/gateway/log/AccessRecord.ts";
import type { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";

const head = { status: 200, statusText: "OK", headers: [] };
const bytes = (text: string) => new TextEncoder().encode(text);

/** A client whose socket does as it is told. */
class FakeClient {
  got = "";
  ended: "end" | "break" | undefined;
  gone: () => void = () => undefined;
  /** It cannot be written to. */
  isBroken = false;
  #drained: Deferred.Deferred<void> | undefined;
  readonly #onHead: () => void;

  constructor(onHead: () => void = () => undefined) {
    this.#onHead = onHead;
  }

  get isFull(): boolean {
    return this.#drained !== undefined;
  }

  fills(): void {
    this.#drained = Deferred.makeUnsafe();
  }

  drains(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    if (drained !== undefined) Deferred.doneUnsafe(drained, Effect.void);
  }

  get response(): ClientResponse {
    const ended = (how: "end" | "break") =>
      Effect.sync(() => {
        this.ended ??= how;
      });
    const told: Partial<ClientResponse> = {
      access: new Access(() => 0),
      isSilent: Effect.succeed(false),
      whenGone: (act) => {
        this.gone = act;
      },
      isReady: () => !this.isFull,
      head: this.#onHead,
      writeNow: (chunks) => this.#gets(chunks),
      passOn: (chunks) => this.#gets(chunks),
      drained: Effect.suspend(() => (this.#drained === undefined ? Effect.void : Deferred.await(this.#drained))),
      end: ended("end"),
      break: ended("break"),
      settle: Effect.suspend(() => (this.ended === undefined ? ended("break") : Effect.void)),
    };
    // A lingering run asks its client for nothing else.
    return told as ClientResponse;
  }

  #gets(chunks: ReadonlyArray<Uint8Array>): void {
    assert.isFalse(this.isFull, "it was written to while it must drain");
    if (this.isBroken) throw new Error("no such chunk");
    for (const chunk of chunks) this.got += new TextDecoder().decode(chunk);
  }
}

const lingerMs = 1_000;
const request = { body: "{}", headers: [], method: "POST", tenant: undefined, upstream: "openai", target: "/v1/x" };

/** A run that has begun, and the gateway's runs. */
const begunBeside = Effect.fnUntraced(function* (siblings: Siblings | undefined) {
  const attachments = yield* Attachments.make({ meter: { changed: () => undefined }, closing: Effect.never, siblings });
  const wish = attachWishOf([], { lingerMs, lingerMaxMs: lingerMs }, {});
  if ("reason" in wish) return assert.fail(wish.message);
  const key = yield* attachments.keyOf(request);
  const run = attachments.begin({ request, wish, key, refuse: () => Effect.void });
  attachments.setRunId(run, "gw_1");
  return { attachments, key, run, wish };
});

const begun = begunBeside(undefined);

/** Siblings that have no run, and what they are told. */
const siblingsThat = (asked: () => void) => {
  const told: Array<string> = [];
  const siblings: Pick<Siblings, "mightAnswer" | "serveRepeat"> & {
    readonly held: Pick<Siblings["held"], "add" | "recordOver">;
  } = {
    mightAnswer: () => true,
    serveRepeat: () => Effect.as(Effect.sync(asked), false),
    held: { add: (key) => told.push(key), recordOver: () => undefined },
  };
  // A lingering run asks its siblings for nothing else.
  return { told, siblings: siblings as Siblings };
};

setFlagsFromString("--expose-gc");
const collect: unknown = runInNewContext("gc");

/** A run whose response was whole; its requests are reachable through what would refuse it, and through what would stop it. */
const wholeOf = (attachments: Attachments, wish: AttachWish, key: string) => {
  const [refused, stopped] = [{ ...request }, { ...request }];
  const refuse = () => Effect.sync(() => void refused.body);
  const run = attachments.begin({ request, wish, key, refuse });
  run.setStopAction(() => void stopped.body);
  run.setHead(head, true);
  run.append([bytes("whole")]);
  run.complete();
  return [new WeakRef(refused), new WeakRef(stopped)];
};

/** Begins a run without a key, whose response is the body of its request, and ends it. Then its client leaves. */
const endedOf = (
  attachments: Attachments,
  wish: AttachWish,
  asked: Omit<KeyedRequest, "body"> & { readonly body: string },
): void => {
  const run = attachments.begin({ request: asked, wish, key: undefined, refuse: () => Effect.void });
  const client = new FakeClient();
  run.take(client.response, 0);
  run.setHead(head, true);
  run.append([bytes(asked.body.slice(0, 64))]);
  run.complete();
  attachments.onEnd(run);
  client.gone();
};

/** Serves a client from a byte on. */
const serving = (run: LingeringRun, client: FakeClient, from = 0) =>
  Effect.forkChild(run.serve(run.take(client.response, from)), { startImmediately: true });

describe("A client of a run that lingers", () => {
  it.effect("whose socket must drain is written to once it has, and in the step in which something comes again", () =>
    Effect.gen(function* () {
      const { run } = yield* begun;
      const client = new FakeClient();
      const served = yield* serving(run, client);
      run.setHead(head, true);
      run.append([bytes("a"), bytes("b")]);
      assert.strictEqual(client.got, "ab");
      client.fills();
      let asked = 0;
      const more = yield* Effect.forkChild(
        run.waitUntil(() => {
          asked += 1;
          return run.shouldProduce ? true : undefined;
        }),
        { startImmediately: true },
      );
      run.append([bytes("c")]);
      run.append([bytes("d")]);
      assert.strictEqual(client.got, "ab");
      assert.isFalse(run.shouldProduce);
      client.drains();
      assert.strictEqual(client.got, "abcd");
      assert.isTrue(yield* Fiber.join(more));
      run.append([bytes("e")]);
      assert.strictEqual(client.got, "abcde");
      assert.isAtMost(asked, 4, "bytes that reach a client change nothing for those who wait");
      run.complete();
      yield* Fiber.join(served);
      assert.strictEqual(client.ended, "end");
    }),
  );

  it.effect("that has lost its place is broken at once, whatever it waits for", () =>
    Effect.gen(function* () {
      const { run } = yield* begun;
      const [first, second] = [new FakeClient(), new FakeClient()];
      const served = yield* serving(run, first);
      run.setHead(head, true);
      first.fills();
      run.append([bytes("a")]);
      yield* serving(run, second);
      yield* Fiber.join(served);
      assert.strictEqual(first.ended, "break");
      run.append([bytes("b")]);
      assert.deepStrictEqual([first.got, second.got], ["", "ab"]);
    }),
  );

  it.effect("that cannot be served has the defect to itself: the run goes on for another one", () =>
    Effect.gen(function* () {
      const { run } = yield* begun;
      const broken = new FakeClient(() => {
        throw new Error("no such header");
      });
      const served = yield* serving(run, broken);
      run.setHead(head, true);
      assert.isTrue(Exit.isFailure(yield* Fiber.await(served)));
      run.append([bytes("a")]);
      const other = new FakeClient();
      yield* serving(run, other);
      run.complete();
      assert.deepStrictEqual([other.got, other.ended], ["a", "end"]);
    }),
  );

  it.effect("that cannot be written to has the defect to itself, in whatever step it shows", () =>
    Effect.gen(function* () {
      const { run } = yield* begun;
      const broken = new FakeClient();
      const served = yield* serving(run, broken);
      run.setHead(head, true);
      run.append([bytes("a")]);
      broken.isBroken = true;
      run.append([bytes("b")]);
      assert.isTrue(Exit.isFailure(yield* Fiber.await(served)));
      assert.isTrue(run.shouldProduce);
      const other = new FakeClient();
      yield* serving(run, other);
      run.complete();
      assert.deepStrictEqual([other.got, other.ended], ["ab", "end"]);
    }),
  );

  it.effect("serves the repeat of a client that left during a query of the siblings from the existing run", () =>
    Effect.gen(function* () {
      const first = new FakeClient();
      const { siblings } = siblingsThat(() => first.gone());
      const { attachments, key, run, wish } = yield* begunBeside(siblings);
      yield* serving(run, first);
      run.setHead(head, true);
      run.append([bytes("a")]);
      const second = new FakeClient();
      const repeated = attachments.serveRepeat(key, { ...wish, repeats: true }, second.response);
      const answered = yield* Effect.forkChild(repeated, { startImmediately: true });
      assert.strictEqual(second.got, "a");
      run.complete();
      assert.isTrue(yield* Fiber.join(answered));
      assert.strictEqual(second.ended, "end");
    }),
  );

  it.effect("is told of to the siblings where it leaves before the end, and not where it has everything", () =>
    Effect.gen(function* () {
      const { siblings, told } = siblingsThat(() => undefined);
      const { run } = yield* begunBeside(siblings);
      const client = new FakeClient();
      const served = yield* serving(run, client);
      run.setHead(head, true);
      run.append([bytes("a")]);
      run.complete();
      yield* Fiber.join(served);
      assert.deepStrictEqual([client.ended, told], ["end", []]);
      const { run: other } = yield* begunBeside(siblings);
      const leaving = new FakeClient();
      yield* serving(other, leaving);
      leaving.gone();
      assert.lengthOf(told, 1);
    }),
  );

  it.effect("comes back in time: its run has no end but its own, and its time begins anew when it leaves", () =>
    Effect.gen(function* () {
      const { attachments, run } = yield* begun;
      const [first, second] = [new FakeClient(), new FakeClient()];
      yield* serving(run, first);
      run.setHead(head, true);
      first.gone();
      yield* TestClock.adjust(lingerMs - 1);
      yield* serving(run, second);
      assert.strictEqual(Alarms.of(yield* Clock.Clock).size, 0, "nothing is due while somebody reads");
      yield* TestClock.adjust(5 * lingerMs);
      assert.isUndefined(run.stop);
      second.gone();
      yield* TestClock.adjust(lingerMs - 1);
      assert.isUndefined(run.stop);
      assert.lengthOf(attachments.list(), 1);
      yield* TestClock.adjust(1);
      assert.strictEqual(run.stop, "expired");
      assert.lengthOf(attachments.list(), 0);
    }),
  );

  it.effect("cancels every timer of a run that is evicted", () =>
    Effect.gen(function* () {
      const alarms = Alarms.of(yield* Clock.Clock);
      const gateway = yield* Scope.make();
      const { attachments, run } = yield* Scope.provide(begun, gateway);
      const other = attachments.begin({
        ...{ request, key: "another" },
        ...{ wish: { lingerMs, repeats: false, asked: false, forbidden: false, idempotencyKey: undefined } },
        refuse: () => Effect.void,
      });
      for (const lingering of [run, other]) {
        const client = new FakeClient();
        yield* serving(lingering, client);
        client.gone();
      }
      assert.strictEqual(alarms.size, 2);
      attachments.cancel(run);
      assert.strictEqual(alarms.size, 1);
      yield* Scope.close(gateway, Exit.void);
      assert.strictEqual(alarms.size, 0);
    }),
  );

  it.effect("may be the first of its request: its key is computed once its client has left", () =>
    Effect.gen(function* () {
      const { attachments, key: other, run: before, wish } = yield* begun;
      const asked = { ...request, body: '{"model":"m"}' };
      const key = yield* attachments.keyOf(asked);
      assert.isTrue(attachments.mayKeyLater(asked, wish), "its reader is there");
      const run = attachments.begin({ request: asked, wish, key: undefined, refuse: () => Effect.void });
      const client = new FakeClient();
      yield* serving(run, client);
      attachments.setRunId(run, "gw_2");
      run.setHead(head, true);
      run.append([bytes("first, ")]);
      assert.notStrictEqual(key, other);
      assert.strictEqual(attachments.find("gw_2", attachments.holderOf(asked)), run);
      assert.isFalse(attachments.hasRequest(key));
      client.gone();
      assert.isTrue(attachments.hasRequest(key));
      assert.isFalse(attachments.mayKeyLater(asked, wish), "a run goes on without a reader");
      const again = new FakeClient();
      yield* Effect.forkChild(attachments.serveRepeat(key, wish, again.response), { startImmediately: true });
      assert.strictEqual(again.got, "first, ");
      assert.isTrue(attachments.mayKeyLater(asked, wish));
      assert.isFalse(attachments.mayKeyLater({ ...asked, body: bytes("x".repeat(300_000)) }, wish), "in many turns");
      assert.isFalse(attachments.mayKeyLater(asked, { ...wish, repeats: true }));
      assert.strictEqual(before.client, undefined);
    }).pipe(Effect.scoped),
  );

  it.effect("finds the whole response of a run whose key was never needed before, among many", () =>
    Effect.gen(function* () {
      const { attachments, wish } = yield* begun;
      const asked = Array.from({ length: 20 }, (_, at) => ({ ...request, body: `{"n":${at}}` }));
      for (const each of asked) endedOf(attachments, wish, each);
      const key = yield* attachments.keyOf({ ...request, body: '{ "n": 17 }' });
      assert.isFalse(attachments.hasRequest(key));
      const client = new FakeClient();
      assert.isTrue(yield* attachments.serveRepeat(key, { ...wish, repeats: true }, client.response));
      assert.strictEqual(client.got, '{"n":17}');
    }).pipe(Effect.scoped),
  );

  it.effect("has no key behind a response that was not whole, because no repeat gets it", () =>
    Effect.gen(function* () {
      const { attachments, run: other, wish } = yield* begun;
      attachments.cancel(other);
      const asked = { ...request, body: '{"model":"m"}' };
      const run = attachments.begin({ request: asked, wish, key: undefined, refuse: () => Effect.void });
      run.end("broken");
      attachments.onEnd(run);
      const key = yield* attachments.keyOf(asked);
      assert.isFalse(yield* attachments.serveRepeat(key, { ...wish, repeats: true }, new FakeClient().response));
      assert.isFalse(attachments.hasRequest(key));
    }).pipe(Effect.scoped),
  );

  it.effect("keeps the requests of ended runs up to a limit, and computes the keys of the oldest beyond it (L11)", () =>
    Effect.gen(function* () {
      const { attachments, wish } = yield* begun;
      const body = "x".repeat(128 * 1024);
      const headers = [["x-long", "y".repeat(64 * 1024)]] as const;
      const asked = (at: number) => ({ ...request, headers, body: JSON.stringify([at, body]) });
      const fits = Math.floor(unkeyedBytesMax / (193 * 1024));
      for (let at = 0; at < fits; at += 1) endedOf(attachments, wish, asked(at));
      const oldest = yield* attachments.keyOf(asked(0));
      assert.isFalse(attachments.hasRequest(oldest));
      for (let at = fits; at < fits + 8; at += 1) endedOf(attachments, wish, asked(at));
      assert.isTrue(attachments.hasRequest(oldest));
      assert.isFalse(attachments.hasRequest(yield* attachments.keyOf(asked(fits + 7))));
    }).pipe(Effect.scoped),
  );

  it.effect("is not found once it was cancelled, although its key was never computed", () =>
    Effect.gen(function* () {
      const { attachments, wish } = yield* begun;
      const asked = { ...request, body: '{"model":"m"}' };
      const run = attachments.begin({ request: asked, wish, key: undefined, refuse: () => Effect.void });
      attachments.setRunId(run, "gw_2");
      attachments.cancel(run);
      const key = yield* attachments.keyOf(asked);
      assert.isFalse(yield* attachments.serveRepeat(key, { ...wish, repeats: true }, new FakeClient().response));
      assert.isFalse(attachments.hasRequest(key));
      assert.strictEqual(attachments.find("gw_2", attachments.holderOf(asked)), undefined);
    }).pipe(Effect.scoped),
  );

  it.live("has nothing of the request kept for it behind the end of its run (L11)", () =>
    Effect.gen(function* () {
      const { attachments, key, wish } = yield* begun;
      // The newest may still be on this test's own stack.
      const requests = Array.from({ length: 5 }, () => wholeOf(attachments, wish, key)).slice(0, 3);
      const kept = () => requests.flat().filter((it) => it.deref() !== undefined).length;
      for (let round = 0; round < 10 && kept() > 0; round += 1) {
        yield* Effect.promise(() => new Promise((done) => setImmediate(done)));
        if (typeof collect === "function") collect();
      }
      assert.strictEqual(kept(), 0);
      assert.strictEqual(attachments.list().length, 1);
    }).pipe(Effect.scoped),
  );
});
