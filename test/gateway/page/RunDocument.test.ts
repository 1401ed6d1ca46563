/**
 * Checks the file of a run: it needs no other file, explains everything in plain words, and escapes all text.
 */
import { assert, describe, it } from "@effect/vitest";
import { toolRowsMax } from "../../../src/domain/Limits.ts";
import { runDocument } from "../../../src/gateway/page/RunDocument.ts";
import { runView } from "../../../src/gateway/page/RunPicture.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { folded } from "../../recorder/Entries.ts";
import * as Runs from "./PageRuns.ts";
import * as Seams from "./SeamRuns.ts";

describe("the file of a run", () => {
  const text = runDocument(folded(Runs.recovered("run_a")), Runs.now);

  it("contains no script, no address and no handler", () => {
    assert.notMatch(text, /<script|javascript:|\son\w+=|\ssrc=|<link|url\(|@import/i);
    assert.notMatch(text.replace(/<style>.*<\/style>/s, ""), /https?:|style=/);
    assert.match(text, /Content-Security-Policy" content="default-src 'none'; style-src 'sha256-[\w+/]+=*'/);
  });

  it("shows attempts, the break, the decision, its rule and its facts, calls and lengths", () => {
    for (const words of [
      "Attempt 3",
      "The connection to the model provider was lost; nothing had been shown",
      '<code title="The rule that decided">tool_calls_fenced</code>',
      "shown=reasoning",
      "stalled · silence",
      "timed out: silence",
      "changes something",
      "1\u202f840 characters",
      "It was carried out, and a later attempt completed the run.",
      "2026-11-22 09:29:13 UTC",
    ]) {
      assert.include(text, words);
    }
  });

  it("draws every seam: in the row of its attempt, and in the text, with the length of the text before it", () => {
    const sewn = runDocument(folded(Seams.joined("run_a")), Runs.now);
    // Two in the rows and two in the text, each with its background.
    assert.strictEqual(sewn.match(/<path class="stitch"/g)?.length, 4);
    for (const words of [
      "Where the text continues",
      "continues after 412 characters at 9.8 s",
      "seam after 1\u202f204 characters",
      "It continues after 412 characters: the new text began with the end of the shown text.",
      "the provider declares that it continues the text that it is given",
      "The text in pieces: attempt 1; attempt 2 after 412 characters, by anchor; attempt 3 after 1\u202f204 characters, by prefill",
    ]) {
      assert.include(sewn, words);
    }
    const places = [...sewn.matchAll(/<rect class="piece p\d" x="([\d.]+)%" y="6" width="([\d.]+)%"/g)].map((it) =>
      it.slice(1, 3).map(Number),
    );
    assert.lengthOf(places, 3);
    // The pieces are side by side and fill the paper.
    const ends = places.map(([x = 0, width = 0]) => x + width);
    for (const [index, [x = -1]] of places.entries()) assert.closeTo(x, ends[index - 1] ?? 0, 0.01);
    assert.closeTo(ends.at(-1) ?? 0, 100, 0.01);
    assert.notInclude(text, "Where the text continues");
    assert.notInclude(text, 'stitch" d=');
  });

  it("says why a text was not continued, and why new text was not joined", () => {
    const refused = runDocument(folded(Seams.refused("logprobs", "run_a")), Runs.now);
    assert.include(refused, "<code>logprobs</code> It does not continue automatically.");
    assert.include(refused, 'text not continued: <bdi class="label">logprobs</bdi>');
    const unproven = runDocument(folded(Seams.unproven("run_a")), Runs.now);
    assert.include(unproven, "the new text did not begin with the end of the shown text");
    assert.include(unproven, "; none of the unproven text was shown");
  });

  it("names the calls that the provider may run again, if the stream did not show them", () => {
    const asked = runDocument(folded(Runs.unprovable("run_a")), Runs.now);
    assert.include(asked, "May run again: tools that the provider runs");
  });

  it("shows a question with its choices, and no button without an effect", () => {
    const asked = runDocument(folded(Runs.asking("run_a")), Runs.now);
    assert.include(asked, "<b>It did not run</b>");
    assert.include(asked, "May run again:");
    assert.notInclude(asked, "<button");
    const view = runView(folded(Runs.asking("run_a")), Runs.now).markup;
    assert.strictEqual(view.match(/<button[^>]* data-choice=/g)?.length, 6);
    assert.strictEqual(view.match(/<button[^>]* data-cancel="run_a"/g)?.length, 1);
    assert.strictEqual(view.match(/data-confirm=/g)?.length, 1);
    assert.isAbove(view.indexOf(">Retry</button>"), view.indexOf(">Accept</button>"), "what may repeat stands behind");
  });

  it("escapes every label of a record everywhere, on the page and in the file", () => {
    const evil = `"'><x y=z>&`;
    const labels = /^(?:id|model|run_id|policy|retry_of|tool|call|detail|code|reason|message)$/;
    const poisoned = (value: unknown, key = ""): unknown => {
      if (typeof value === "string")
        return labels.test(key) || key === "because" || key === "may_repeat" ? evil : value;
      if (Array.isArray(value)) return value.map((it) => poisoned(it, key));
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, poisoned(it, name)]));
    };
    for (const entries of [Runs.recovered(), Runs.asking(), Runs.stopped("run_a", Runs.now)]) {
      // It has the form of a record, whose schema would only refuse the words of a failure.
      const record = poisoned({ ...folded(entries), retry_of: "run_b" }) as RunRecord;
      for (const markup of [runDocument(record, Runs.now), runView(record, Runs.now).markup]) {
        assert.isAbove(markup.split("&lt;x y=z&gt;&amp;").length, 8);
        assert.notMatch(markup, /<x|"'>|z>&(?!amp;|lt;|gt;|quot;|#)/);
      }
    }
  });

  it("is the same for the same record", () => {
    assert.strictEqual(runDocument(folded(Runs.recovered("run_a")), Runs.now), text);
  });

  it("stays small for a record with the maximum content", () => {
    const tools = Array.from({ length: toolRowsMax }, (_, n) => Runs.call(n, "t".repeat(128), "mutating", "settled"));
    const facts = Runs.facts({ tools });
    const attempts = Array.from({ length: 64 }, (_, n) => Runs.attempted(n + 1, facts, n * 1_000));
    const full = folded([Runs.begun("run_a", Runs.claude, Runs.now), ...attempts]);
    assert.isBelow(runDocument(full, Runs.now + 99_000).length, 2_000_000);
  });
});
