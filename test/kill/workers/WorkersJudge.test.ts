/**
 * Shows the judge of gateways with workers what is right, and each thing that it must find.
 */
import { assert, describe, it } from "@effect/vitest";
import type { Tried } from "../../../scripts/kill/streams/StreamClient.ts";
import type { StreamState } from "../../../scripts/kill/streams/StreamStates.ts";
import {
  problems,
  problemsOfEnd,
  type WorkersDecided,
  type WorkersEnd,
  type WorkersRemains,
} from "../../../scripts/kill/workers/WorkersJudge.ts";
import type * as RunRecord from "../../../src/recorder/RunRecord.ts";
import * as E from "../../recorder/Entries.ts";

const textOf = (deltas: number, response = 1): string =>
  Array.from({ length: deltas }, (_, at) => `r${response}.${at}·`).join("");

const whole: Tried = {
  ...{ node: 0, status: 200, text: textOf(60), calls: 0, outcome: "whole", said: "ended", at: 0 },
  isAttached: false,
  isTaken: true,
};
const broken: Tried = { ...whole, text: textOf(2), outcome: "broken", said: "aborted" };
const repeat: Tried = { ...whole, text: textOf(3, 2) };
const refused: Tried = { ...broken, text: "", status: undefined, isTaken: false };
const attached: Tried = { ...whole, isAttached: true };

const crashed = { failure: { kind: "crashed" } } as const;
const gone = { state: "stopped", reason: "client_gone" } as const;

const recordOf = (
  lateMs: number | undefined,
  attempts: number,
  ...entries: Parameters<typeof E.folded>[0]
): WorkersDecided => {
  const record = E.folded([E.begun("r"), E.attempt(1), ...entries]);
  if (record === undefined) throw new Error("it was begun");
  return { ...record, attempts, lateMs };
};
const ended = recordOf(100, 1, E.ended());
/** The run of its repeat. */
const next = { ...ended, run_id: "next" };
const taken = recordOf(4_000, 1, E.opened("r", 1, crashed), E.ended(gone));

const answeredBy = (answer: "retry" | "stop", by: "person" | "expiry"): RunRecord.Entry => ({
  _tag: "QuestionAnswered",
  revision: 1,
  answer,
  by,
});

/** What stands on a question that a person has answered. */
const retried = [E.asked("r", 1), answeredBy("retry", "person")] as const;
/** A dead worker's run, which was answered. */
const orphan = recordOf(4_000, 1, ...retried, E.opened("r", 1, crashed), E.ended(gone));

const streamOf = (state: StreamState) => ({ name: "s", state, worker: 1, client: "repeats", choice: "retry" }) as const;

/** A stream of a worker to which nothing happened. */
const kept: WorkersRemains = {
  fault: "worker killed",
  state: "shown",
  stream: streamOf("shown"),
  isStruck: false,
  isAway: false,
  tries: [whole],
  again: attached,
  other: repeat,
  asked: 1,
  records: [ended],
  answers: [],
  slowness: 1,
};

/** A stream of a worker that was killed, which its client has by asking again. */
const struck: Partial<WorkersRemains> = {
  isStruck: true,
  tries: [broken, refused, repeat],
  again: undefined,
  asked: 2,
  records: [taken, next],
};

/** A run whose worker lives has asked, and was answered. */
const asking: Partial<WorkersRemains> = {
  state: "asking",
  stream: streamOf("asking"),
  tries: [repeat],
  again: undefined,
  asked: 2,
  records: [recordOf(100, 2, ...retried, E.ended())],
  answers: [{ run: "r", revision: 1, choice: "retry", status: 200, isEarly: false }],
};

/** One whose worker was killed before the answer came. */
const late: Partial<WorkersRemains> = {
  ...asking,
  ...struck,
  records: [orphan, next],
  answers: asking.answers ?? [],
};

const bad: Readonly<Record<string, readonly [Partial<WorkersRemains>, RegExp]>> = {
  "a stream that is lost": [{ ...struck, tries: [broken, broken] }, /lost: 2 tries, the last broken/],
  "a client that notices a sibling's death": [
    { tries: [broken, whole], again: undefined, asked: 2, records: [ended, ended] },
    /its client noticed: broken/,
  ],
  "a survivor's text that ends early": [
    { tries: [{ ...whole, text: textOf(59) }], again: undefined },
    /its client noticed/,
  ],
  "a survivor's answered question that is not acted on": [
    { ...asking, tries: [{ ...broken, outcome: "told", text: "" }], asked: 1 },
    /its client noticed: told/,
  ],
  "a delta that came twice": [{ ...struck, tries: [{ ...broken, text: "r1.0·r1.0·" }, repeat] }, /a client has "r1/],
  "a call that was handed over twice": [
    {
      ...{ ...struck, state: "called", stream: streamOf("called") },
      tries: [
        { ...whole, text: "", calls: 1 },
        { ...whole, text: "", calls: 1 },
      ],
    },
    /delivered 2 times/,
  ],
  "a request without a reason": [
    { ...struck, asked: 3, records: [taken, recordOf(1, 2, E.ended())] },
    /3 requests, of which 2/,
  ],
  "a request for what no gateway had taken": [
    { ...struck, tries: [broken, refused], stream: { ...streamOf("shown"), client: "never" } },
    /2 requests, of which 1 have/,
  ],
  "a request for a response that was there": [
    { ...struck, tries: [broken, { ...attached, text: textOf(3, 2) }] },
    /2 requests, of which 1 have/,
  ],
  "an order that a dead worker's run carries out": [
    { ...late, asked: 3, records: [{ ...orphan, attempts: 2 }, next] },
    /3 requests, of which 2 have a reason/,
  ],
  "an order that is carried out twice": [
    { ...asking, asked: 3, records: [recordOf(1, 3, ...retried, E.ended())] },
    /3 requests, of which 2/,
  ],
  "a request that no record tells of": [
    { records: [{ ...ended, attempts: 0 }] },
    /1 requests, of which 0 are on record/,
  ],
  "a repeat that is a run of its own": [{ again: { ...attached, isAttached: false } }, /a different response: whole/],
  "a key that is taken for its request": [{ other: attached }, /another request under its key had its response/],
  "a key that is used again in vain": [{ other: broken }, /another request under its key had no response/],
  "a stream of which nothing is on record": [{ records: [] }, /no run is on record/],
  "a run without an end": [{ records: [recordOf(undefined, 1)] }, /has no end: live/],
  "a dead worker's run that is decided late": [
    { ...struck, records: [{ ...taken, lateMs: 8_001 }, next] },
    /decided after 8001 ms/,
  ],
  "a run that is decided twice": [
    { ...struck, records: [recordOf(1, 2, E.opened("r", 1, crashed), E.opened("r", 2, crashed), E.ended(gone))] },
    /decided twice/,
  ],
  "a run that was taken from a worker that lives": [{ records: [taken] }, /taken from a live gateway/],
  "two answers to one question": [
    { ...asking, answers: [...(asking.answers ?? []), ...(asking.answers ?? [])] },
    /r, question 1: 2 answers were accepted/,
  ],
  "an answer that was taken and is on no record": [
    { ...asking, records: [recordOf(100, 2, E.asked("r", 1), E.ended())] },
    /r, question 1: retry was accepted, but its record says nothing/,
  ],
  "an answer that was taken of a run that is on no record": [
    { ...late, records: [{ ...orphan, run_id: "other" }, next] },
    /retry was accepted, but its record says nothing/,
  ],
  "another answer than the one that was taken": [
    { ...asking, records: [recordOf(100, 2, E.asked("r", 1), answeredBy("stop", "person"), E.ended())] },
    /retry was accepted, but its record says stop/,
  ],
  "a default where a person's answer was taken": [
    { ...asking, records: [recordOf(100, 2, E.asked("r", 1), answeredBy("retry", "expiry"), E.ended())] },
    /retry was accepted, but its record says retry by expiry/,
  ],
};

const end: WorkersEnd = { leftBehind: [], exit: "0", succeededMs: [4_000], files: [], integrity: "ok", slowness: 1 };

const badEnds: Readonly<Record<string, readonly [Partial<WorkersEnd>, RegExp]>> = {
  "a process that is left behind": [{ leftBehind: [7] }, /process 7 is alive/],
  "a supervisor that fails": [{ exit: "1" }, /ended with 1/],
  "a successor that waits for the port": [{ succeededMs: [4_000, 20_001] }, /listened after 20001 ms/],
  "a socket that is left behind": [{ files: ["stream-recovery-workers-1"] }, /is left in the temporary directory/],
  "a damaged file": [{ integrity: "row 7 missing" }, /the file: row 7 missing/],
};

describe("The judge of gateways with workers", () => {
  it("accepts an undisturbed stream, and one that its client got by a repeat", () => {
    assert.deepStrictEqual(problems(kept), []);
    assert.deepStrictEqual(problems({ ...kept, ...struck }), []);
  });

  it("accepts an answer that was carried out, one that stops, and one that came too late", () => {
    assert.deepStrictEqual(problems({ ...kept, ...asking }), []);
    const told = { ...broken, outcome: "told", text: "" } as const;
    const stop = { ...streamOf("asking"), choice: "stop" } as const;
    assert.deepStrictEqual(problems({ ...kept, ...asking, stream: stop, tries: [told], asked: 1 }), []);
    assert.deepStrictEqual(problems({ ...kept, ...late }), []);
  });

  it("accepts an order that a worker had started to carry out before it was killed", () => {
    const answers = (asking.answers ?? []).map((it) => ({ ...it, isEarly: true }));
    const records = [{ ...orphan, attempts: 2 }, next];
    assert.deepStrictEqual(problems({ ...kept, ...late, answers, asked: 3, records }), []);
  });

  it("takes a client that does not ask again for what a kill has broken, and convicts one that is not struck", () => {
    const stream = { ...streamOf("shown"), client: "never" } as const;
    assert.deepStrictEqual(problems({ ...kept, ...struck, stream, tries: [broken], asked: 1, records: [taken] }), []);
    assert.lengthOf(problems({ ...kept, stream, tries: [broken], again: undefined }), 2);
  });

  it("accepts requests that are not on record while the store is unavailable", () => {
    assert.deepStrictEqual(problems({ ...kept, ...struck, isAway: true, records: [taken] }), []);
  });

  it("lets a busy machine take as much longer as it is slower, and notices what has nothing to do with time", () => {
    const slow = { ...kept, slowness: 2 };
    assert.deepStrictEqual(problems({ ...slow, ...struck, records: [{ ...taken, lateMs: 16_000 }, next] }), []);
    assert.deepStrictEqual(problems({ ...slow, records: [taken] }), []);
    assert.lengthOf(problems({ ...slow, tries: [broken, whole], again: undefined, records: [ended, ended] }), 1);
  });

  for (const [name, [more, problem]] of Object.entries(bad)) {
    it(`finds ${name}`, () => {
      const found = problems({ ...kept, ...more });
      assert.lengthOf(found, 1, found.join());
      assert.match(found[0] ?? "", problem);
    });
  }

  it("accepts processes that have ended and left nothing behind", () => {
    assert.deepStrictEqual(problemsOfEnd(end), []);
  });

  for (const [name, [more, problem]] of Object.entries(badEnds)) {
    it(`finds ${name}`, () => {
      const found = problemsOfEnd({ ...end, ...more });
      assert.lengthOf(found, 1, found.join());
      assert.match(found[0] ?? "", problem);
    });
  }
});
