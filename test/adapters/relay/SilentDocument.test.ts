/** When the body of a document counts as silent: the clock `silence`, by default 90 s without a byte. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { client, head, layer, opening, pass, planOf, type Step, scripted, settle } from "./RelayCases.ts";

const json = { ...head, headers: [["content-type", "application/json"] as const] };
const document = '{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}';

/** Requests a document, and lets time pass. */
const asked = (seconds: number, first: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const { seen, timed } = scripted([json, ...first], [json, document, "end"]);
    const open = yield* opening(planOf({ stream: false }), { transport: yield* timed });
    yield* pass(seconds);
    return { opened: seen.opened, open };
  });

const textOf = Effect.fnUntraced(function* ({ open }: Effect.Success<ReturnType<typeof asked>>) {
  const got = yield* client((yield* Fiber.join(open)).read);
  yield* settle;
  return got.text;
});

describe("the body of a document", () => {
  it.effect("that has begun is requested again after a silence", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* asked(85, [document.slice(0, 9), "silence"])).opened, 1);
      const late = yield* asked(95, [document.slice(0, 9), "silence"]);
      assert.strictEqual(late.opened, 2);
      assert.strictEqual(yield* textOf(late), document);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is requested again after a silence behind two pieces of white space, and not behind one", () =>
    Effect.gen(function* () {
      const twice = yield* asked(180, ["\n", 80_000, "\n", "silence"]);
      assert.strictEqual(twice.opened, 2);
      const once = yield* asked(301, ["\n", 300_000, document, "end"]);
      assert.strictEqual(once.opened, 1);
      assert.strictEqual(yield* textOf(once), `\n${document}`);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is awaited while its bytes arrive, even slowly", () =>
    Effect.gen(function* () {
      const parts = ["\n", 80_000, "\n", 80_000, document.slice(0, 9), 80_000, document.slice(9), "end"];
      const slow = yield* asked(245, parts);
      assert.strictEqual(slow.opened, 1);
      assert.strictEqual(yield* textOf(slow), `\n\n${document}`);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});
