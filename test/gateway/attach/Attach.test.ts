import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { bodies, protocols } from "../GatewayCases.ts";
import { again, ask, attach, eventsOf, stage, whole } from "./AttachCases.ts";

describe("A client that comes back", () => {
  for (const protocol of protocols) {
    const events = eventsOf(protocol);
    const all = Buffer.concat(events);

    it.live(`attaches at every event of ${protocol}: one request at the provider, and every byte of it`, () =>
      Effect.gen(function* () {
        for (let at = 0; at <= events.length; at += 1) {
          const it = yield* stage(events);
          const first = ask(it, protocol);
          const provider = yield* it.nth(0);
          if (at > 0) provider.send(at);
          if (at === events.length) provider.finish();
          first.leave();
          yield* Effect.promise(() => first.over);
          const second = ask(it, protocol, again);
          provider.finish();
          const got = yield* whole(second);
          assert.isFalse(got.broken, `event ${at}`);
          assert.isTrue(got.body.equals(all), `event ${at}: ${got.body}`);
          assert.lengthOf(it.asked, 1, `event ${at}`);
          assert.strictEqual((yield* it.until((runs) => runs[0]?.end))?.state, "completed", `event ${at}`);
          assert.lengthOf(yield* it.runs, 1);
        }
      }).pipe(Effect.scoped),
    );

    it.live(`attaches late: the run of ${protocol} has ended without a reader, and its response is whole`, () =>
      Effect.gen(function* () {
        const it = yield* stage(events);
        const first = ask(it, protocol);
        (yield* it.nth(0)).send(3);
        yield* Effect.promise(() => first.head);
        first.leave();
        const run = yield* it.lingers("left");
        (yield* it.nth(0)).finish();
        yield* it.lingers("ended");
        const got = yield* whole(ask(it, protocol, again));
        assert.isTrue(got.body.equals(all));
        assert.strictEqual(got.head?.headers["x-recovery-run"], run);
        assert.strictEqual(got.head?.headers["x-recovery-attached"], "0");
        assert.lengthOf(it.asked, 1);
      }),
    );
  }

  const events = eventsOf("openai-chat");
  const all = Buffer.concat(events);

  it.live("is told by the head that it may, and for how long", () =>
    Effect.gen(function* () {
      const it = yield* stage(events, { lingerMs: 0 });
      const headers = { "x-recovery-linger": "1234" };
      const one = ask(it, "openai-chat", headers);
      (yield* it.nth(0)).finish();
      const got = yield* whole(one);
      assert.strictEqual(got.head?.headers["x-recovery-linger"], "1234");
      assert.isDefined(got.head?.headers["x-recovery-run"]);
      const plain = ask(it, "openai-chat");
      (yield* it.nth(1)).finish();
      assert.isUndefined((yield* whole(plain)).head?.headers["x-recovery-linger"]);
      for (const name of ["x-recovery-linger", "x-recovery-attach"])
        assert.isUndefined(it.asked[0]?.response.req.headers[name], "no upstream gets it");
    }),
  );

  it.live("is refused by a plain 400 for a word that is none, and nothing is sent", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      for (const headers of [{ "x-recovery-linger": "soon" }, { "x-recovery-attach": "maybe" }]) {
        const got = yield* whole(ask(it, "openai-chat", headers));
        assert.strictEqual(got.head?.statusCode, 400);
      }
      assert.lengthOf(it.asked, 0);
    }),
  );

  it.live("attaches a second time too, and its repeat however its JSON is spelt", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const first = ask(it, "openai-chat");
      const provider = yield* it.nth(0);
      provider.send(4);
      first.leave();
      yield* it.lingers("left");
      const second = ask(it, "openai-chat", again, '{ "stream": true, "messages": [], "model": "m" }');
      yield* it.lingers("read");
      second.leave();
      yield* it.lingers("left");
      provider.finish();
      const got = yield* whole(ask(it, "openai-chat", { "x-stainless-retry-count": "2" }));
      assert.isTrue(got.body.equals(all));
      assert.lengthOf(it.asked, 1);
    }),
  );

  it.live("has a run of its own where anything differs that makes another request", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const key = { authorization: "Bearer sk-one" };
      const first = ask(it, "openai-chat", key);
      (yield* it.nth(0)).send(3);
      first.leave();
      yield* it.lingers("left");
      const others = [
        ask(it, "openai-chat", { ...again, authorization: "Bearer sk-two" }),
        ask(it, "openai-chat", again),
        ask(it, "openai-chat", { ...again, ...key }, JSON.stringify({ ...bodies["openai-chat"], n: 1 })),
        ask(it, "openai-chat", { ...again, ...key, "x-recovery-attach": "0" }),
      ];
      for (const [index, other] of others.entries()) {
        (yield* it.nth(index + 1)).finish();
        assert.isTrue((yield* whole(other)).body.equals(all));
      }
      assert.lengthOf(it.asked, 5);
    }),
  );

  it.live("stays apart beside another one of the same body that is being read", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const one = ask(it, "openai-chat");
      (yield* it.nth(0)).send(3);
      yield* Effect.promise(() => one.head);
      const other = ask(it, "openai-chat", again);
      (yield* it.nth(1)).finish();
      assert.isTrue((yield* whole(other)).body.equals(all));
      (yield* it.nth(0)).finish();
      assert.isTrue((yield* whole(one)).body.equals(all));
      assert.lengthOf(it.asked, 2);
    }),
  );

  it.live("attaches without a word only while the run goes on without a reader: programs sample", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const first = ask(it, "openai-chat");
      const provider = yield* it.nth(0);
      provider.send(3);
      first.leave();
      yield* it.lingers("left");
      const second = ask(it, "openai-chat");
      yield* it.lingers("read");
      provider.finish();
      assert.isTrue((yield* whole(second)).body.equals(all));
      yield* it.lingers("ended");
      const third = ask(it, "openai-chat");
      (yield* it.nth(1)).finish();
      assert.isTrue((yield* whole(third)).body.equals(all));
      assert.lengthOf(it.asked, 2);
    }),
  );

  it.live("comes too late: the run was cancelled in its user's name when its time was over", () =>
    Effect.gen(function* () {
      const it = yield* stage(events, { lingerMs: 30 });
      const first = ask(it, "openai-chat");
      (yield* it.nth(0)).send(3);
      first.leave();
      assert.strictEqual(yield* it.until((runs) => runs[0]?.end?.reason), "user_cancelled");
      const late = ask(it, "openai-chat", again);
      (yield* it.nth(1)).finish();
      assert.isTrue((yield* whole(late)).body.equals(all));
      assert.lengthOf(it.asked, 2);
      assert.isTrue((yield* it.nth(0)).isClosed());
    }),
  );

  it.live("gets nothing of a run that was cancelled: a DELETE signs it at once", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const first = ask(it, "openai-chat");
      (yield* it.nth(0)).send(3);
      first.leave();
      const run = yield* it.lingers("left");
      const deleted = yield* whole(attach(it, run, {}, "DELETE"));
      assert.strictEqual(deleted.head?.statusCode, 204);
      assert.strictEqual(yield* it.until((runs) => runs[0]?.end?.reason), "user_cancelled");
      assert.strictEqual((yield* whole(attach(it, run))).head?.statusCode, 404);
      const second = ask(it, "openai-chat", again);
      (yield* it.nth(1)).finish();
      assert.isTrue((yield* whole(second)).body.equals(all));
      assert.lengthOf(it.asked, 2);
    }),
  );
});
