/** Options of a run that has ended: what its late decisions read stays, and nothing else (L11). */
import { assert, it } from "@effect/vitest";
import { Effect } from "effect";
import { releaseStreams } from "../../../src/runtime/contract/RunOptions.ts";
import * as Seam from "../../../src/stages/seam/Seam.ts";
import * as S from "../Scripted.ts";

it("keep what a late decision reads, and let go of the request", () => {
  const bare = S.options(S.scripted());
  assert.hasAllKeys(releaseStreams(bare), ["provider", "tools", "attempt", "observe"]);
  const full = {
    ...bare,
    ...S.options(S.scripted(), { canContinue: true }),
    continueText: "auto" as const,
    seam: Seam.of<S.ScriptedPart>(() => assert.fail("an ended run joins nothing")),
    group: "g",
    refreshCredentials: Effect.die("an ended run refreshes nothing"),
    requestTokens: 7,
  };
  const kept = releaseStreams(full);
  assert.strictEqual(kept.requestTokens, 7);
  assert.strictEqual(kept.group, "g");
  assert.strictEqual(kept.continueText, "auto");
  for (const name of ["attempt", "observe", "canContinue", "refreshCredentials", "seam"] as const) {
    assert.isDefined(kept[name], name);
    assert.notStrictEqual<unknown>(kept[name], full[name], name);
  }
});
