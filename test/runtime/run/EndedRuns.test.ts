/**
 * An ended run whose calls may still run, or whose end may still be written, keeps nothing of its request (L11).
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Stream } from "effect";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { Presence } from "../../../src/stages/output/Presence.ts";
import * as S from "../Scripted.ts";

const layer = (methods: Partial<RunRecorder["Service"]>) =>
  StreamProcessor.layer.pipe(Layer.provide(S.recorderThat(methods)), Layer.provide(UserDecisions.layerHeadless()));

const store = { isAway: true };
const away = Effect.fail(new RecorderError({ reason: "unavailable", run_id: "r", message: "away" }));
const down = () => Effect.suspend(() => (store.isAway ? away : Effect.void));

setFlagsFromString("--expose-gc");
const collect: unknown = runInNewContext("gc");

const tool = Effect.map(ToolGuard, (guard) => guard.mutating("bash", () => Effect.succeed("done")));

/** Runs a turn whose request is reachable only through its attempt. */
const turn = Effect.gen(function* () {
  const bash = yield* tool;
  const request = { messages: ["what the user asked"] };
  const played = S.scripted([S.text("a"), S.callReady("bash"), S.done]);
  const options = S.options(played, {
    tools: [bash],
    attempt: (context) => (request.messages.length > 0 ? played.attempt(context) : Stream.empty),
  });
  yield* Stream.runDrain((yield* StreamProcessor).run(options));
  return new WeakRef(request);
});

/** Presences that an embedder keeps for returning readers. */
const presences: Array<Presence> = [];

/** Runs a turn with its request in a tap, beside a presence that is kept. */
const tapped = Effect.gen(function* () {
  const request = { messages: ["what the user asked"] };
  const presence = new Presence();
  presences.push(presence);
  presence.whenEvicted(() => request.messages.length);
  const taps = { presence, tee: () => request.messages.length === 0 };
  yield* Stream.runDrain((yield* StreamProcessor).run(S.options(S.scripted([S.text("a"), S.done]), { taps })));
  return new WeakRef(request);
});

describe("An ended run", () => {
  for (const [name, methods, played] of [
    ["whose call may still be started", {}, turn],
    ["whose end waits for the store", { write: down }, turn],
    ["whose presence is kept", {}, tapped],
  ] as const) {
    it.live(`${name} keeps nothing of its request`, () =>
      Effect.gen(function* () {
        // The newest may still be on this test's own stack.
        const requests = (yield* Effect.replicateEffect(played, 5)).slice(0, 3);
        const isKept = () => requests.some((request) => request.deref() !== undefined);
        for (let round = 0; round < 10 && isKept(); round += 1) {
          yield* Effect.promise(() => new Promise((done) => setImmediate(done)));
          if (typeof collect === "function") collect();
        }
        // A closing processor waits for a store that is away.
        store.isAway = false;
        assert.isFalse(isKept());
      }).pipe(Effect.provide(layer(methods))),
    );
  }
});
