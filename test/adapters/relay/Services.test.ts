/**
 * A stream carries the services of its whole program and reads few of them: copies of all of them would be a part of what each stream
 * costs.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
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
});
