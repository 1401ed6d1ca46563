/**
 * Gateways whose PostgreSQL has no room left on its disk: the tables stand on a small file system of their own, where this user may make
 * one; else the server says what it says then.
 */
import { spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Context, Effect, Result } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { StoreHealth } from "../../../src/gateway/api/StoreHealth.ts";
import { unrecordedHeader } from "../../../src/gateway/proxy/StoreWord.ts";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { Answers } from "../../../src/testing/index.ts";
import { eventually, polled } from "../../Polling.ts";
import * as E from "../../recorder/Entries.ts";
import { ask, type Client, whole } from "../attach/AttachCases.ts";
import { credential, type Node, two } from "./Nodes.ts";

const events = Answers.render("openai-chat", 1, { content: [{ reasoning: 2 }, { text: 4 }] }).map(({ frame }) =>
  Buffer.from(frame),
);
const all = Buffer.concat(events);

const [mount, unmount] = ["mount", "umount"];
const disk = mkdtempSync(join(tmpdir(), "small-disk-"));
let cluster: Cluster.Cluster;
let isMounted = false;

beforeAll(() => {
  const programs = Cluster.programs();
  if (programs === undefined) throw new Error("the suite has started one");
  cluster = Cluster.make(programs);
  isMounted = spawnSync(mount, ["-t", "tmpfs", "-o", "size=24m", "tmpfs", disk]).status === 0;
  if (!isMounted) return;
  // The server runs as the user to whom its folder belongs.
  const { gid, uid } = statSync(cluster.socket);
  chownSync(disk, uid, gid);
  cluster.psql("postgres", `CREATE TABLESPACE small LOCATION '${disk}'`);
});

afterAll(() => {
  cluster.remove();
  if (isMounted) spawnSync(unmount, ["-l", disk]);
  rmSync(disk, { recursive: true, force: true });
});

/** How a disk is filled, and how there is room again. */
interface Disk {
  readonly database: string;
  readonly isPossible: () => boolean;
  readonly made: string;
  readonly full: (database: string) => void;
  readonly room: (database: string) => void;
}

/** Fills what is left in ever smaller steps. */
const filler = `DO $$ DECLARE n integer := 1000000; BEGIN
  WHILE n > 10 LOOP
    BEGIN INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, n / 1000 + 1);
    EXCEPTION WHEN disk_full THEN n := n / 2; END;
  END LOOP; END $$`;

const refusing = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`;

const disks: ReadonlyArray<Disk> = [
  {
    database: "really_full",
    isPossible: () => isMounted,
    made: "TABLESPACE small",
    full: (database) => {
      cluster.psql(database, "CREATE TABLE filler (text text)");
      cluster.psql(database, filler);
    },
    room: (database) => void cluster.psql(database, "DROP TABLE filler"),
  },
  {
    database: "said_to_be_full",
    isPossible: () => true,
    made: "",
    full: (database) => {
      cluster.psql(database, refusing);
      cluster.psql(
        database,
        `CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON stream_recovery_runs EXECUTE FUNCTION refuse()`,
      );
    },
    room: (database) => void cluster.psql(database, "DROP TRIGGER refuse ON stream_recovery_runs"),
  },
];

/** Writes runs until one is refused: what it is told. */
const refused = ({ recorder }: Node): Effect.Effect<RecorderError> =>
  Effect.gen(function* () {
    for (let n = 0; ; n += 1) {
      const written = yield* Effect.result(recorder.write(`filler-${n}`, [E.begun(`filler-${n}`), E.ended()]));
      if (Result.isFailure(written)) return written.failure;
    }
  });

/** Waits until the runs of so many clients have an end on record. */
const untilEnded = ({ recorder }: Node, count: number) =>
  polled(
    Effect.map(
      Effect.orElseSucceed(recorder.runs({ limit: 1_000 }), () => []),
      (runs) => {
        const ended = runs.filter(({ end, run_id }) => end !== undefined && run_id.startsWith("gw_"));
        return ended.length >= count ? ended : undefined;
      },
    ),
  );

const isWhole = (client: Client) =>
  Effect.map(whole(client), ({ body, broken }) => {
    assert.isFalse(broken);
    assert.strictEqual(body.toString(), all.toString());
  });

describe("gateways whose PostgreSQL has a full disk", () => {
  for (const { database, full, isPossible, made, room } of disks) {
    it.live(`show text to its end and say so, and what ended is on record once when there is room: ${database}`, () =>
      Effect.gen(function* () {
        if (!isPossible()) return;
        cluster.psql("postgres", `CREATE DATABASE ${database} ${made}`);
        const it = yield* two(cluster.address(database), events, { lingerMs: 0 });
        const before = ask(it.one, "openai-chat", credential);
        const sent = yield* it.nth(0);
        sent.send(3);
        yield* eventually(() => (before.got().byteLength > 0 ? true : undefined));
        full(database);
        const error = yield* refused(it.one);
        assert.strictEqual(error.reason, "disk_full");
        assert.match(error.message, /no room left on its server's disk.*Free some space/);
        // A short change finds room in a page that is there: the store is not well by that.
        const { probe = Effect.void } = it.one.recorder;
        assert.strictEqual((yield* Effect.flip(probe)).reason, "disk_full");
        // What the store says of itself is known from its writes: a new run writes at once.
        const clients = [before];
        for (let said: unknown; said === undefined; ) {
          const behind = ask(it.one, "openai-chat", credential);
          (yield* it.nth(clients.length)).finish();
          clients.push(behind);
          said = (yield* whole(behind)).head?.headers[unrecordedHeader];
          assert.include([undefined, "disk_full"], said);
        }
        sent.finish();
        for (const client of clients) yield* isWhole(client);
        assert.strictEqual((yield* Effect.flip(probe)).reason, "disk_full");
        assert.strictEqual((yield* Context.get(it.one.services, StoreHealth).state).reason, "disk_full");
        room(database);
        yield* probe;
        const runs = yield* untilEnded(it.one, clients.length);
        assert.lengthOf(runs, clients.length);
        assert.deepStrictEqual([...new Set(runs.map(({ end }) => end?.state))], ["completed"]);
        assert.lengthOf(it.asked, clients.length);
        assert.isUndefined(yield* it.one.recorder.run(""), "what a probe tries is taken back");
      }).pipe(Effect.scoped),
    );
  }
});
