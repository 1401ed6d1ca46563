/**
 * Tells runs whose shown text was continued, could not be joined, or was not continued: on record, in steps, in lists and in questions.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { SeamFault, SeamProof, SeamRefusal } from "../../src/domain/SeamWords.ts";
import { seamFaults } from "../../src/policy/Explanation.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { absenceStory } from "../../src/story/AbsenceWords.ts";
import { openQuestionOf } from "../../src/story/Question.ts";
import { runSteps } from "../../src/story/RunSteps.ts";
import { runStory } from "../../src/story/RunStory.ts";
import { summaryOf } from "../../src/story/RunSummary.ts";
import { refusalOf, refusalText, seamProofs, seamRefusals, textsAcrossSeams } from "../../src/story/SeamWords.ts";
import * as Runs from "../gateway/page/PageRuns.ts";
import * as Seams from "../gateway/page/SeamRuns.ts";
import { attempt, begun, folded, joined, raised } from "../recorder/Entries.ts";
import * as S from "../runtime/Scripted.ts";
import { scriptedSeam } from "../runtime/ScriptedSeam.ts";

const { now } = Runs;
const shown = { shown: "text", text_through: 1 } as const;

describe("the words of a seam", () => {
  it("have whole sentences for every refusal: the reason, and the options", () => {
    const said = SeamRefusal.literals.map((reason) => seamRefusals[reason]);
    for (const { remedy, why } of said) {
      for (const sentence of [why, remedy]) assert.match(sentence, /^[A-Z].{6,140}\.$/);
    }
    assert.strictEqual(new Set(said.map(({ why }) => why)).size, SeamRefusal.literals.length);
  });

  it("have separate words for every fault and every proof, which continue after a colon", () => {
    for (const words of [
      SeamFault.literals.map((fault) => seamFaults[fault]),
      SeamProof.literals.map((proof) => seamProofs[proof]),
    ]) {
      assert.strictEqual(new Set(words).size, words.length);
      // A semicolon would split the sentence of an incident, whose first half names the break.
      for (const word of words) assert.match(word, /^[a-z][^;]{20,120}[^.;]$/);
    }
  });
});

describe("a run whose shown text was continued", () => {
  const record = folded(Seams.joined("r"));

  it("shows where the text of each attempt joins, and how that was proven", () => {
    const { attempts } = runStory(record, now);
    assert.deepStrictEqual(
      attempts.map(({ seam, sent }) => [sent, seam?.said]),
      [
        ["the first request", undefined],
        [
          "a request that continues the text where it was cut",
          "It continues after 412 characters: the new text began with the end of the shown text.",
        ],
        [
          "a request that continues the text where it was cut",
          "It continues after 1\u202f204 characters: the provider declares that it continues the text that it is given.",
        ],
      ],
    );
    assert.strictEqual(
      attempts[0]?.incidents[0]?.next,
      "a request that continues the text where it was cut after 375 ms",
    );
  });

  it("has its text in pieces, in order", () =>
    assert.deepStrictEqual(textsAcrossSeams(record), [
      [
        { attempt: 1, from: 0, to: 412, proof: undefined },
        { attempt: 2, from: 412, to: 1_204, proof: "anchor" },
        { attempt: 3, from: 1_204, to: undefined, proof: "prefill" },
      ],
    ]));

  it("has a step for each seam in every view, and its seams in the list's JSON", () => {
    const steps = runSteps(record).filter(({ key }) => key.startsWith("seam"));
    assert.deepStrictEqual(steps, [
      {
        key: "seam 2",
        at: record.started_at + 9_800,
        text: "continues after 412 characters, proven by anchor",
        tone: "good",
      },
      {
        key: "seam 3",
        at: record.started_at + 20_600,
        text: "continues after 1\u202f204 characters, proven by prefill",
        tone: "good",
      },
    ]);
    assert.deepStrictEqual(summaryOf(record, new Set()).seams, [
      { attempt: 2, at: 412, proof: "anchor" },
      { attempt: 3, at: 1_204, proof: "prefill" },
    ]);
    assert.notProperty(summaryOf(folded(Runs.recovered()), new Set()), "seams");
  });
});

describe("the pieces of a text", () => {
  const pieces = (...entries: Parameters<typeof folded>[0]) =>
    textsAcrossSeams(folded([begun("r"), ...entries])).map((text) => text.map((it) => [it.attempt, it.from, it.to]));

  it("omit an attempt that broke before its seam was proven, because it showed nothing", () =>
    assert.deepStrictEqual(
      pieces(
        attempt(1),
        raised(1, shown),
        attempt(2, "continue"),
        attempt(3, "continue"),
        raised(3, shown),
        joined(3, 40),
      ),
      [
        [
          [1, 0, 40],
          [3, 40, undefined],
        ],
      ],
    ));

  it("omit a seam that was requested and is not proven", () => {
    const asked = { ...attempt(2, "continue"), seam: { at: 30, proof: "anchor" } } as ReturnType<typeof attempt>;
    assert.deepStrictEqual(pieces(attempt(1), raised(1, shown), asked), []);
    const after = [attempt(3, "continue"), raised(3, shown), joined(3, 30)];
    assert.deepStrictEqual(pieces(attempt(1), raised(1, shown), asked, ...after), [
      [
        [1, 0, 30],
        [3, 30, undefined],
      ],
    ]);
  });

  it("restart after a replay, whose text replaces the withdrawn text", () =>
    assert.deepStrictEqual(
      pieces(
        attempt(1),
        raised(1, shown),
        attempt(2, "replay"),
        raised(2, shown),
        attempt(3, "continue"),
        raised(3, shown),
        joined(3, 7),
      ),
      [
        [
          [2, 0, 7],
          [3, 7, undefined],
        ],
      ],
    ));

  it("are kept if the record has dropped the attempts before them", () =>
    assert.deepStrictEqual(pieces(attempt(9, "continue"), raised(9, shown), joined(9, 7)), [[[9, 7, undefined]]]));

  it("are empty if no text was joined", () => {
    for (const entries of Runs.album()) assert.deepStrictEqual(textsAcrossSeams(folded(entries)), []);
  });
});

describe("a run whose shown text was not continued", () => {
  it("says why it could not be joined, and that nothing unproven was shown (row 6)", () => {
    const { attempts } = runStory(folded(Seams.unproven()), now);
    const [incident] = attempts[1]?.incidents ?? [];
    assert.deepInclude(incident, {
      title: "Its text could not be joined",
      failure: "protocol · seam_unproven · differs",
      broke:
        "The answer could not be joined to the shown text: the new text did not begin with the end of the shown text",
      why: "None of the unproven text was shown. The text shown before it is kept.",
      became: "It waits for an answer.",
      refusal: undefined,
    });
    assert.strictEqual(attempts[1]?.said.word, "not joined");
    assert.strictEqual(
      attempts[1]?.seam?.said,
      "It was asked to continue after 412 characters, given the end of the shown text. The new text did not begin with the end of the shown text, so none of its text was shown.",
    );
  });

  it.effect("shows why an attempt was not joined, even if its caller discards it", () =>
    Effect.gen(function* () {
      const { reset, start, text } = S;
      const provider = S.scripted([start, text("one two"), S.wait(1), reset], [start, text("uno dos tres")]);
      const { run } = yield* StreamProcessor;
      const given = { runId: "r", canContinue: true, continueText: "auto", seam: scriptedSeam() } as const;
      yield* S.played(run(S.options(provider, given)));
      const record = yield* S.recordOf("r");
      const story = runStory(record, now);
      assert.deepStrictEqual(
        story.attempts.map(({ end, said, seam }) => [end, said.word, seam?.fault]),
        [
          ["broke", "broke", undefined],
          ["broke", "not joined", "differs"],
        ],
      );
      assert.strictEqual(story.attempts[0]?.incidents.at(-1)?.refusal?.reason, "unproven");
      assert.include(
        runSteps(record).map(({ text }) => text),
        "does not join the shown text: differs",
      );
    }).pipe(Effect.provide(S.processor(["stop"]))),
  );

  it("reports both for text that was joined and then repeated itself", () => {
    const record = folded(Seams.joined());
    const late = { at_ms: 11_000, attempt: 2, event: "seam", detail: "repeats" } as const;
    const evidence = { ...record.evidence, last: [...record.evidence.last, late] };
    const { seam } = runStory({ ...record, evidence }, now).attempts[1] ?? {};
    assert.deepInclude(seam, { proven: true, fault: "repeats" });
    assert.match(seam?.said ?? "", /^It continues after 412 characters: .*\. After the seam, the new text repeated/);
  });

  it("gives for every refusal the reason why the text was not continued, with its question", () => {
    for (const reason of SeamRefusal.literals) {
      const record = folded(Seams.refused(reason));
      const [incident] = runStory(record, now).incidents;
      const refusal = { reason, ...seamRefusals[reason] };
      assert.deepStrictEqual(incident?.refusal, refusal);
      assert.deepStrictEqual(openQuestionOf(record)?.refusal, refusal);
      assert.strictEqual(refusalText(refusal), `It does not continue automatically. ${refusal.why} ${refusal.remedy}`);
      assert.include(
        runSteps(record).map(({ text }) => text),
        `its text is not continued: ${reason}`,
      );
    }
  });

  it("ignores a refusal stored by another version, and shows the newest of several", () => {
    const [, ...rest] = folded(Seams.refused("blank")).evidence.first;
    const unknown = { at_ms: 1, attempt: 1, event: "seam_refused", detail: "moon_phase" } as const;
    assert.isUndefined(refusalOf([unknown]));
    assert.strictEqual(refusalOf([unknown, ...rest])?.reason, "blank");
    assert.isUndefined(refusalOf([{ at_ms: 1, attempt: 1, event: "seam_refused" }]));
  });

  it("mentions no refusal if the text was continued automatically", () => {
    const [incident] = runStory(folded(Seams.joined()), now).incidents;
    assert.isUndefined(incident?.refusal);
  });
});

describe("a run that continues without its client", () => {
  it("names its deadline, and the time in which its client may come back", () => {
    assert.deepStrictEqual(absenceStory({ since: now - 12_000, until: now + 48_000 }, now), {
      said: "continues without its client until 2026-11-22 09:30:48 UTC",
      times: "it left 12 s ago and can return for another 48 s",
    });
    assert.isUndefined(absenceStory(undefined, now));
    assert.include(absenceStory({ since: now - 12_000, until: now - 1 }, now)?.times, "can return for another 0 s");
  });
});
