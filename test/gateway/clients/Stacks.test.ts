/**
 * The HTTP stacks that are always present, and Python and curl if they are found, read the gateway's broken response slowly. `npm run stacks`
 * plays every stack and every ending.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import { type Ending, type Served, serve } from "../../../scripts/stacks/Endings.ts";
import { hasCommand } from "../../../scripts/stacks/Packages.ts";
import { type Stack, stacks } from "../../../scripts/stacks/Stacks.ts";
import { play, type Trial } from "../../../scripts/stacks/Trials.ts";

const named = (part: string): ReadonlyArray<Stack> => stacks.filter(({ name }) => name.startsWith(part));

const trial = (stack: Stack, ending: Ending): Effect.Effect<Trial, never, Scope.Scope> =>
  Effect.gen(function* () {
    const served: Served = yield* serve;
    return yield* Effect.promise(() => play(stack, ["direct", served], ending, served, ""));
  });

describe("A broken response of 2 MB, read slowly", () => {
  for (const stack of [...named("Node"), ...named("Python"), ...named("curl")]) {
    const test = hasCommand(stack.needs) ? it.live : it.live.skip;
    const words = hasCommand(stack.needs) ? "" : ` (skipped: ${stack.needs.packages.join(", ")} is not here)`;
    test(`is an error to ${stack.name} and loses no byte${words}`, () =>
      Effect.gen(function* () {
        const seen = yield* trial(stack, "gateway");
        assert.isDefined(seen.error, "a part was taken for whole");
        assert.strictEqual(seen.lost, 0);
      }));
  }

  const [byLine] = named("Python http.client-line");
  if (byLine !== undefined && hasCommand(byLine.needs))
    it.live("would be whole to Python's line reader if its body merely stopped", () =>
      Effect.gen(function* () {
        const seen = yield* trial(byLine, "stop");
        assert.deepStrictEqual([seen.error, seen.lost], [undefined, 0]);
      }),
    );
});
