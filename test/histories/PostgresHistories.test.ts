/**
 * Plays histories of real processes over a PostgreSQL of their own, whose connections break and which starts again.
 * `npm run histories -- --store postgres` plays a longer one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { formatProblems, type Happened, isRich, play, summarize } from "../../scripts/histories/Playing.ts";
import * as Cluster from "../../scripts/postgres/Cluster.ts";
import * as SocketProxy from "../../scripts/postgres/SocketProxy.ts";
import { again, processes, seeds } from "./Seeds.ts";

/** A server that no other test uses, and the way to it. */
const own = Effect.gen(function* () {
  const cluster = yield* Effect.acquireRelease(
    Effect.sync(() => Cluster.make(Cluster.programs() ?? "")),
    (it) => Effect.sync(() => it.remove()),
  );
  const proxy = yield* SocketProxy.make(cluster.socket);
  const store = cluster
    .address("postgres")
    .replace(encodeURIComponent(cluster.socket), encodeURIComponent(proxy.socket));
  return { store, proxy, restart: cluster.restart };
});

describe("Processes over one PostgreSQL that are stopped, killed and cut off, and whose server starts again", () => {
  for (const seed of seeds) {
    it.live(`were told what the server holds, from seed ${seed}`, () =>
      Effect.gen(function* () {
        const place = yield* own;
        const given = { seed, processes, seconds: 12, until: (so: Happened) => isRich(so, place) };
        const played = yield* play(given, place);
        console.log(`seed ${seed}, postgres: ${summarize(played)}`);
        assert.deepStrictEqual(formatProblems(played), [], again(seed, "postgres"));
        assert.isTrue(isRich(played, place), `${again(seed, "postgres")}: ${summarize(played)}`);
      }).pipe(Effect.scoped),
    );
  }
});
