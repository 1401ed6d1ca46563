/** A run that only meets refusals: it ends with the last of them while its client can still be told by a status. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import type { RelayHead } from "../../../src/adapters/relay/RelayTransport.ts";
import { polled, Socket } from "./CopyCases.ts";
import { head, layer, pass, planOf, role, type Step, scripted, stop, text } from "./RelayCases.ts";

const overloaded = (headers: RelayHead["headers"] = []): RelayHead => ({
  status: 529,
  statusText: "",
  headers: [["content-type", "application/json"], ...headers],
});
const said = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';

/** More retries than fit into any patience. */
const budget = { max_not_processed: 30 };
const refusals = (ms: number): ReadonlyArray<ReadonlyArray<Step>> =>
  Array.from({ length: 30 }, () => (ms === 0 ? [overloaded(), said, "end"] : [ms, overloaded(), said, "end"]));
const patience = { head: { withinMs: 45_000 }, budget, clocks: { first_progress: false } } as const;

const ways = {
  open: (stream: boolean, options: Relay.RelayOptions) =>
    Effect.map(Relay.open(planOf({ stream }), options), ({ head }) => head.status),
  copy: (stream: boolean, options: Relay.RelayOptions) =>
    Effect.gen(function* () {
      const socket = new Socket();
      const run = Relay.copy(planOf({ stream }), { ...options, transport: polled(options.transport) }, socket);
      const status = Effect.map(
        Effect.repeat(Effect.yieldNow, { until: () => socket.response !== undefined }),
        () => socket.response?.head.status,
      );
      return yield* Effect.raceFirst(Effect.andThen(run, status), status);
    }),
};

describe("a run that only meets refusals", () => {
  for (const way of ["open", "copy"] as const) {
    for (const stream of [true, false]) {
      for (const ms of [0, 10_000]) {
        it.effect(`ends with the last one within its client's patience: ${way}, stream ${stream}, ${ms} ms each`, () =>
          Effect.gen(function* () {
            const script = scripted(...refusals(ms));
            const run = yield* Effect.forkScoped(ways[way](stream, { ...patience, transport: yield* script.timed }), {
              startImmediately: true,
            });
            yield* pass(45);
            const error = yield* Effect.flip(Fiber.join(run));
            assert.strictEqual(error._tag, "RelayInterrupted");
            assert.strictEqual(error.rule, "budget_exhausted");
            assert.strictEqual(error.response?.head.status, 529);
            assert.strictEqual(error.attempts, script.seen.opened);
            assert.isAbove(error.attempts, 1, "nothing was retried");
          }).pipe(Effect.scoped, Effect.provide(layer)),
        );
      }
    }
  }

  it.effect("waits for an end that the provider has announced", () =>
    Effect.gen(function* () {
      const waits = overloaded([["retry-after", "50"]]);
      const script = scripted([waits, said, "end"], [head, role, text("a"), stop, "end"]);
      const run = yield* Effect.forkScoped(ways.open(true, { ...patience, transport: script.transport }), {
        startImmediately: true,
      });
      yield* pass(90);
      assert.strictEqual(yield* Fiber.join(run), 200);
      assert.strictEqual(script.seen.opened, 2);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("leaves an attempt alone that is under way", () =>
    Effect.gen(function* () {
      const script = scripted([overloaded(), said, "end"], [60_000, head, role, text("a"), stop, "end"]);
      const transport = yield* script.timed;
      const run = yield* Effect.forkScoped(ways.open(true, { ...patience, transport }), { startImmediately: true });
      yield* pass(70);
      assert.strictEqual(yield* Fiber.join(run), 200);
      assert.strictEqual(script.seen.aborted, 1, "the refused attempt alone");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("stops at its budget where no client has a patience", () =>
    Effect.gen(function* () {
      const script = scripted(...refusals(0));
      const options = { transport: script.transport, budget: { max_not_processed: 6 } };
      const run = yield* Effect.forkScoped(ways.open(true, options), { startImmediately: true });
      yield* pass(180);
      assert.strictEqual((yield* Effect.flip(Fiber.join(run))).attempts, 7);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});
