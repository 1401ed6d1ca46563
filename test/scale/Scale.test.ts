/**
 * Holds what scripts/scale computes to figures that can be reckoned by hand.
 */
import { assert, describe, it } from "@effect/vitest";
import { read, type Values, valuesOf, withOthers } from "../../scripts/scale/Figures.ts";
import * as Scale from "../../scripts/scale/Scale.ts";
import { bytes, printScale, short, tables } from "../../scripts/scale/ScaleTables.ts";

const figures = read();

/** Round numbers, so that a person can follow. */
const round: Values = withOthers(valuesOf(figures, false), [
  "eventsPerSecond=10",
  "pacedEventUs=100",
  "streamUs=800",
  "recordUs=200",
  "utilisation=0.5",
  "openKiB=100",
  "lingerKiB=10",
  "eventBytes=1024",
  "processMiB=100",
  "walBytes=5000",
  "tableBytes=4000",
]);
const load = { streams: 10_000, runs: 1_000 };

describe("the figures", () => {
  it("give their worst where there is one, and no worst is better than the figure", () => {
    const [usual, worst] = [valuesOf(figures, false), valuesOf(figures, true)];
    assert.strictEqual(worst.recordUs, figures.measured.recordUs.worst);
    assert.strictEqual(usual.recordUs, figures.measured.recordUs.value);
    for (const [name, it] of Object.entries(figures.measured)) assert.isAtLeast(it.worst, it.value, name);
  });

  it("say which command measures each, and under which load, and why each is assumed or set", () => {
    for (const [name, it] of Object.entries(figures.measured)) {
      assert.match(it.source, /^\[the bench\]\(bench\.md#[a-z-]+\), `npm run bench[ a-z\d-]+`$/, name);
      assert.match(it.load, /^\d+ cores, load average /, name);
    }
    for (const [name, it] of Object.entries({ ...figures.set, ...figures.assumed }))
      assert.notStrictEqual(it.why, "", name);
  });

  it("take other numbers by name, and nothing else", () => {
    assert.strictEqual(withOthers(round, ["writes=4"]).writes, 4);
    assert.throws(() => withOthers(round, ["wrties=4"]), "no figure is named wrties");
    for (const text of ["writes", "writes=", "writes=0", "writes=-1", "writes=many", "writes=Infinity"])
      assert.throws(() => withOthers(round, [text]), "above 0");
    assert.throws(() => withOthers(round, ["toString=1"]), "no figure");
  });
});

describe("gateways", () => {
  it("have cores for events and for runs, and room", () => {
    const it = Scale.gateways(load, round);
    assert.strictEqual(it.events, 100_000);
    assert.strictEqual(it.eventCores, 10);
    assert.strictEqual(it.runCores, 1);
    assert.strictEqual(it.processes, 22);
  });

  it("have memory for open streams, for runs that linger as far as there is room, and for themselves", () => {
    // 100 events of 1 KiB, and 10 KiB beside them.
    const it = Scale.gateways(load, round);
    assert.strictEqual(it.openBytes, 10_000 * 100 * 1_024);
    assert.strictEqual(it.lingering, 60_000);
    assert.strictEqual(it.lingerRoom, 22 * 1_024);
    assert.strictEqual(it.lingerBytes, 22 * 1_024 * 110 * 1_024);
    assert.strictEqual(it.memoryBytes, it.openBytes + it.lingerBytes + 22 * 100 * 1_024 ** 2);
    const few = Scale.gateways(load, withOthers(round, ["lingerSeconds=1"]));
    assert.strictEqual(few.lingerBytes, 1_000 * 110 * 1_024);
    const large = Scale.gateways(load, withOthers(round, ["eventBytes=1024000"]));
    assert.isBelow(large.lingerRoom, 22 * 3);
  });

  it("have bytes to clients by the event, and from them by the run", () => {
    const it = Scale.gateways(load, withOthers(round, ["requestBytes=2000"]));
    assert.strictEqual(it.bytesOut, 102_400_000);
    assert.strictEqual(it.bytesIn, 2_000_000);
  });
});

describe("the database", () => {
  it("has a transaction a write, a heartbeat and a look, and the log of each run", () => {
    const it = Scale.database(load, round);
    assert.strictEqual(it.writes, 3_000);
    assert.strictEqual(it.transactions, 3_000 + 22 / 5 + 22);
    assert.strictEqual(it.walBytes, 5_000_000);
    assert.strictEqual(it.lookRows, 22 * 22);
    assert.strictEqual(it.dayBytes, 1_000 * 86_400 * 4_000);
  });

  it("has no more groups of writes than its processes can wait for", () => {
    const it = Scale.database(load, withOthers(round, ["commitMs=100"]));
    assert.strictEqual(it.transactions, 22 * 10 + 22 / 5 + 22);
  });

  for (const [set, binding, primaries] of [
    ["primaryWalMB=1", "WAL", 5],
    ["primaryTransactions=1000", "transactions", 4],
    ["serverUs=20000", "CPU", 4],
    ["primaryLookRows=4", "polls", 11],
  ] as const) {
    it(`has as many primaries as its scarcest limit asks for: ${binding}`, () => {
      const it = Scale.database(load, withOthers(round, [set]));
      assert.strictEqual(Scale.bindingOf(it), binding);
      assert.strictEqual(it.primaries, primaries);
    });
  }

  it("reads no more rows for polls than its primaries can, once there are enough of them", () => {
    const is = withOthers(round, ["primaryLookRows=4"]);
    const { primaries } = Scale.database(load, is);
    assert.isAtMost((Scale.gateways(load, is).processes / primaries) ** 2, is.primaryLookRows);
  });

  it("has poolers only where a server would have too many connections", () => {
    assert.strictEqual(Scale.database(load, withOthers(round, ["primaryConnections=220"])).poolers, 0);
    assert.strictEqual(
      Scale.database(load, withOthers(round, ["primaryConnections=219", "poolerClients=100"])).poolers,
      3,
    );
  });
});

describe("the cost", () => {
  it("has cores with 4 GiB each, memory beyond that, two machines a primary and two disks", () => {
    const is = withOthers(round, [
      "coreDollars=1",
      "gibDollars=1",
      "diskDollars=1",
      "tokenDollars=1",
      "trafficDollars=1",
    ]);
    const it = Scale.cost(load, 1, is);
    assert.strictEqual(it.gateways, 22 * 730);
    assert.strictEqual(it.database, 2 * 32 * 730);
    assert.closeTo(it.disk, (1_000 * 86_400 * 4_000 * 4) / 1e9, 1e-6);
    assert.closeTo(Scale.cost(load, 7, is).disk, 7 * it.disk, 1e-6);
    const seconds = 730 * 3_600;
    assert.closeTo(it.traffic, (102_400_000 * seconds) / 1e9, 1e-3);
    const own = it.gateways + it.database + it.disk;
    assert.closeTo(it.millionRuns, (own / (1_000 * seconds)) * 1e6, 1e-6);
    assert.closeTo(it.share, own / (0.1 * seconds), 1e-9);
    const fat = Scale.cost(load, 1, withOthers(is, ["openKiB=10240"]));
    assert.isAbove(fat.gateways, it.gateways);
  });
});

describe("the walls", () => {
  it("are all reached, each where it is asked for once over, and no earlier", () => {
    for (const wall of Scale.walls) {
      const at = Scale.reachedAt(wall, round);
      if (at === undefined) continue;
      assert.isAbove(wall.times(at, round), 1, wall.what);
      const less = { runs: at.runs * 0.8, streams: at.streams * 0.8 };
      assert.isAtMost(wall.times(less, round), 1, wall.what);
    }
  });

  it("that no load reaches are left out", () => {
    assert.isUndefined(Scale.reachedAt({ what: "", instead: "", times: () => 1 }, round));
  });
});

describe("the tables", () => {
  it("have a name each", () => {
    for (const name of Object.keys(tables)) assert.match(printScale(name), /^\|.*\n\| --- /, name);
    assert.throws(() => printScale("none"), "no table is named none");
  });

  it("write numbers short", () => {
    assert.deepStrictEqual([0, 0.0042, 1.55, 13, 126, 1_234, 12_345, 5_000_000, 2.5e9].map(short), [
      "0",
      "0.0042",
      "1.6",
      "13",
      "130",
      "1,230",
      "12,300",
      "5 million",
      "2.5 billion",
    ]);
    assert.deepStrictEqual([0, 999, 1_000, 12_500_000, 9.94e14].map(bytes), [
      "0 B",
      "999 B",
      "1 KB",
      "12.5 MB",
      "994 TB",
    ]);
  });
});
