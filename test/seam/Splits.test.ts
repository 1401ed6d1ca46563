/** How the new text is cut makes no difference: what leaves, and what is said in the end. */
import { assert, describe, it } from "@effect/vitest";
import { anchorOf } from "../../src/seam/Anchor.ts";
import { Dice } from "../simulation/Dice.ts";
import { cut } from "./model/Break.ts";
import { textsOf } from "./model/Campaign.ts";
import { clumsy } from "./model/Clumsy.ts";
import { honest } from "./model/Honest.ts";
import { play } from "./model/Player.ts";

const seed = 4_711;
const breaks = 25;

describe(`any way to cut the same new text, over ${breaks} breaks from seed ${seed}`, () => {
  it("delivers the same text and verdict however the input is split, after an anchor and after a prefill", {
    timeout: 60_000,
  }, () => {
    const texts = textsOf(seed);
    let played = 0;
    for (let number = 0; number < breaks; number += 1) {
      const dice = new Dice(seed + number);
      const { shape, text } = texts[dice.between(0, texts.length - 1)] ?? { shape: "", text: " " };
      const shown = text.slice(0, dice.between(1, text.length));
      const anchor = anchorOf(shown);
      if (typeof anchor === "string") continue;
      const it = cut(text, shown.length, anchor.quote);
      const ways = { ...honest, ...Object.fromEntries(Object.entries(clumsy).map(([kind, { say }]) => [kind, say])) };
      for (const [kind, way] of Object.entries(ways)) {
        const said = way(it, dice);
        if (said === undefined) continue;
        for (const proof of ["anchor", "prefill"] as const) {
          const start = { shown, anchor, proof };
          const whole = play(start, said, "stops", () => said.length);
          for (const size of [() => 1, () => dice.between(1, 3), () => dice.between(1, 90)]) {
            const { fault, released, verdict } = play(start, said, "stops", size);
            const told = `--seed ${seed} break ${number} (${shape}, ${kind}, ${proof})`;
            assert.deepStrictEqual(
              { fault, released, verdict },
              { fault: whole.fault, released: whole.released, verdict: whole.verdict },
              told,
            );
            played += 1;
          }
        }
      }
    }
    assert.isAbove(played, 2_000);
  });
});
