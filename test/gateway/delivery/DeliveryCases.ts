/**
 * What the tests of the delivery log share: a store in memory, and a run whose response is logged.
 */
import { Effect } from "effect";
import { ByteLog } from "../../../src/gateway/attach/ByteLog.ts";
import type { DeliverySource } from "../../../src/gateway/delivery/DeliverySource.ts";
import type {
  Delivery,
  DeliveryPart,
  DeliveryState,
  DeliveryStore,
} from "../../../src/recorder/delivery/DeliveryStore.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";

const away = new RecorderError({ reason: "unavailable", run_id: "", message: "away" });

/** A store in memory, whose appends fail as they are told: before they are taken, or behind it. */
export const storeOf = (fails: () => "before" | "behind" | undefined) => {
  const deliveries = new Map<string, Delivery & { state: DeliveryState }>();
  const parts: Array<DeliveryPart> = [];
  /** Deliveries of each call that says how they ended. */
  const ends: Array<number> = [];
  const held = { bytes: 0 };
  const standing = (runId: string) => {
    const found = deliveries.get(runId);
    return found && { state: found.state, beats: parts.length, reader: null, refused: null };
  };
  const store: DeliveryStore["Service"] = {
    secret: "s",
    begin: (all) =>
      Effect.sync(() => {
        for (const it of all) deliveries.set(it.run_id, { ...it, state: "live" });
      }),
    append: (all) =>
      Effect.suspend(() => {
        const how = fails();
        if (how === "before") return Effect.fail(away);
        for (const it of all) if (!parts.some(({ n, run_id }) => n === it.n && run_id === it.run_id)) parts.push(it);
        return how === "behind" ? Effect.fail(away) : Effect.void;
      }),
    beat: (sizes) => Effect.succeed(new Set(sizes.keys())),
    ended: (all) =>
      Effect.sync(() => {
        ends.push(all.length);
        for (const { run_id, state } of all) {
          const found = deliveries.get(run_id);
          if (found !== undefined) found.state = state;
        }
      }),
    drop: (runId) => Effect.sync(() => void deliveries.delete(runId)),
    wishes: () => Effect.succeed([]),
    answer: () => Effect.void,
    unseat: () => Effect.void,
    find: () => Effect.succeed([...deliveries.values()]),
    wish: () => Effect.void,
    leave: () => Effect.void,
    renew: () => Effect.void,
    standing: (runId) => Effect.succeed(standing(runId)),
    look: (runId, from) => {
      const held = parts.filter(({ at, n }) => n === 0 || ("at" in from && at <= from.at)).map(({ n }) => n);
      const first = "n" in from ? from.n : Math.max(...held);
      return Effect.succeed({ standing: standing(runId), parts: parts.filter(({ n }) => n >= first) });
    },
    forget: Effect.sync(() => held.bytes),
  };
  return { store, deliveries, parts, ends, held };
};

/** A run of this gateway, as far as the log knows it. */
export const sourceOf = () => {
  const log = new ByteLog();
  const source = {
    entry: { terms: { lingerMs: 1_000 }, log, end: undefined as { how: "whole" } | undefined, evicted: undefined },
    head: { head: { status: 200, statusText: "OK", headers: [["a", "b"] as const] }, streaming: true },
    bodyEnd: undefined as "end" | undefined,
    stop: undefined,
    client: undefined,
    takenElsewhere: () => undefined,
    leftElsewhere: () => undefined,
    cancelledElsewhere: () => undefined,
  } satisfies DeliverySource;
  return { log, source };
};
