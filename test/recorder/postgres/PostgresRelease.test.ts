/**
 * Runs that a process releases and claims again at once: a sweep and a stream of one process want the same run, and the server's reply
 * to one arrives after that to the other.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Result } from "effect";
import { polled } from "../../Polling.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/** A lease short enough to wait for its end, in milliseconds. */
const leaseMs = 1_500;

const givingBack = /SET owner = NULL/;
const parking = /SET version = r\.version \+ 1, owner = NULLIF/;
const beat = /SET beats = beats \+ 1/;

/** A run of a dead process, and two that may drive it. */
const two = Effect.gen(function* () {
  const address = yield* Databases.empty;
  yield* Effect.scoped(
    Effect.flatMap(Databases.open({ address }), (dead) => dead.write("r", [E.begun("r"), E.attempt(1)])),
  );
  const proxy = yield* StatementProxy.make(address);
  const recorder = yield* Databases.open({ address: proxy.address, leaseMs });
  return { proxy, recorder, other: yield* Databases.open({ address, leaseMs }) };
});

/** Counts heartbeats from now on. */
const beating = (proxy: StatementProxy.StatementProxy) => {
  const from = proxy.statements.length;
  return () => proxy.statements.slice(from).filter((sql) => beat.test(sql)).length;
};

/** Waits for a heartbeat and its commit, since the next commit may belong to another write. */
const aBeat = (proxy: StatementProxy.StatementProxy) => {
  const from = proxy.statements.length;
  const isOver = () => {
    const since = proxy.statements.slice(from);
    return (
      since.slice(since.findIndex((sql) => beat.test(sql))).includes("COMMIT") && since.some((sql) => beat.test(sql))
    );
  };
  return polled(Effect.sync(() => (isOver() ? true : undefined)));
};

/** Claims the run repeatedly until that succeeds or the first process has sent `most` heartbeats. Returns true if it succeeded. */
const claimed = (recorder: Recorder, proxy: StatementProxy.StatementProxy, most: number) => {
  const beats = beating(proxy);
  const tried = Effect.map(Effect.result(recorder.claim("r")), (it) =>
    Result.isSuccess(it) ? true : beats() >= most ? false : undefined,
  );
  return polled(tried);
};

/** Checks that the first process keeps the run: no other process gets it in two leases without a write, and it can still be written. */
const stays = Effect.fnUntraced(function* ({ other, proxy, recorder }: Effect.Success<typeof two>) {
  assert.isFalse(yield* claimed(other, proxy, 6));
  yield* recorder.write("r", [E.attempt(2)]);
});

describe("a run that a process releases and claims again", () => {
  it.live("is not taken from it by a heartbeat that releases it as well", () =>
    Effect.gen(function* () {
      const run = yield* two;
      const { proxy, recorder } = run;
      yield* recorder.claim("r");
      const held = proxy.hold(givingBack);
      const given = yield* Effect.forkChild(recorder.release("r"));
      yield* held.reached;
      const early = yield* claimed(recorder, proxy, 2);
      yield* held.release;
      yield* Fiber.join(given);
      if (!early) yield* recorder.claim("r");
      yield* stays(run);
    }).pipe(Effect.scoped),
  );

  it.live("stays its own if it learns later that the run was released", () =>
    Effect.gen(function* () {
      const run = yield* two;
      const { proxy, recorder } = run;
      yield* recorder.claim("r");
      yield* aBeat(proxy);
      const held = proxy.hold(givingBack);
      const given = yield* Effect.forkChild(recorder.release("r"));
      yield* held.reached;
      const told = proxy.hold(/^COMMIT/, "reply");
      yield* held.release;
      yield* told.reached;
      const early = Result.isSuccess(yield* Effect.result(recorder.claim("r")));
      yield* told.release;
      yield* Fiber.join(given);
      if (!early) yield* recorder.claim("r");
      yield* stays(run);
    }).pipe(Effect.scoped),
  );

  it.live("stays its own if it learns later that the run was parked, too", () =>
    Effect.gen(function* () {
      const run = yield* two;
      const { proxy, recorder } = run;
      yield* recorder.claim("r");
      yield* aBeat(proxy);
      const held = proxy.hold(parking);
      const parked = yield* Effect.forkChild(
        recorder.write("r", [E.opened("r", 1), E.asked("r", 1), E.parked("question")]),
      );
      yield* held.reached;
      const told = proxy.hold(/^COMMIT/, "reply");
      yield* held.release;
      yield* told.reached;
      yield* recorder.claim("r");
      yield* told.release;
      yield* Fiber.join(parked);
      yield* stays(run);
    }).pipe(Effect.scoped),
  );

  it.live("is not taken from it if its release succeeded and seemed to have failed", () =>
    Effect.gen(function* () {
      const run = yield* two;
      const { proxy, recorder } = run;
      yield* recorder.claim("r");
      yield* aBeat(proxy);
      const held = proxy.hold(givingBack);
      const given = yield* Effect.forkChild(recorder.release("r"));
      yield* held.reached;
      proxy.breaks = "for_good";
      yield* held.release;
      yield* Fiber.join(given);
      // A heartbeat repeats it.
      const again = proxy.hold(givingBack);
      proxy.isDown = false;
      yield* again.reached;
      const early = Result.isSuccess(yield* Effect.result(recorder.claim("r")));
      yield* again.release;
      assert.isTrue(early || (yield* claimed(recorder, proxy, Number.POSITIVE_INFINITY)));
      yield* stays(run);
    }).pipe(Effect.scoped),
  );
});
