/**
 * What a stream leaves to V8: a minor collection takes all of it. What an old object refers to is copied by two minor collections and kept
 * until the next full one, which was a tenth of what a stream cost.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { polled, Socket } from "./CopyCases.ts";
import { head, layer, planOf, role, scripted, stop, text } from "./RelayCases.ts";

setFlagsFromString("--expose-gc");
const gc: unknown = runInNewContext("gc");

const collect = (type: "major" | "minor"): void => {
  if (typeof gc === "function") gc({ type });
};

/** Bytes of the objects that have outlived two minor collections. */
const oldBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;

/** Objects that a request brings along, and their bytes. */
const ballast = 8_000;
const ballastBytes = 8 * ballast;

const streams = 200;

/** Copies the response of a request that weighs something, and forgets both. */
const copied = Effect.suspend(() => {
  const { transport } = scripted([head, role, text("a"), stop, "end"]);
  const plan = { ...planOf(), ballast: Array.from({ length: ballast }, () => transport) };
  return Effect.scoped(Relay.copy(plan, { transport: polled(transport), continueText: "auto" }, new Socket()));
});

describe("A stream whose text may go on", () => {
  it.live("is gone with the next minor collections, with its request and its response", () =>
    Effect.gen(function* () {
      yield* Effect.replicateEffect(copied, 20);
      collect("major");
      const before = oldBytes();
      for (let stream = 0; stream < streams; stream += 1) {
        yield* copied;
        collect("minor");
      }
      collect("minor");
      assert.isBelow(oldBytes() - before, (streams * ballastBytes) / 4);
    }).pipe(Effect.provide(layer)),
  );
});
