import { assert, describe, it } from "@effect/vitest";
import type { Tried, Wanted } from "../../scripts/cluster/Client.ts";
import type { Diary } from "../../scripts/cluster/Diary.ts";
import { argumentsOf, type Drawn, idIn, protocols, streams, textOf } from "../../scripts/cluster/Drawn.ts";
import { holds, judged } from "../../scripts/cluster/Judge.ts";
import type { Asked } from "../../scripts/cluster/Provider.ts";
import { Reading } from "../../scripts/cluster/Reading.ts";
import { lines } from "../../scripts/cluster/Report.ts";
import { bodyOf, wholeOf } from "../../scripts/cluster/Wires.ts";

const drawn: Drawn = { id: 1, protocol: "chat", kind: "call", deltas: 4, everyMs: 40 };

const tried = (more: Partial<Tried> = {}): Tried => ({
  from: 1_000,
  to: 2_000,
  place: { node: 0, life: 1 },
  run: "gw_1",
  status: 200,
  text: textOf(drawn),
  calls: [argumentsOf(drawn)],
  outcome: "whole",
  said: "ended",
  ...more,
});

const wanted = (tries: ReadonlyArray<Tried>, of: Partial<Drawn> = {}): Wanted => ({
  drawn: { ...drawn, ...of },
  tries,
  isOver: true,
});

const asked = (more: Partial<Asked> = {}): Asked => ({
  stream: 1,
  at: 1_000,
  isFault: false,
  isWhole: true,
  closedAt: 2_000,
  ...more,
});

const broken = tried({ outcome: "broken", text: "1.0 ", calls: [], said: "aborted" });
const refused = tried({ outcome: "broken", status: 503, run: undefined, text: "", calls: [], said: "closing" });
const kill = { at: 2_000, goneAt: 2_010, node: 0, life: 1 };

/** A stream whose gateway was killed in the moment in which it was whole: in each diary, so that something happens in each. */
const met: Drawn = { ...drawn, id: 2 };
const metBy = { ...kill, node: 2 };
const whole2 = wanted(
  [tried({ place: { node: 2, life: 1 }, run: "gw_met", text: textOf(met), calls: [argumentsOf(met)] })],
  met,
);

/** A diary in which nothing happens beside what is given. */
const bare = (more: Partial<Diary> = {}): Diary => ({
  leaseMs: 3_000,
  wanted: [wanted([tried()])],
  asked: [asked()],
  kills: [],
  stops: [],
  left: [],
  remains: { runs: new Set(["gw_1"]), open: 0, questions: 0 },
  crashes: [],
  versions: [["newer"], ["newer"]],
  schema: { first: 6, last: 6 },
  slowness: 1,
  ...more,
});

/** Its gateway was killed before it sent anything. */
const killedFirst = tried({
  outcome: "broken",
  status: undefined,
  run: undefined,
  text: "",
  calls: [],
  said: "aborted",
});
const told = tried({ outcome: "told", status: 409, run: undefined, text: "", calls: [], said: "no" });

const diary = (more: Partial<Diary> = {}): Diary => {
  const { asked: all, kills, remains, wanted: streams, ...rest } = bare(more);
  return {
    ...rest,
    wanted: [...streams, whole2],
    asked: [...all, asked({ stream: met.id })],
    kills: [...kills, metBy],
    remains: { ...remains, runs: new Set([...remains.runs, "gw_met"]) },
  };
};

const brokenBars = (it: Diary): ReadonlyArray<string> =>
  judged(it).bars.flatMap(({ found, what }) => (found.length > 0 ? [what] : []));

describe("the judge of a cluster", () => {
  it("has nothing against a stream that is whole, and counts one that a kill broke as recovered by its repeat", () => {
    assert.deepStrictEqual(brokenBars(diary()), []);
    const again = diary({
      wanted: [wanted([broken, tried({ from: 3_000, to: 4_000, place: { node: 1, life: 1 } })])],
      asked: [asked(), asked({ at: 3_000, closedAt: 4_000 })],
      kills: [kill],
      left: [{ run: "gw_1", killedAt: 2_000, decidedAt: 9_900 }],
    });
    assert.deepStrictEqual(brokenBars(again), []);
    assert.deepInclude(judged(again), { streamsBroken: 1, recovered: 1, whole: 2, deadRuns: 1, latestMs: 7_900 });
  });

  const cases: ReadonlyArray<readonly [string, Partial<Diary>, string]> = [
    ["a client that has not the whole text", { wanted: [wanted([tried({ text: "1.0 " })])] }, "lost"],
    ["a client that never had a response", { wanted: [wanted([])], asked: [] }, "lost"],
    ["a call that did not come", { wanted: [wanted([tried({ calls: [] })])] }, "lost"],
    [
      "a delta that came twice",
      { wanted: [wanted([tried({ text: "1.0 1.0 1.1 " }), tried()])] },
      "twice: text or a call at a client",
    ],
    [
      "a call that was handed over twice",
      { wanted: [wanted([tried(), tried()])] },
      "twice: text or a call at a client",
    ],
    [
      "a request that nobody has a reason for",
      { asked: [asked(), asked({ at: 2_500, closedAt: 3_000 })] },
      "twice: requests without a reason",
    ],
    [
      "a second payment behind a try that was killed before its request was sent",
      {
        wanted: [wanted([killedFirst, tried({ from: 3_000, to: 6_000, place: { node: 1, life: 1 } })])],
        kills: [kill],
        asked: [asked({ at: 3_100, closedAt: 4_000 }), asked({ at: 4_500, closedAt: 6_000 })],
      },
      "twice: requests without a reason",
    ],
    [
      "a payment for a try that no gateway took",
      {
        wanted: [wanted([{ ...killedFirst, place: undefined }, tried({ from: 3_000, to: 6_000 })])],
        asked: [asked({ at: 1_500, closedAt: 2_000 }), asked({ at: 3_100, closedAt: 6_000 })],
      },
      "twice: requests without a reason",
    ],
    [
      "a call that was handed over in a broken try, and again in a whole one",
      {
        wanted: [wanted([tried({ outcome: "broken", said: "aborted" }), tried({ from: 3_000, to: 4_000 })])],
        kills: [kill],
        asked: [asked(), asked({ at: 3_000, closedAt: 4_000 })],
      },
      "twice: text or a call at a client",
    ],
    [
      "a provider's request that is open at the end",
      { asked: [asked({ closedAt: undefined })] },
      "requests open at the end",
    ],
    [
      "a client that is told to ask no more although nothing had broken",
      { wanted: [wanted([told])] },
      "told to ask no more without need",
    ],
    [
      "too many clients that are told to ask no more",
      {
        wanted: [1, 3].map((id) => wanted([{ ...broken, text: "" }, told], { id, kind: "cut" })),
        asked: [1, 3].map((stream) => asked({ stream, isFault: true })),
      },
      "told to ask no more without need",
    ],
    [
      "two requests at the same time",
      {
        wanted: [wanted([broken, tried({ from: 3_000, to: 4_000 })])],
        kills: [kill],
        asked: [asked({ closedAt: 30_000 }), asked({ at: 5_000, closedAt: 6_000 })],
      },
      "twice: requests without a reason",
    ],
    [
      "a response that broke at a gateway that lived",
      {
        wanted: [wanted([broken, tried({ from: 3_000, to: 4_000 })])],
        kills: [{ ...kill, node: 1 }],
        asked: [asked(), asked({ at: 3_000 })],
      },
      "survivors' streams touched",
    ],
    [
      "a run that was decided late",
      { left: [{ run: "gw_1", killedAt: 0, decidedAt: 8_001 }] },
      "a dead gateway's run decided later than lease + 5 s",
    ],
    [
      "a run that was not decided",
      { left: [{ run: "gw_1", killedAt: 0, decidedAt: undefined }] },
      "a dead gateway's run decided later than lease + 5 s",
    ],
    ["a run without an end", { remains: { runs: new Set(["gw_1"]), open: 1, questions: 0 } }, "runs without an end"],
    [
      "text of a run that the store does not know",
      { remains: { runs: new Set(["gw_2"]), open: 0, questions: 0 } },
      "text of runs that are not on record",
    ],
    [
      "a response that broke at a gateway that was told to end",
      {
        wanted: [wanted([broken, tried({ from: 3_000, to: 4_000 })])],
        stops: [kill],
        asked: [asked(), asked({ at: 3_000 })],
      },
      "survivors' streams touched",
    ],
    [
      "a request that a gateway refused which was not told to end",
      { wanted: [wanted([refused, tried()])], stops: [{ ...kill, life: 2 }] },
      "survivors' streams touched",
    ],
    ["a gateway that crashed", { crashes: ["out of memory"] }, "gateways that ended by themselves"],
  ];

  for (const [what, more, bar] of cases) {
    it(`finds ${what}`, () => {
      const verdict = judged(diary(more));
      assert.deepStrictEqual(brokenBars(diary(more)), [bar]);
      assert.isFalse(holds(verdict));
      assert.include(lines(verdict, diary(more)).join("\n"), `${bar}:\n  `);
    });
  }

  const nothing: ReadonlyArray<readonly [string, Diary, ReadonlyArray<string>]> = [
    [
      "no load",
      bare({ wanted: [], asked: [], kills: [kill] }),
      [
        "no client wanted a stream",
        "the provider was never asked",
        "no client has a whole stream",
        "no gateway ended while it had a response",
      ],
    ],
    ["no end of a gateway", bare(), ["no gateway ended", "no gateway ended while it had a response"]],
    [
      "ends of idle gateways alone",
      bare({ kills: [{ ...kill, node: 1 }] }),
      ["no gateway ended while it had a response"],
    ],
    [
      "no whole stream",
      bare({ wanted: [wanted([told])], kills: [kill], asked: [asked({ isFault: true })] }),
      ["no client has a whole stream"],
    ],
  ];
  for (const [what, play, found] of nothing)
    it(`finds that a play with ${what} proves nothing`, () => {
      const verdict = judged(play);
      assert.isFalse(holds(verdict));
      assert.deepStrictEqual(verdict.bars.find((bar) => bar.what === "what a play must have")?.found, found);
    });

  it("allows a busy machine more time by the measured factor, and a quiet one none", () => {
    const late = { left: [{ run: "gw_1", killedAt: 0, decidedAt: 15_000 }] };
    assert.deepStrictEqual(brokenBars(diary({ ...late, slowness: 2 })), []);
    assert.deepStrictEqual(brokenBars(diary({ ...late, slowness: 1.5 })), [
      "a dead gateway's run decided later than lease + 5 s",
    ]);
    const felt = (slowness: number) =>
      diary({
        wanted: [wanted([broken, tried({ from: 9_000, to: 10_000, place: { node: 1, life: 1 } })])],
        asked: [asked(), asked({ at: 9_000, closedAt: 10_000 })],
        kills: [{ ...kill, at: 7_000, goneAt: 7_010 }],
        slowness,
      });
    assert.deepStrictEqual(brokenBars(felt(2)), []);
    assert.deepStrictEqual(brokenBars(felt(1)), ["survivors' streams touched"]);
    // A decision that never comes is too late on any machine.
    const never = { left: [{ run: "gw_1", killedAt: 0, decidedAt: undefined }], slowness: 100 };
    assert.deepStrictEqual(brokenBars(diary(never)).length, 1);
  });

  it("lets a killed gateway lose the record of a run that began in its last second, and of no other", () => {
    const killedAfter = (ms: number, slowness = 1) =>
      diary({
        remains: { runs: new Set(["gw_2"]), open: 0, questions: 0 },
        kills: [{ ...kill, at: 1_000 + ms, goneAt: 1_010 + ms }],
        slowness,
      });
    assert.deepStrictEqual(brokenBars(killedAfter(1_000)), []);
    assert.deepStrictEqual(brokenBars(killedAfter(1_001)), ["text of runs that are not on record"]);
    assert.deepStrictEqual(brokenBars(killedAfter(2_000, 2)), []);
    assert.deepStrictEqual(brokenBars(killedAfter(-1)), ["text of runs that are not on record"]);
  });

  it("reports requests to a draining gateway, and counts whole responses by version", () => {
    const [before, after] = [
      { node: 0, life: 1 },
      { node: 1, life: 2 },
    ];
    const rolled = diary({
      wanted: [
        wanted([tried({ place: before })]),
        wanted([refused, { ...refused, status: undefined }, tried({ place: after })]),
      ],
      stops: [kill],
      versions: [
        ["older", "newer"],
        ["older", "newer", "older"],
      ],
      schema: { first: 5, last: 6 },
    });
    assert.deepStrictEqual(brokenBars(rolled), []);
    const verdict = judged(rolled);
    assert.deepInclude(verdict, { refusedAtStops: 2, brokenByKills: 0, byVersion: { older: 1, newer: 1 } });
    const said = lines(verdict, rolled);
    for (const row of [/^gateways rolled to the newer version +2$/, /^gateways rolled back to the older one +1$/]) {
      assert.isTrue(
        said.some((line) => row.test(line)),
        said.join("\n"),
      );
    }
    assert.isTrue(said.some((line) => /^schema version at the start and at the end +5, 6$/.test(line)));
  });

  it("accepts one broken response per cut by the provider, and no second one", () => {
    const whole = tried({ from: 5_000, to: 6_000, calls: [] });
    const brokenAgain = { ...broken, from: 3_000, to: 4_000 };
    const requests = [
      asked({ isFault: true }),
      asked({ at: 3_000, closedAt: 4_000 }),
      asked({ at: 5_000, closedAt: 6_000 }),
    ];
    const once = diary({ wanted: [wanted([broken, whole], { kind: "cut" })], asked: requests.slice(0, 2) });
    assert.deepStrictEqual(brokenBars(once), []);
    assert.strictEqual(judged(once).brokenByProvider, 1);
    const twice = diary({ wanted: [wanted([broken, brokenAgain, whole], { kind: "cut" })], asked: requests });
    assert.deepStrictEqual(brokenBars(twice), ["survivors' streams touched"]);
  });
});

describe("the streams of a cluster", () => {
  for (const protocol of protocols) {
    it(`of ${protocol} are read as they were written, in any pieces, and are not whole without their end`, () => {
      const one: Drawn = { ...drawn, protocol };
      const bytes = Buffer.from(wholeOf(one));
      const reading = new Reading(protocol);
      for (let at = 0; at < bytes.length; at += 7) reading.push(bytes.subarray(at, at + 7));
      assert.deepStrictEqual([reading.text, reading.calls, reading.isWhole], [textOf(one), [argumentsOf(one)], true]);
      const cut = new Reading(protocol);
      cut.push(bytes.subarray(0, Math.floor(bytes.length / 2)));
      assert.isFalse(cut.isWhole);
      assert.isTrue(textOf(one).startsWith(cut.text));
      assert.strictEqual(idIn(bodyOf(one)), 1);
    });
  }

  it("are the same for a seed", () => {
    const [one, other] = [streams(7), streams(7)];
    for (let n = 0; n < 50; n += 1) assert.deepStrictEqual(one(), other());
  });
});
