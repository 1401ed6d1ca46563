/** Paths defined in plain JavaScript, and names of any length. */
import { assert, describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import type { PathWay } from "../../src/paths/Path.ts";
import { Paths } from "../../src/paths/Paths.ts";
import { scope } from "./Lab.ts";

/** A `PathWay` with any probe, as untyped JavaScript could pass it. */
const given = (probe: unknown): PathWay => JSON.parse("{}", () => ({ probe, dropIdle: () => {} }));

describe("a probe without a valid result", () => {
  for (const [name, probe] of Object.entries({
    nothing: Effect.void,
    "a boolean": Effect.succeed(true),
    "another tag": Effect.succeed({ _tag: "fine" }),
    "no effect": undefined,
    "a code that is no text": Effect.succeed({ _tag: "failed", reason: 7, code: 7 }),
  })) {
    it.effect(`${name}: blocks no run, and its path counts as lost`, () =>
      Effect.gen(function* () {
        const paths = yield* Paths;
        paths.attach(scope.path, given(probe));
        paths.recordResponse(scope);
        const lost = yield* Effect.forkChild(paths.isLost(scope.path));
        const failed = yield* Effect.forkChild(paths.recordConnectFailure(scope, "ECONNREFUSED"));
        yield* TestClock.adjust(30_000);
        assert.isDefined(lost.pollUnsafe());
        assert.isDefined(failed.pollUnsafe());
        assert.isTrue(yield* Fiber.join(lost));
        assert.strictEqual(paths.list()[0]?.state, "down");
        assert.strictEqual(typeof paths.list()[0]?.code, "string");
      }).pipe(Effect.provide(Paths.layer)),
    );
  }
});
