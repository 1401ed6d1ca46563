/**
 * Holds what the bench of the store computes: no CPU of a server is lost, statements are told apart, bars and figures are right.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { cpuNsWithEnded, endedNs, type FamilyReading } from "../../scripts/bench/gateway/ProcessMeter.ts";
import type { Row } from "../../scripts/bench/Row.ts";
import { put } from "../../scripts/bench/ScaleFigures.ts";
import { commitFigureOf } from "../../scripts/bench/SqliteLines.ts";
import { cooldownRow, deathRow, gatewaysRows } from "../../scripts/bench/store/GatewayRows.ts";
import type { Cost, Gateways, Measured } from "../../scripts/bench/store/Gateways.ts";
import { parts, read } from "../../scripts/bench/store/Options.ts";
import { type Kinds, kindsOf } from "../../scripts/bench/store/Statements.ts";
import { figuresOf } from "../../scripts/bench/store/StoreFigures.ts";
import { retentionRows, sweepRows, writesRows } from "../../scripts/bench/store/StoreRows.ts";
import { explainable } from "../../scripts/bench/store/Sweep.ts";
import type { Writes } from "../../scripts/bench/store/Writes.ts";
import { read as figuresOfFile } from "../../scripts/scale/Figures.ts";

class Gone extends Error {
  readonly code = "ESRCH";
}

/** Processes whose CPU is a hundred a piece; what a step of a reading does to them is given. */
const familyOf = (steps: ReadonlyArray<(lives: Set<number>) => void>) => {
  const lives = new Set([1, 2, 3]);
  let [ended, step] = [0, 0];
  const next = () => {
    const before = lives.size;
    steps[step]?.(lives);
    step += 1;
    ended += (before - lives.size) * 100;
  };
  const reading: FamilyReading = {
    family: () => {
      next();
      return [...lives];
    },
    living: (pid) => {
      next();
      if (!lives.has(pid)) throw new Gone("no such process");
      return 100;
    },
    ended: () => {
      next();
      return ended;
    },
  };
  return reading;
};

describe("the CPU of a server", () => {
  const ends = (lives: Set<number>) => void lives.delete(3);
  const nothing = () => undefined;

  for (let at = 0; at < 7; at += 1) {
    it(`is whole where one of its processes ends at step ${at} of a reading`, () => {
      const steps = [...Array.from({ length: at }, () => nothing), ends];
      assert.strictEqual(cpuNsWithEnded(1, familyOf(steps)), 300);
    });
  }

  it("is not made up where processes come and go at every reading", () => {
    let pid = 3;
    const changes = (lives: Set<number>) => {
      lives.delete(pid);
      pid += 1;
      lives.add(pid);
    };
    const always = Array.from({ length: 10_000 }, () => changes);
    assert.throws(() => cpuNsWithEnded(1, familyOf(always)), "changed at each");
  });

  it("fails with any other fault", () => {
    const reading = { ...familyOf([]), living: () => assert.fail("a fault of its own") };
    assert.throws(() => cpuNsWithEnded(1, reading), "a fault of its own");
  });

  it("has that of ended processes from the kernel, whatever the program is called", () => {
    const before = "S 1 1 1 0 -1 4194560 9 9 0 0 11 12";
    assert.strictEqual(endedNs(`7 (a) b) ${before} 30 12 20 0 1 0`), 420_000_000);
  });
});

describe("statements", () => {
  it("are told apart by what they name, and each beginning has an end", () => {
    const kinds = kindsOf(
      [
        { sql: "BEGIN ISOLATION LEVEL SERIALIZABLE", calls: 4 },
        // The server counts a prepared one once.
        { sql: "COMMIT", calls: 1 },
        {
          sql: "WITH told AS (INSERT INTO stream_recovery_facts (kind) VALUES ($1)) SELECT pg_notify($2, $3) FROM told",
          calls: 2,
        },
        { sql: "SELECT count(*) AS n FROM stream_recovery_leases WHERE fenced = 0", calls: 2 },
        { sql: "INSERT INTO stream_recovery_groups (id) VALUES ($1)", calls: 2 },
        { sql: "UPDATE stream_recovery_runs SET version = $1", calls: 4 },
      ],
      2,
    );
    assert.deepStrictEqual(kinds, { all: 9, transactions: 2, facts: 3, notifies: 1 });
  });

  it("can be explained as the server has counted them", () => {
    assert.strictEqual(
      explainable("SELECT extract($1 FROM now()) * $2 FROM runs WHERE state = $3 LIMIT $4"),
      "SELECT extract(epoch FROM now()) * 1000 FROM runs WHERE state = (SELECT 'asking') LIMIT 1000",
    );
  });
});

const writes: Writes = {
  sqlite_us: 100,
  postgres_us: 120,
  sqlite_run_us: 150,
  postgres_run_us: 180,
  memory_run_us: 60,
  ratio: 1.2,
  run_ratio: 1.2,
  server_us: 90,
  sqlite_bytes: 3_600,
  wal_bytes: 2_400,
  alone_us: 400,
  alone_server_us: 450,
  alone_wal_bytes: 2_500,
  broken_wal_bytes: 12_000,
  rows_bytes: 3_100,
  transactions: 0.015,
  undone: 0,
  statements: 0.08,
  run_statements: 0.08,
  run_transactions: 0.015,
  notifies: 0,
  commonest: [],
};

const verdictsOf = (change: Partial<Writes>) =>
  writesRows([{ ...writes, ...change }], 200).flatMap(({ verdict }) => verdict ?? []);

describe("the bars of the store", () => {
  it("are 1.3 times the CPU of SQLite, and no word to others", () => {
    assert.deepStrictEqual(verdictsOf({}), ["met", "met", "met"]);
    assert.deepStrictEqual(verdictsOf({ ratio: 1.31 }), ["missed", "met", "met"]);
    assert.deepStrictEqual(verdictsOf({ run_ratio: 1.31 }), ["met", "missed", "met"]);
    assert.deepStrictEqual(verdictsOf({ notifies: 0.001 }), ["met", "met", "missed"]);
  });

  it("are a sweep that does not feel 200,000 live runs", () => {
    const sweep = { few_ms: 1, many_ms: 1, few_server_us: 100, many_server_us: 200, plan: [] };
    const verdict = (many_server_us: number) => sweepRows([{ ...sweep, many_server_us }], 100, 200_000)[0]?.verdict;
    assert.deepStrictEqual([verdict(200), verdict(201)], ["met", "missed"]);
  });

  it("are the slowest of the waits that hold elsewhere within a second", () => {
    assert.deepStrictEqual(
      [cooldownRow([5, 1_000]), cooldownRow([5, 1_001])].map(({ verdict }) => verdict),
      ["met", "missed"],
    );
    assert.include(cooldownRow([5, 20_001]).value, "did not hold");
  });
});

const cost = (gateway: number): Cost => ({ gateway, server: 200, wal: 4_000 });
const kinds: Kinds = { all: 2, transactions: 0.3, facts: 0, notifies: 0 };
const died = (decidedMs: number) => ({
  runs: 1_000,
  decidedMs,
  knownMs: 900,
  gateways: 700,
  server: 300,
  statements: kinds,
  commonest: [],
});

describe("the bar of a dead gateway's runs", () => {
  it("is the slowest of the deaths, five seconds behind the lease", () => {
    assert.deepStrictEqual(
      [deathRow([died(900), died(5_000)]), deathRow([died(5_001), died(900)])].map(({ verdict }) => verdict),
      ["met", "missed"],
    );
    assert.include(deathRow([died(900)]).what, "all 1,000 runs");
  });
});

const measured: Measured = {
  costs: {
    file: [cost(900), cost(1_000)],
    one: [cost(1_000), cost(2_000)],
    several: [
      { ...cost(1_200), server: 260 },
      { ...cost(2_200), server: 260 },
    ],
  },
  statements: { one: kinds, several: { ...kinds, all: 3 } },
};
const gateways: Gateways = {
  loads: { happy: measured, repeat: measured },
  broken: { ...kinds, facts: 1 },
  idle: { ...cost(9_000), statements: kinds },
  commonest: { broken: [], idle: [] },
};

describe("the lines of gateways", () => {
  const rows = gatewaysRows(gateways, 3);
  const numbersOf = (ending: string) => rows.find(({ what }) => what.endsWith(ending))?.numbers;

  it("compare contenders of the same round", () => {
    const { ratio, gateway_us, server_us, statements } = numbersOf("3 gateways over one database against one") ?? {};
    assert.closeTo(ratio ?? 0, 1.15, 1e-9);
    assert.deepStrictEqual([gateway_us, server_us, statements], [200, 60, 1]);
  });

  it("hold that a happy stream says nothing to others", () => {
    const said = { ...measured, statements: { ...measured.statements, several: { ...kinds, notifies: 0.1 } } };
    const verdicts = gatewaysRows({ ...gateways, loads: { ...gateways.loads, happy: said } }, 3).flatMap(
      ({ verdict }) => verdict ?? [],
    );
    assert.deepStrictEqual([rows.flatMap(({ verdict }) => verdict ?? []), verdicts], [["met"], ["missed"]]);
  });
});

describe("the lines of retention", () => {
  const paced = (p99Ms: number) => ({ writes: 300, p50Ms: 2, p99Ms });
  const found = { runs: 10_000, walBytes: 500, vacuumWalBytes: 100, vacuumMs: 50, alone: paced(4), beside: paced(6) };

  it("hold that a tenth of the time is enough in which a million runs a day end", () => {
    const of = (forgottenMs: number) => retentionRows([{ ...found, forgottenMs }]);
    const verdicts = [86_000, 87_000].map((ms) => of(ms)[0]?.verdict);
    assert.deepStrictEqual(verdicts, ["met", "missed"]);
    assert.strictEqual(of(5_000)[2]?.numbers.ratio, 1.5);
  });
});

describe("the figure of a commit in a file", () => {
  const commits = (what: string): Row => ({
    ...{ what, value: "", bar: undefined, verdict: undefined },
    numbers: { p50_us: 394.6, p50_max_us: 430.2, p99_us: 1_133 },
  });

  it("is the middle of an incident's commits, synchronous full, and the slowest process's", () => {
    const rows = [
      commits("an incident's commit, synchronous normal"),
      commits("an incident's commit, synchronous full"),
    ];
    assert.deepStrictEqual(commitFigureOf(rows), { fileCommitUs: { value: 395, worst: 430 } });
    assert.isUndefined(commitFigureOf(rows.slice(0, 1)));
    assert.property(figuresOfFile().measured, "fileCommitUs");
  });
});

describe("the figures of the scale tables in docs/bench.md", () => {
  it("are the middle of the processes, and the worst of the same thing", () => {
    const figures = figuresOf([writes, { ...writes, postgres_us: 140, alone_us: 410, rows_bytes: 3_300 }], gateways);
    assert.deepStrictEqual(figures, {
      recordUs: { value: 130, worst: 410 },
      walBytes: { value: 4_000, worst: 4_000 },
      tableBytes: { value: 3_200, worst: 3_300 },
      serverUs: { value: 67, worst: 150 },
    });
  });

  it("stand in the file with command and load, and all else there stays", () => {
    const folder = mkdtempSync(join(tmpdir(), "store-figures-"));
    try {
      const [file, before] = [pathToFileURL(join(folder, "figures.json")), figuresOfFile()];
      writeFileSync(file, JSON.stringify(before));
      put(file, figuresOf([writes], gateways), {
        heading: "postgresql",
        command: "npm run bench-store",
        load: "load 1",
      });
      const { measured, ...others } = JSON.parse(readFileSync(file, "utf8"));
      assert.deepStrictEqual(others, { set: before.set, assumed: before.assumed });
      assert.deepInclude(measured.walBytes, { value: 4_000, worst: 4_000, load: "load 1", unit: "bytes" });
      assert.strictEqual(measured.walBytes.source, "[the bench](bench.md#postgresql), `npm run bench-store`");
      assert.deepStrictEqual(measured.openKiB, before.measured.openKiB);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("options", () => {
  it("choose what a run has time for", () => {
    assert.deepInclude(read([]), { quick: false, parts, processes: 3, rounds: 7, gateways: 3 });
    assert.deepInclude(read(["--quick"]), { quick: true, processes: 1, rounds: 3 });
    assert.deepStrictEqual(read(["--only", "cooldown,writes"]).parts, ["writes", "cooldown"]);
  });

  it("that are wrong are told", () => {
    assert.throws(() => read(["--only", "wrties"]), /--only: expected writes, .*, got "wrties"/);
    assert.throws(() => read(["--gateways", "0"]), /--gateways: expected an integer ≥ 1/);
    assert.throws(() => read(["--fast"]), /--fast/);
  });
});
