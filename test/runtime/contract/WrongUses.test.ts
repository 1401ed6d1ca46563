/** Each wrong use must fail to compile: `npm run types` reports a directive that hides no error. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Stream } from "effect";
import { Observation, type ReadyCall, RecoveryPolicy, type RunOptions, type ToolGuard } from "../../../src/index.ts";
import { PlainSeam, Routes, Seam } from "../../../src/stages/index.ts";

type Options = RunOptions<string, never, never>;

const open = () => Stream.make("text");
const base = { provider: { id: "p" }, tools: [], attempt: open, observe: () => Observation.none };
const seam = PlainSeam.make<string>({ text: (part) => part, withText: (_, text) => text });

describe("options that do not compile", () => {
  it("say that an attempt can be continued without a builder", () => {
    const right: Options = { ...base, canContinue: open };
    // @ts-expect-error a flag builds no continuation
    const wrong: Options = { ...base, canContinue: true };
    // @ts-expect-error neither does it on a further route
    const onRoute: Options = { ...base, routes: Routes.of([{ ...base, id: "b", canContinue: true }]) };
    assert.isDefined([right, wrong, onRoute]);
  });

  it("continue text without a seam", () => {
    const right: Options = { ...base, continueText: "auto", seam: Seam.of(seam) };
    // @ts-expect-error `auto` needs a seam
    const wrong: Options = { ...base, continueText: "auto" };
    assert.isDefined([right, wrong]);
  });

  it("give one seam to all runs", () => {
    const one = seam();
    // @ts-expect-error a seam holds the text of one run
    const wrong: Options = { ...base, seam: Seam.of(one) };
    // @ts-expect-error `make` gives a maker, so a function around it gives no seam
    const wrapped: Options = { ...base, seam: Seam.of(() => seam) };
    assert.notStrictEqual(seam(), one);
    assert.isDefined([wrong, wrapped]);
  });

  it("have a policy that RecoveryPolicy.make did not make", () => {
    const right: Options = { ...base, policy: RecoveryPolicy.make({ name: "ours" }) };
    const { decide, moves, name, rows, version } = RecoveryPolicy.default;
    // @ts-expect-error a literal is no policy
    const literal: Options = { ...base, policy: { decide, moves, name, rows, version } };
    // @ts-expect-error neither is a changed copy of one
    const copy: Options = { ...base, policy: { ...RecoveryPolicy.default, decide } };
    assert.isDefined([right, literal, copy]);
  });
});

describe("a ReadyCall", () => {
  it("is taken where a tool takes a CallReference", () => {
    const run = (guard: ToolGuard["Service"], call: ReadyCall) =>
      guard.readOnly("read", (path: string) => Effect.succeed(path)).run(call, "a");
    assert.isFunction(run);
  });
});
