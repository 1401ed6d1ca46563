import { assert, describe, it } from "@effect/vitest";
import { type AttachEntry, AttachRegistry, type AttachTerms } from "../../../src/gateway/attach/AttachRegistry.ts";
import type { AttachWish } from "../../../src/gateway/attach/AttachWish.ts";
import { ByteLog } from "../../../src/gateway/attach/ByteLog.ts";
import { seeded } from "../../Seeded.ts";

const terms = (given: Partial<AttachTerms> = {}): AttachTerms => ({
  ...{ request: "r", holder: "h", lingerMs: 100, idempotencyKey: undefined },
  ...given,
});

const wish = (given: Partial<AttachWish> = {}): AttachWish => ({
  ...{ lingerMs: 100, repeats: false, asked: false, forbidden: false, idempotencyKey: undefined },
  ...given,
});

const never = () => false;
const always = () => true;
const again = wish({ repeats: true });
const bytes = (length: number, of = 1) => new Uint8Array(length).fill(of);

const all = (log: ByteLog, from: number): Buffer => {
  const parts: Array<Uint8Array> = [];
  for (let at = from, part = log.readFrom(at); part !== undefined; part = log.readFrom(at)) {
    parts.push(part);
    at += part.byteLength;
  }
  return Buffer.concat(parts);
};

describe("The log of a response", () => {
  it("keeps a chunk that fills its buffer without a copy, and copies a view of a larger packet", () => {
    const log = new ByteLog();
    const packet = bytes(5_000, 1);
    log.append(packet.subarray(50));
    assert.strictEqual(log.readFrom(0)?.buffer, packet.buffer);
    assert.strictEqual(log.allocated, 5_000);
    const view = bytes(64 * 1024, 2).subarray(0, 1_500);
    log.append(view);
    assert.notStrictEqual(log.readFrom(4_950)?.buffer, view.buffer);
    // What is kept stands behind no hole, so that long chunks between short ones take no more than twice their bytes.
    for (let n = 0; n < 20; n += 1) {
      log.append(bytes(2_000, 3));
      log.append(bytes(10, 4));
      assert.isAtMost(log.allocated, 2 * log.length + 4_096);
    }
    const { length } = log;
    assert.strictEqual(all(log, 0).byteLength, length);
    log.dropUntil(4_950);
    assert.isAtMost(log.allocated, 2 * (length - 4_950) + 4_096, "a kept chunk goes with its whole buffer");
  });

  it("frees the unused part of its last segment at the end of a response, without changing bytes that a reader has", () => {
    for (const length of [0, 3_000, 20_000, 70_000, 200_000, 262_144]) {
      const log = new ByteLog();
      const whole = Buffer.from(Array.from({ length }, (_, n) => n % 251));
      for (let at = 0; at < length; at += 150) log.append(Uint8Array.from(whole.subarray(at, at + 150)));
      const given = log.readFrom(Math.max(0, length - 100));
      log.trim();
      log.trim();
      assert.isAtMost(log.allocated - length, 8 * 1024, `${length} bytes`);
      assert.isTrue(all(log, 0).equals(whole), `${length} bytes`);
      if (given !== undefined) assert.isTrue(whole.subarray(length - 100).equals(given));
      log.append(bytes(10, 7));
      assert.strictEqual(all(log, length).toString("hex"), "07".repeat(10), "what comes behind the end");
    }
  });

  it("returns every byte once from any offset, in bounded memory (20 seeds)", () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = seeded(seed);
      const log = new ByteLog();
      let whole = Buffer.alloc(0);
      for (let step = 0; step < 60; step += 1) {
        const chunk = Buffer.from(Array.from({ length: Math.floor(random() ** 4 * 9_000) }, () => random() * 256));
        log.append(chunk);
        whole = Buffer.concat([whole, chunk]);
        const from = Math.floor(random() * (whole.byteLength + 1));
        assert.isTrue(all(log, from).equals(whole.subarray(from)), `seed ${seed}, step ${step}`);
        assert.isAtMost(log.allocated, 2 * whole.byteLength + 4_096, `seed ${seed}`);
      }
      const kept = Math.floor(random() * whole.byteLength);
      const before = log.allocated;
      log.dropUntil(kept);
      assert.isTrue(all(log, kept).equals(whole.subarray(kept)), `seed ${seed}`);
      assert.isAtMost(log.allocated, before);
      log.dropUntil(log.length);
      assert.isAtMost(log.allocated, 64 * 1024);
      assert.strictEqual(log.length, whole.byteLength);
    }
  });
});

describe("The registry of runs that may be attached to", () => {
  it("attaches a repeat once the reader of its run has left, and never next to a live reader", () => {
    const registry = new AttachRegistry();
    const { entry } = registry.begin(terms());
    assert.isUndefined(registry.findRepeated("r", again, never), "its reader lives");
    registry.recordDetach(entry, 10, false);
    assert.isUndefined(registry.findRepeated("other", again, never));
    assert.isUndefined(registry.findRepeated("r", wish({ forbidden: true, repeats: true }), always));
    assert.strictEqual(registry.findRepeated("r", again, never), entry);
    registry.recordAttach(entry);
    assert.isUndefined(registry.findRepeated("r", again, never), "another has taken it up");
  });

  it("replaces a reader with a silent socket by a declared repeat, and by no other request", () => {
    const registry = new AttachRegistry();
    const { entry } = registry.begin(terms());
    assert.strictEqual(registry.findRepeated("r", again, always), entry);
    assert.isUndefined(registry.findRepeated("r", wish(), always));
  });

  it("attaches an identical request without a word only while the run is unfinished and its reader has left", () => {
    const registry = new AttachRegistry();
    const { entry } = registry.begin(terms());
    assert.isUndefined(registry.findRepeated("r", wish(), never));
    registry.recordDetach(entry, 0, false);
    assert.strictEqual(registry.findRepeated("r", wish(), never), entry);
    registry.recordEnd(entry, "whole", 5);
    assert.isUndefined(registry.findRepeated("r", wish(), never));
    assert.strictEqual(registry.findRepeated("r", again, never), entry, "the last packet may have been lost");
  });

  it("treats two idempotency keys as two requests, one key as a repeat, and lets x-recovery-attach decide", () => {
    const registry = new AttachRegistry();
    const { entry } = registry.begin(terms({ idempotencyKey: "a" }));
    registry.recordDetach(entry, 0, true);
    registry.recordEnd(entry, "whole", 0);
    assert.strictEqual(registry.findRepeated("r", wish({ idempotencyKey: "a" }), never), entry);
    assert.isUndefined(registry.findRepeated("r", wish({ idempotencyKey: "b", repeats: true }), never));
    assert.strictEqual(
      registry.findRepeated("r", wish({ idempotencyKey: "b", asked: true, repeats: true }), never),
      entry,
    );
  });

  it("attaches no repeat to a run that has failed or was cancelled", () => {
    for (const how of ["broken", "cancelled"] as const) {
      const registry = new AttachRegistry();
      const { entry } = registry.begin(terms());
      registry.recordDetach(entry, 0, false);
      registry.recordEnd(entry, how, 0);
      assert.isUndefined(registry.findRepeated("r", wish({ asked: true, repeats: true }), always));
    }
  });

  it("attaches several repeats to different runs: first by name, then runs that lost their reader, then runs that were read to the end", () => {
    const registry = new AttachRegistry();
    const had = registry.begin(terms()).entry;
    const late = registry.begin(terms()).entry;
    const early = registry.begin(terms()).entry;
    const named = registry.begin(terms({ idempotencyKey: "k" })).entry;
    registry.recordDetach(had, 1, true);
    registry.recordEnd(had, "whole", 1);
    registry.recordDetach(late, 3, false);
    registry.recordDetach(early, 2, false);
    registry.recordDetach(named, 9, false);
    const found = [];
    for (const asked of [wish({ idempotencyKey: "k", repeats: true }), again, again, again, again]) {
      const one = registry.findRepeated("r", asked, never);
      if (one !== undefined) registry.recordAttach(one);
      found.push(one);
    }
    assert.deepStrictEqual(found, [named, early, late, had, undefined]);
  });

  it("evicts an entry a fixed time after its last reader and after its end, never while it is read", () => {
    const registry = new AttachRegistry();
    const { entry } = registry.begin(terms({ lingerMs: 100 }));
    assert.isUndefined(registry.expiryOf(entry));
    registry.recordDetach(entry, 50, false);
    assert.strictEqual(registry.expiryOf(entry), 150);
    registry.recordAttach(entry);
    assert.isUndefined(registry.expiryOf(entry));
    registry.recordDetach(entry, 70, false);
    registry.recordEnd(entry, "whole", 90);
    assert.strictEqual(registry.expiryOf(entry), 190);
  });

  it("finds a run by id only for the holder of its credential, even after its eviction", () => {
    const registry = new AttachRegistry({ runBytes: 10 });
    const { entry } = registry.begin(terms({ holder: "mine" }));
    registry.setRunId(entry, "gw_1");
    assert.strictEqual(registry.find("gw_1", "mine"), entry);
    assert.isUndefined(registry.find("gw_1", "your"));
    assert.isUndefined(registry.find("gw_2", "mine"));
    assert.isUndefined(registry.find("gw_2", ""));
    assert.deepStrictEqual(registry.append(entry, [bytes(11)]), [entry]);
    assert.strictEqual(entry.evicted, "run_bytes");
    assert.strictEqual(registry.find("gw_1", "mine"), "evicted");
    assert.isUndefined(registry.find("gw_1", "your"));
  });

  it("evicts the oldest where there are too many or they are too long together, and goes on for its reader", () => {
    const many = new AttachRegistry({ runs: 2 });
    const [first] = [many.begin(terms()), many.begin(terms())];
    assert.deepStrictEqual(many.begin(terms()).evicted, [first?.entry]);
    assert.strictEqual(first?.entry.evicted, "runs");
    assert.strictEqual(many.size, 2);

    const long = new AttachRegistry({ processBytes: 20_000 });
    const old = long.begin(terms()).entry;
    const young = long.begin(terms()).entry;
    long.append(old, [bytes(9_000)]);
    assert.deepStrictEqual(long.append(young, [bytes(12_000)]), [old]);
    assert.strictEqual(old.evicted, "process_bytes");
    assert.strictEqual(old.log.length, 9_000, "its reader has what it has not read yet");
    assert.strictEqual(all(old.log, 0).byteLength, 9_000);
    long.recordDetach(old, 0, false);
    assert.isUndefined(long.findRepeated("r", again, never));
  });

  it("holds its limits and gives nobody another's response, whatever happens (300 seeds)", () => {
    for (let seed = 1; seed <= 300; seed += 1) play(seed);
  });
});

/** A random life of a registry, beside what its user knows of it. */
const play = (seed: number): void => {
  const random = seeded(seed);
  const pick = (count: number) => Math.floor(random() * count);
  const limits = { runBytes: 20_000, processBytes: 60_000, runs: 6 };
  const registry = new AttachRegistry(limits);
  const known: Array<{ readonly entry: AttachEntry; read: boolean; failed: boolean; silent: boolean }> = [];
  let now = 0;
  for (let step = 0; step < 120; step += 1) {
    now += pick(20);
    const one = known[pick(known.length || 1)];
    const does = pick(8);
    if (does === 0 || one === undefined) {
      // The key of the request may be computed later.
      const request = pick(2) === 0 ? `r${pick(3)}` : "";
      const { entry } = registry.begin(terms({ lingerMs: 50, request, holder: `h${pick(2)}` }));
      registry.setRunId(entry, `gw_${known.length}`);
      known.push({ entry, read: true, failed: false, silent: pick(4) === 0 });
    } else if (does <= 2) {
      registry.append(one.entry, [bytes(pick(9_000))]);
      if (one.entry.terms.request === "") registry.setRequest(one.entry, `r${pick(3)}`);
    } else if (does === 3) {
      registry.recordDetach(one.entry, now, pick(2) === 0);
      one.read = false;
    } else if (does === 4) {
      const how = (["whole", "broken", "cancelled"] as const)[pick(3)] ?? "whole";
      if (one.entry.end === undefined) one.failed = how !== "whole";
      registry.recordEnd(one.entry, how, now);
    } else if (does === 5) {
      const key = `r${pick(3)}`;
      const asked = wish({ repeats: pick(2) === 0 });
      const isSilent = (entry: AttachEntry) => known.find((it) => it.entry === entry)?.silent === true;
      const found = registry.findRepeated(key, asked, isSilent);
      const of = known.find(({ entry }) => entry === found);
      const waits = registry.entries.some(({ end, isRead }) => end === undefined && !isRead);
      const may = registry.mightAnswer(asked);
      assert.strictEqual(may, registry.size > 0 && (asked.repeats || waits), `seed ${seed}: what may be found`);
      if (of !== undefined) {
        assert.isTrue(may, `seed ${seed}: it is found where it is not looked for`);
        assert.strictEqual(of.entry.terms.request, key, `seed ${seed}: another request's`);
        assert.isFalse(of.failed, `seed ${seed}: it has failed`);
        assert.isTrue(!of.read || (of.silent && asked.repeats), `seed ${seed}: its reader lives`);
        assert.isUndefined(of.entry.evicted, `seed ${seed}: it was evicted`);
        registry.recordAttach(of.entry);
        of.read = true;
      }
    } else if (does === 6) {
      const holder = `h${pick(2)}`;
      const found = registry.find(one.entry.runId ?? "", holder);
      if (one.entry.terms.holder !== holder) assert.isUndefined(found, `seed ${seed}: another holder's`);
      else if (found !== "evicted" && found !== undefined) assert.strictEqual(found, one.entry, `seed ${seed}`);
    } else {
      const at = registry.expiryOf(one.entry);
      assert.isTrue(!one.read || at === undefined, `seed ${seed}: it expires while it is read`);
      if (at !== undefined && at <= now) registry.drop(one.entry);
    }
    assert.isAtMost(registry.size, limits.runs, `seed ${seed}`);
    assert.isAtMost(registry.bytes, limits.processBytes, `seed ${seed}`);
    const held = registry.entries.reduce((sum, { log }) => sum + log.allocated, 0);
    assert.strictEqual(registry.bytes, held, `seed ${seed}: the account is true`);
    for (const { log } of registry.entries) assert.isAtMost(log.length, limits.runBytes, `seed ${seed}`);
  }
  for (const { entry } of known) registry.drop(entry);
  assert.strictEqual(registry.size, 0);
  assert.strictEqual(registry.bytes, 0);
};
