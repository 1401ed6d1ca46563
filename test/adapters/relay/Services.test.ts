/**
 * A stream carries the services of its whole program and reads few of them: copies of all of them would be a part of what each stream
 * costs.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer, References } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { copiedServices } from "../../CopiedServices.ts";
import { polled, Socket } from "./CopyCases.ts";
import { head, layer, planOf, role, scripted, settle, stop, text } from "./RelayCases.ts";

describe("A response that is copied", () => {
  it.effect("copies no services, however many parts it has", () =>
    Effect.gen(function* () {
      const parts = Array.from({ length: 50 }, () => text("a"));
      const { transport } = scripted([head, role, ...parts, stop, "end"]);
      const socket = new Socket();
      const copied = Effect.scoped(Relay.copy(planOf(), { transport: polled(transport) }, socket));
      assert.strictEqual(yield* copiedServices(Effect.andThen(copied, settle)), 0);
      assert.strictEqual(socket.text, role + parts.join("") + stop);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("copies none for its writes to a store that takes its time", () =>
    Effect.gen(function* () {
      const { transport } = scripted([head, role, text("a"), stop, "end"]);
      const copied = Effect.scoped(Relay.copy(planOf(), { transport: polled(transport) }, new Socket()));
      const written: Array<string> = [];
      const copies = copiedServices(Effect.andThen(copied, settle)).pipe(Effect.provide(slowly(written)));
      assert.strictEqual(yield* copies, 0);
      assert.isAtLeast(written.length, 3);
    }).pipe(Effect.provide(Layer.succeed(References.MinimumLogLevel, "None"))),
  );
});

/** Runs over a store that does nothing in the step in which it is asked to. */
const slowly = (written: Array<string>) =>
  Layer.unwrap(
    Effect.map(Layer.build(Layer.fresh(RunRecorder.layerMemory())), (built) => {
      const memory = Context.get(built, RunRecorder);
      const write: typeof memory.write = (id, entries) =>
        Effect.andThen(Effect.yieldNow, () => {
          written.push(id);
          return memory.write(id, entries);
        });
      const store = Layer.succeed(RunRecorder, { ...memory, write });
      return StreamProcessor.layer.pipe(Layer.provide(Layer.merge(store, UserDecisions.layerHeadless())));
    }),
  );
