/**
 * The lease of one process with several transactions in flight at once: a file has one writer, a server has many.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { polled } from "../../Polling.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const making = /^INSERT INTO \S*leases/;

/** A run that another process has parked and that may be claimed. */
const parked = Effect.fnUntraced(function* (recorder: Recorder, id: string) {
  yield* recorder.write(id, [E.begun(id), E.opened(id, 1), E.asked(id, 1), E.parked("question")]);
  yield* recorder.answer({ run_id: id, revision: 1, choice: "retry", by: "person" });
});

const two = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const proxy = yield* StatementProxy.make(address);
  const other = yield* Databases.open({ address, process: "other" });
  yield* parked(other, "old");
  return { address, proxy, recorder: yield* Databases.open({ address: proxy.address, process: "mine" }) };
});

describe("The lease of a process over one PostgreSQL", () => {
  it.live("is a single one, even if two of its first transactions make it at once", () =>
    Effect.gen(function* () {
      const { address, proxy, recorder } = yield* two;
      const held = proxy.hold(/^COMMIT/);
      const from = proxy.statements.length;
      const written = yield* Effect.forkChild(recorder.write("new", [E.begun("new")]));
      yield* held.reached;
      const claimed = yield* Effect.forkChild(recorder.claim("old"));
      const makings = () => proxy.statements.slice(from).filter((sql) => making.test(sql)).length;
      yield* polled(Effect.sync(() => (makings() === 2 ? true : undefined)));
      yield* held.release;
      yield* Fiber.join(claimed);
      yield* Fiber.join(written);
      for (const id of ["old", "new"]) yield* recorder.write(id, [E.attempt(1)]);
      const client = yield* Databases.client(address);
      assert.lengthOf(yield* client`SELECT id FROM stream_recovery_leases WHERE id LIKE 'mine.%'`, 1);
    }).pipe(Effect.scoped),
  );

  it.live("is drawn again if it was fenced before its process knows that it has one", () =>
    Effect.gen(function* () {
      const { address, proxy, recorder } = yield* two;
      const client = yield* Databases.client(address);
      const held = proxy.hold(/^COMMIT/, "reply");
      const claimed = yield* Effect.forkChild(recorder.claim("old"));
      yield* held.reached;
      yield* client`UPDATE stream_recovery_leases SET fenced = 1 WHERE id LIKE 'mine.%'`;
      yield* recorder.write("new", [E.begun("new")]);
      yield* held.release;
      yield* Fiber.join(claimed);
      yield* recorder.write("new", [E.attempt(1)]);
      assert.strictEqual((yield* Effect.flip(recorder.write("old", [E.attempt(1)]))).reason, "fenced");
    }).pipe(Effect.scoped),
  );

  it.live("is not replaced by an earlier one whose last commit is reported later", () =>
    Effect.gen(function* () {
      const { address, proxy, recorder } = yield* two;
      yield* recorder.write("first", [E.begun("first")]);
      const client = yield* Databases.client(address);
      const held = proxy.hold(/^COMMIT/, "reply");
      const written = yield* Effect.forkChild(recorder.write("late", [E.begun("late")]));
      yield* held.reached;
      yield* client`UPDATE stream_recovery_leases SET fenced = 1 WHERE id LIKE 'mine.%'`;
      yield* recorder.claim("old");
      yield* held.release;
      yield* Fiber.join(written);
      yield* recorder.write("old", [E.attempt(1)]);
      for (const id of ["first", "late"])
        assert.strictEqual((yield* Effect.flip(recorder.write(id, [E.attempt(1)]))).reason, "fenced", id);
    }).pipe(Effect.scoped),
  );
});
