/**
 * Shows the judge of gateways what is right, and each thing that it must find.
 */
import { assert, describe, it } from "@effect/vitest";
import { type GatewayRemains, missed, problems } from "../../../scripts/kill/gateways/GatewayJudge.ts";
import type { Tried } from "../../../scripts/kill/streams/StreamClient.ts";
import type { Decided } from "../../../scripts/kill/streams/StreamLaws.ts";
import * as E from "../../recorder/Entries.ts";

const text = (...deltas: ReadonlyArray<number>): string => deltas.map((at) => `r2.${at}·`).join("");

const whole: Tried = {
  node: 1,
  status: 200,
  text: text(0, 1, 2),
  calls: 0,
  outcome: "whole",
  said: "ended",
  isAttached: false,
  isTaken: true,
  at: 0,
};
const broken: Tried = { ...whole, node: 0, text: "r1.0·", outcome: "broken", said: "aborted" };
const attached: Tried = { ...whole, node: 2, isAttached: true };

const recordOf = (lateMs: number | undefined, ...entries: Parameters<typeof E.folded>[0]): Decided => {
  const record = E.folded([E.begun("r"), E.attempt(1), ...entries]);
  if (record === undefined) throw new Error("it was begun");
  return { ...record, lateMs };
};
const crashed = { failure: { kind: "crashed" } } as const;
const gone = { state: "stopped", reason: "client_gone" } as const;

/** A stream whose gateway was killed behind its first word, and that its client has from another one. */
const good: GatewayRemains = {
  fault: "kill -9",
  state: "shown",
  tries: [broken, whole],
  again: attached,
  asked: 2,
  slowness: 1,
  wasIn: true,
  hasMet: true,
  records: [recordOf(4_000, E.opened("r", 1, crashed), E.ended(gone)), recordOf(100, E.ended())],
};
const kept: Partial<GatewayRemains> = { fault: "reset", tries: [whole], again: undefined, asked: 1 };

/** What tells nothing of a stream under its fault. */
const nothing: Readonly<Record<string, readonly [Partial<GatewayRemains>, RegExp]>> = {
  "a stream that was over before its gateway was killed": [
    { wasIn: false },
    /kill -9, shown: missed: .*had left its state/,
  ],
  "a signal that no process got": [{ hasMet: false }, /the fault hit nothing/],
  "a killed gateway's stream of which no other one has taken a run": [
    { records: [recordOf(100, E.ended())] },
    /no other gateway took/,
  ],
  "a clock that was right": [
    { ...kept, fault: "clock ahead", records: [recordOf(100, E.ended())], hasMet: false },
    /clock ahead, shown: missed: the fault hit nothing/,
  ],
};

const bad: Readonly<Record<string, readonly [Partial<GatewayRemains>, RegExp]>> = {
  "a stream that is lost": [{ tries: [broken, broken], again: undefined }, /lost: 2 tries, the last broken/],
  "a stream that nobody has asked for": [{ tries: [], asked: 0, again: undefined }, /no client sent a request/],
  "a client that notices a reset": [
    { ...kept, tries: [broken, whole], asked: 2, records: [recordOf(100, E.ended())] },
    /its client noticed: broken/,
  ],
  "a delta that came twice": [{ tries: [{ ...broken, text: "r1.0·r1.0·" }, whole] }, /a client has "r1/],
  "a delta that is missing": [{ tries: [{ ...broken, text: "r1.0·r1.2·" }, whole] }, /a client has "r1/],
  "two responses in one": [{ tries: [{ ...broken, text: "r1.0·r3.1·" }, whole] }, /a client has "r1/],
  "a whole response without its text": [
    { tries: [broken, { ...whole, text: "" }], again: undefined },
    /a client has ""/,
  ],
  "a call that was handed over twice": [
    {
      state: "called",
      tries: [
        { ...whole, calls: 1 },
        { ...whole, calls: 1 },
      ],
      again: undefined,
    },
    /delivered 2 times/,
  ],
  "a call that did not come": [{ state: "called" }, /delivered 0 times/],
  "a request without a reason": [{ asked: 3 }, /received 3 requests, of which 2/],
  "a request for a response that was there": [
    { tries: [broken, { ...whole, isAttached: true }] },
    /received 2 requests, of which 1/,
  ],
  "a repeat that is a run of its own": [{ again: { ...attached, isAttached: false } }, /a different response: whole/],
  "a repeat that has something else": [{ again: { ...attached, text: text(0) } }, /a different response: whole/],
  "a stream of which nothing is on record": [{ records: [] }, /no run is on record/],
  "a run without an end": [{ records: [recordOf(undefined)] }, /has no end: live/],
  "a run that is decided late": [{ records: [recordOf(8_001, E.ended(gone))] }, /decided after 8001 ms/],
  "a run that is decided twice": [
    { records: [recordOf(1, E.opened("r", 1, crashed), E.opened("r", 2, crashed), E.ended(gone))] },
    /decided twice/,
  ],
  "a run that was taken from a gateway that lives": [
    { ...kept, records: [recordOf(1, E.ended(gone))] },
    /taken from a live gateway/,
  ],
};

describe("The judge of gateways", () => {
  it("accepts a stream that a client got from another gateway, and one whose client noticed nothing", () => {
    assert.deepStrictEqual(problems(good), []);
    assert.deepStrictEqual(problems({ ...good, ...kept, records: [recordOf(100, E.ended())] }), []);
  });

  it("accepts a client without a response that was told the reason", () => {
    const told = { ...broken, outcome: "told" } as const;
    assert.deepStrictEqual(problems({ ...good, state: "asking", tries: [told], again: undefined }), []);
  });

  it("allows a busy machine as much more time as it is slower", () => {
    assert.deepStrictEqual(problems({ ...good, slowness: 2, records: [recordOf(15_000, E.ended(gone))] }), []);
    assert.lengthOf(problems({ ...good, slowness: 2, records: [recordOf(16_001, E.ended(gone))] }), 1);
    const starved = { ...kept, slowness: 2, records: [recordOf(1, E.ended(gone))] };
    assert.deepStrictEqual(problems({ ...good, ...starved }), []);
  });

  it("misses nothing of a stream that another gateway took over, nor of one that its own gateway keeps", () => {
    assert.isUndefined(missed(good));
    assert.isUndefined(missed({ ...good, ...kept, records: [recordOf(100, E.ended())] }));
  });

  for (const [name, [more, why]] of Object.entries(nothing)) {
    it(`misses ${name}`, () => assert.match(missed({ ...good, ...more }) ?? "nothing", why));
  }

  for (const [name, [more, problem]] of Object.entries(bad)) {
    it(`finds ${name}`, () => {
      const found = problems({ ...good, ...more });
      assert.lengthOf(found, 1, found.join());
      assert.match(found[0] ?? "", problem);
    });
  }
});
