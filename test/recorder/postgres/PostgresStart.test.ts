/**
 * Counts the round trips to PostgreSQL that a durable run waits for before its first request.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Stream } from "effect";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../../runtime/Scripted.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/** A processor whose recorder talks to its server through a proxy that sees each statement. */
const opened = Effect.gen(function* () {
  const proxy = yield* StatementProxy.make(yield* Databases.empty);
  const recorder = yield* Databases.open({ address: proxy.address });
  const services = yield* S.servicesOver(recorder);
  return { processor: Context.get(services, StreamProcessor), proxy, recorder };
});

describe("a durable run over PostgreSQL", () => {
  it.live("waits for one round trip before its request", () =>
    Effect.gen(function* () {
      const { processor, proxy, recorder } = yield* opened;
      const before: Array<ReadonlyArray<ReadonlyArray<string>>> = [];
      const play = (runId: string) => {
        const from = proxy.trips.length;
        const script = S.scripted([S.start, S.text("a"), S.done]);
        const attempt: typeof script.attempt = (context) => {
          // No run waits for the process's own periodic queries.
          before.push(proxy.trips.slice(from).filter((sent) => !sent.every((sql) => /_facts\b|LISTEN/.test(sql))));
          return script.attempt(context);
        };
        return Stream.runDrain(processor.run(S.options({ attempt }, { runId, transcript: "t" })));
      };
      const ids = Array.from({ length: 21 }, (_, n) => `run-${n}`);
      for (const runId of ids) yield* play(runId);
      // The first run of a process creates its lease. A heartbeat, which no run waits for, falls into the time of a few others.
      const [, ...started] = before;
      const alone = started.filter((trips) => trips.length === 1);
      assert.isAtLeast(alone.length, 15);
      for (const [sent] of alone) {
        assert.lengthOf(sent ?? [], 3);
        assert.match(sent?.[0] ?? "", /^BEGIN ISOLATION LEVEL SERIALIZABLE/);
        assert.match(sent?.[1] ?? "", /INSERT INTO stream_recovery_runs/);
        assert.strictEqual(sent?.[2], "COMMIT");
      }
      for (const runId of ids) assert.strictEqual((yield* recorder.run(runId))?.state, "ended");
    }).pipe(Effect.scoped),
  );

  const began = (id: string): ReadonlyArray<Entry> => {
    const begun = E.begun(id);
    return begun._tag === "RunStarted" ? [{ ...begun, started_by: "first.1" }, E.attempt(1)] : [];
  };

  /** Two processes; a proxy sees the statements of the first, which has its lease. */
  const two = Effect.gen(function* () {
    const address = yield* Databases.empty;
    const proxy = yield* StatementProxy.make(address);
    const recorder = yield* Databases.open({ address: proxy.address, process: "first" });
    const other = yield* Databases.open({ address, process: "second" });
    yield* recorder.write("before", began("before"));
    return { address, other, proxy, recorder };
  });

  it.live("starts under no lease that another process has fenced", () =>
    Effect.gen(function* () {
      const { address, other, recorder } = yield* two;
      yield* recorder.write("a", began("a"));
      yield* other.processEnded?.("first") ?? Effect.void;
      yield* recorder.write("b", began("b"));
      const sql = yield* Databases.client(address);
      const rows = yield* sql<{ readonly run_id: string; readonly fenced: number }>`
        SELECT r.run_id, l.fenced FROM stream_recovery_runs r JOIN stream_recovery_leases l ON l.id = r.owner`;
      assert.deepStrictEqual(
        new Map(rows.map(({ fenced, run_id }) => [run_id, fenced])),
        new Map([
          ["before", 1],
          ["a", 1],
          ["b", 0],
        ]),
      );
    }).pipe(Effect.scoped),
  );

  for (const breaks of ["request", "reply", "undecided"] as const)
    it.live(`is on record once if its start was lost (${breaks})`, () =>
      Effect.gen(function* () {
        const { other, proxy, recorder } = yield* two;
        proxy.breaks = breaks;
        yield* recorder.write("a", began("a"));
        assert.strictEqual(proxy.broken, 1);
        assert.deepStrictEqual(yield* record(other, "a"), E.folded(began("a")));
        yield* recorder.write("a", [E.ended()]);
        assert.strictEqual((yield* record(other, "a")).state, "ended");
      }).pipe(Effect.scoped),
    );

  it.live("is refused if its id is on record, and does not affect another run that starts at the same time", () =>
    Effect.gen(function* () {
      const { other, recorder } = yield* two;
      yield* other.write("theirs", [E.begun("theirs"), E.attempt(1)]);
      const results = yield* Effect.forEach(["theirs", "a"], (id) => Effect.result(recorder.write(id, began(id))), {
        concurrency: "unbounded",
      });
      assert.deepStrictEqual(
        results.map((it) => (it._tag === "Failure" ? it.failure.reason : "on record")),
        ["fenced", "on record"],
      );
    }).pipe(Effect.scoped),
  );
});
