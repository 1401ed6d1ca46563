/**
 * `npm run histories -- --store sqlite --processes 4 --seed 7 --seconds 60`: several processes work on the same runs while they are
 * stopped, killed and disconnected, and log every operation. Exit code 1 if the logs and the store disagree.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { formatProblems, type Place, play, summarize } from "./histories/Playing.ts";
import * as Cluster from "./postgres/Cluster.ts";
import * as SocketProxy from "./postgres/SocketProxy.ts";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    processes: { type: "string", default: "4" },
    seed: { type: "string", default: String(1 + (process.pid % 1_000_000)) },
    seconds: { type: "string", default: "30" },
    export: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const [processes, seed, seconds] = [Number(values.processes), Number(values.seed), Number(values.seconds)];
const isGood = processes > 0 && seconds > 0 && Number.isSafeInteger(seed) && /^(sqlite|postgres)$/.test(values.store);
if (values.help || !isGood) {
  console.log(
    "npm run histories -- [--store sqlite|postgres] [--processes 4] [--seed N] [--seconds 30] [--export FILE]\n\n" +
      "Prints the seed. --export writes the operations and the final records as JSON, for scripts/histories/linear/main.go.",
  );
  process.exit(values.help ? 0 : 2);
}

const inFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "histories-store-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  ),
  (folder): Place => ({ store: join(folder, "runs.db") }),
);

const inPostgres = Effect.gen(function* () {
  const programs = Cluster.programs();
  if (programs === undefined)
    return yield* Effect.die(new Error("install PostgreSQL, or set $POSTGRES_BIN to the folder of its programs"));
  const cluster = yield* Effect.acquireRelease(
    Effect.sync(() => Cluster.make(programs)),
    (it) => Effect.sync(() => it.remove()),
  );
  const proxy = yield* SocketProxy.make(cluster.socket);
  const store = cluster
    .address("postgres")
    .replace(encodeURIComponent(cluster.socket), encodeURIComponent(proxy.socket));
  return { store, proxy, restart: cluster.restart } satisfies Place;
});

const place: typeof inFile = values.store === "postgres" ? inPostgres : inFile;
const played = await Effect.runPromise(
  Effect.scoped(Effect.flatMap(place, (it) => play({ seed, processes, seconds }, it))),
);
if (values.export !== undefined)
  writeFileSync(values.export, JSON.stringify({ operations: played.operations, finals: played.finals }));
for (const line of formatProblems(played)) console.log(line);
console.log(`seed ${seed}, ${values.store}: ${summarize(played)}; ${played.problems.length} problems`);
process.exit(played.problems.length === 0 ? 0 : 1);
