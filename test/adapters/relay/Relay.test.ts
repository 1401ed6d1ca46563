import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Fiber, Scope } from "effect";
import { TestClock } from "effect/testing";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { RelayInterrupted } from "../../../src/adapters/relay/RelayInterrupted.ts";
import type { RelayHead } from "../../../src/adapters/relay/RelayTransport.ts";
import { refusalMs } from "../../../src/adapters/relay/WholeBody.ts";
import { seeded } from "../../Seeded.ts";
import { call, head, layer, planOf, role, scripted, settle, shown, stop, text } from "./RelayCases.ts";

describe("Relay", () => {
  it.effect("gives the head at once, the held prefix with the first content, and undefined at the clean end", () =>
    Effect.gen(function* () {
      const { transport } = scripted([head, role, text("a"), text("b"), stop, "end"]);
      const answer = yield* Relay.open(planOf(), { transport });
      assert.deepStrictEqual(answer.head.headers[0], ["Content-Type", "text/event-stream"]);
      assert.deepStrictEqual(answer.head.headers[1], ["x-recovery-run", answer.run_id]);
      let all = "";
      for (;;) {
        const next = shown(yield* answer.read);
        if (next === "END") break;
        all += next;
      }
      assert.strictEqual(all, role + text("a") + text("b") + stop);
      assert.strictEqual(shown(yield* answer.read), "END");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("writes comments while it holds something back, and none while it holds nothing", () =>
    Effect.gen(function* () {
      const { transport } = scripted([head, role, "silence"]);
      const answer = yield* Relay.open(planOf(), { transport, keepAliveMs: 15_000 });
      for (let turn = 0; turn < 3; turn++) {
        const reading = yield* Effect.forkChild(answer.read, { startImmediately: true });
        yield* settle;
        yield* TestClock.adjust("15 seconds");
        assert.strictEqual(shown(yield* Fiber.join(reading)), ": keep-alive\n\n");
      }
      const spoken = scripted([head, text("a"), "silence"]);
      const second = yield* Relay.open(planOf(), { transport: spoken.transport, keepAliveMs: 15_000 });
      assert.strictEqual(shown(yield* second.read), text("a"));
      const reading = yield* Effect.forkChild(second.read, { startImmediately: true });
      yield* settle;
      yield* TestClock.adjust("60 seconds");
      assert.isUndefined(reading.pollUnsafe());
    }).pipe(Effect.provide(layer)),
  );

  it.effect("writes no-ops of its protocol while a call is held behind text", () =>
    Effect.gen(function* () {
      const { transport } = scripted([head, text("a"), call, "silence"]);
      const answer = yield* Relay.open(planOf(), { transport, keepAliveMs: 15_000 });
      assert.strictEqual(shown(yield* answer.read), text("a"));
      const reading = yield* Effect.forkChild(answer.read, { startImmediately: true });
      yield* settle;
      yield* TestClock.adjust("15 seconds");
      const noOp = shown(yield* Fiber.join(reading));
      assert.match(noOp, /^data: .*"id":"chatcmpl-1".*"delta":{},"finish_reason":null/);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("never hands a byte on that an attempt which was given up has sent", () =>
    Effect.gen(function* () {
      const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
      const { seen, transport } = scripted(
        [head, role, call, reset],
        [head, role, reset],
        [head, role, call, stop, "end"],
      );
      const answer = yield* Relay.open(planOf(), { transport });
      const reading = yield* Effect.forkChild(answer.read, { startImmediately: true });
      for (let turn = 0; turn < 4; turn++) {
        yield* settle;
        yield* TestClock.adjust("10 seconds");
      }
      assert.strictEqual(shown(yield* Fiber.join(reading)), role + call + stop);
      assert.strictEqual(seen.opened, 3);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("reads no more than a bounded number of events ahead of its client", () =>
    Effect.gen(function* () {
      const { seen, transport } = scripted([head, ...Array.from({ length: 5000 }, () => text("a")), stop, "end"]);
      const answer = yield* Relay.open(planOf(), { transport });
      yield* answer.read;
      for (let turn = 0; turn < 50; turn++) yield* settle;
      assert.isBelow(seen.reads, 300);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("stops its upstream when the client has gone, and calls that the user's cancel", () =>
    Effect.gen(function* () {
      const { seen, transport } = scripted([head, text("a"), "silence"]);
      const answer = yield* Relay.open(planOf(), { transport });
      yield* answer.read;
      const reading = yield* Effect.forkChild(Effect.flip(answer.read), { startImmediately: true });
      yield* answer.cancel;
      const error = yield* Fiber.join(reading);
      assert.strictEqual(error.rule, "user_cancelled");
      assert.strictEqual(seen.aborted, 1);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("waits for a refusal's body ten seconds, and hands on what came of it", () =>
    Effect.gen(function* () {
      const refused: RelayHead = { status: 400, statusText: "", headers: [["content-type", "application/json"]] };
      const { transport } = scripted([refused, '{"error":', "silence"]);
      const opening = yield* Effect.forkChild(Effect.flip(Relay.open(planOf(), { transport })), {
        startImmediately: true,
      });
      yield* settle;
      yield* TestClock.adjust(refusalMs);
      yield* settle;
      const error = yield* Fiber.join(opening);
      assert.instanceOf(error, RelayInterrupted);
      assert.strictEqual(shown(error.response?.body), '{"error":');
      assert.isFalse(error.response?.whole);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("asks instead of repeating where the provider keeps the conversation", () =>
    Effect.gen(function* () {
      const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
      const { seen, transport } = scripted([head, role, reset], [head, role, stop, "end"]);
      const tools = [{ type: "mcp", server_label: "shop" }];
      const answer = yield* Relay.open(planOf({ tools }), { transport });
      assert.strictEqual((yield* Effect.flip(answer.read)).rule, "side_effects_unprovable");
      assert.strictEqual(seen.opened, 1);
    }).pipe(Effect.provide(layer)),
  );

  it.effect(
    "hands an error event on behind the text that was held, without the calls, and nothing of a damaged event",
    () =>
      Effect.gen(function* () {
        const refused = 'data: {"error":{"code":"context_length_exceeded","message":"too long"}}\n\n';
        const failing = scripted([head, role, text("a"), call, refused, "end"]);
        const answer = yield* Relay.open(planOf(), { transport: failing.transport, reveal: "on_complete" });
        assert.strictEqual(shown(yield* answer.read), role + text("a") + refused);
        assert.strictEqual((yield* Effect.flip(answer.read)).failure.kind, "rejected");
        const damaged = scripted([head, text("a"), 'data: {"choices":\n\n', "end"]);
        const budget = { max_auto_retries: 0 };
        const second = yield* Relay.open(planOf(), { transport: damaged.transport, budget });
        assert.strictEqual((yield* Effect.flip(second.read)).failure.kind, "protocol");
      }).pipe(Effect.provide(layer)),
  );

  it.effect("holds beyond its byte limit no answer that is revealed on completion: it goes on live", () =>
    Effect.gen(function* () {
      const big = text("x".repeat(1024 * 1024));
      const { transport } = scripted([head, ...Array.from({ length: 9 }, () => big), new Error("read ECONNRESET")]);
      const answer = yield* Relay.open(planOf(), { transport, reveal: "on_complete" });
      assert.isAbove(shown(yield* answer.read).length, 7 * 1024 * 1024);
      const rest = yield* Effect.exit(Effect.forever(answer.read));
      assert.isTrue(Exit.isFailure(rest));
    }).pipe(Effect.provide(layer)),
  );

  it.effect("hands bytes on whole and in order, however they are cut", () =>
    Effect.gen(function* () {
      const seed = 11;
      const next = seeded(seed);
      const body = `${role + text("é · x")}: ping\r\n\r\n${text("b").replaceAll("\n", "\r\n")}${call}${stop}`;
      for (let round = 0; round < 30; round++) {
        const pieces: Array<string> = [];
        for (let at = 0; at < body.length; ) {
          const size = 1 + Math.floor(next() * 60);
          pieces.push(body.slice(at, at + size));
          at += size;
        }
        const scope = yield* Scope.make();
        const { transport } = scripted([head, ...pieces, "end"]);
        const answer = yield* Relay.open(planOf(), { transport }).pipe(Scope.provide(scope));
        let all = "";
        for (;;) {
          const bytes = yield* answer.read;
          if (bytes === undefined) break;
          all += shown(bytes);
        }
        assert.strictEqual(all, body, `seed ${seed}, round ${round}`);
        yield* Scope.close(scope, Exit.void);
      }
    }).pipe(Effect.provide(layer)),
  );
});
