import { Channel, Data, Effect, Exit, Scope, Stream } from "effect";
import { describe, expect, it } from "vitest";
import { makeLazy, openPull, withOpener } from "../../../src/runtime/contract/LazyStream.ts";

class Refused extends Data.TaggedError("Refused")<{ readonly why: string }> {}

const pulledOnce = <A, E>(stream: Stream.Stream<A, E>) =>
  Effect.scoped(Effect.flatMap(Effect.scope, (scope) => Effect.flatten(openPull(stream, scope))));

describe("a stream whose channel is built only where it is asked for", () => {
  it("is a stream as any other", async () => {
    let made = 0;
    const stream = makeLazy(() => {
      made += 1;
      return Stream.make(1, 2, 3);
    });
    expect([Stream.isStream(stream), made]).toEqual([true, 0]);
    const doubled = stream.pipe(Stream.map((n) => 2 * n));
    expect(await Effect.runPromise(Stream.runCollect(doubled))).toEqual([2, 4, 6]);
    expect(await Effect.runPromise(Stream.runCollect(stream))).toEqual([1, 2, 3]);
    expect(Channel.isChannel(stream.channel)).toBe(true);
  });

  it("is opened without its channel where it has a way", async () => {
    const never = makeLazy((): Stream.Stream<number> => {
      throw new Error("its channel was asked for");
    });
    const opened = withOpener(never, () => Effect.succeed(Effect.succeed([7])));
    expect(await Effect.runPromise(pulledOnce(opened))).toEqual([7]);
    expect(await Effect.runPromise(pulledOnce(Stream.make(5)))).toEqual([5]);
  });

  it("fails the pull with what its opening failed with", async () => {
    const refused = withOpener<number, Refused, never>(
      makeLazy(() => Stream.empty),
      () => Effect.fail(new Refused({ why: "closed" })),
    );
    const pull = await Effect.runPromise(openPull(refused, Scope.makeUnsafe()));
    expect(await Effect.runPromiseExit(pull)).toEqual(Exit.fail(new Refused({ why: "closed" })));
  });
});
