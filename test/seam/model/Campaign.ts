/**
 * Breaks texts at any character, continues each in every way, and counts the judge's results by kind.
 */
import { anchorOf } from "../../../src/seam/Anchor.ts";
import { Dice } from "../../simulation/Dice.ts";
import { type Break, cut } from "./Break.ts";
import { clumsy, clumsyPrefill } from "./Clumsy.ts";
import { generated, recorded, repeatsItself, type Text } from "./Corpus.ts";
import { honest, honestPrefill } from "./Honest.ts";
import { type Judgement, judgeClumsy, judgeCut, judgeHonest, wrongs } from "./Judge.ts";
import { type Played, play, sizes } from "./Player.ts";

/** The first seed that is played. */
export const baseSeed = 20_261_122;

/** The counts of one kind. */
export interface Row {
  readonly kind: string;
  readonly group: "honest" | "clumsy" | "prefill";
  count: number;
  readonly judged: Map<Judgement, number>;
  /** Honest continuations that were refused because they repeat what was shown, and for any other reason. */
  repeats: number;
  lost: number;
}

/** Something that must not be: a seed and a break play it again. */
export interface Wrong {
  readonly seed: number;
  readonly number: number;
  readonly kind: string;
  readonly shape: string;
  readonly judgement: Judgement | "lost";
  readonly shown: string;
  readonly said: string;
  readonly played: Played;
}

/** The results of a campaign. */
export interface Report {
  readonly seed: number;
  readonly breaks: number;
  readonly texts: number;
  readonly rows: ReadonlyMap<string, Row>;
  readonly wrong: ReadonlyArray<Wrong>;
  /** Honest continuations of texts that do not repeat themselves, that were refused. */
  readonly lost: ReadonlyArray<Wrong>;
  /** Numbers of repeated characters, ascending, of each break with an anchor in texts that have sentences or lines. */
  readonly extra: ReadonlyArray<number>;
  /** The same of texts that are one line without a sentence. */
  readonly extraOfLines: ReadonlyArray<number>;
  /** Breaks that have no anchor, by reason, and those of them in texts that say the same twice on purpose. */
  readonly refusals: ReadonlyMap<string, number>;
}

interface Situation {
  readonly seed: number;
  readonly number: number;
  readonly shape: string;
  readonly it: Break;
  readonly dice: Dice;
}

class Counter {
  readonly rows = new Map<string, Row>();
  readonly wrong: Array<Wrong> = [];
  readonly lost: Array<Wrong> = [];
  readonly extra: Array<number> = [];
  readonly extraOfLines: Array<number> = [];
  readonly refusals = new Map<string, number>();

  count(
    at: Situation,
    group: Row["group"],
    kind: string,
    said: string,
    played: Played,
    judgement: Judgement,
    isHonest: boolean,
  ): void {
    const key = `${group}: ${kind}`;
    const row = this.rows.get(key) ?? { kind, group, count: 0, judged: new Map(), repeats: 0, lost: 0 };
    this.rows.set(key, row);
    row.count += 1;
    row.judged.set(judgement, (row.judged.get(judgement) ?? 0) + 1);
    const found = { seed: at.seed, number: at.number, kind: key, shape: at.shape, shown: at.it.shown, said, played };
    if (wrongs.includes(judgement)) this.wrong.push({ ...found, judgement });
    if (!isHonest || judgement === "whole") return;
    if (played.fault === "repeats") row.repeats += 1;
    else row.lost += 1;
    if (played.fault !== "repeats" || !repeatsItself(at.shape)) this.lost.push({ ...found, judgement: "lost" });
  }
}

/** Plays each way at one break. */
const playBreak = (counter: Counter, at: Situation): void => {
  const { dice, it } = at;
  const anchor = anchorOf(it.shown);
  if (typeof anchor === "string") return;
  const start = { shown: it.shown, anchor, proof: "anchor" } as const;
  for (const [kind, way] of Object.entries(honest)) {
    const said = way(it, dice);
    if (said === undefined) continue;
    const played = play(start, said, "stops", sizes(dice));
    counter.count(at, "honest", kind, said, played, judgeHonest(it, played), true);
  }
  playTwice(counter, at, anchor);
  for (const [kind, way] of Object.entries(clumsy)) {
    const said = way.say(it, dice);
    if (said === undefined) continue;
    const played = play(start, said, way.ends ?? "stops", sizes(dice));
    const judgement = judgeClumsy(it, way, said, played);
    counter.count(at, "clumsy", kind, said, played, judgement, false);
  }
};

/** A continuation that is cut again, and then continued once more. */
const playTwice = (counter: Counter, at: Situation, anchor: Exclude<ReturnType<typeof anchorOf>, string>): void => {
  const { dice, it } = at;
  const said = it.asked.slice(0, dice.between(0, it.asked.length));
  const first = play({ shown: it.shown, anchor, proof: "anchor" }, said, "breaks", sizes(dice));
  counter.count(at, "honest", "cut again behind the seam, or in it", said, first, judgeCut(it, first), true);
  const shown = it.shown + first.released;
  const second = anchorOf(shown);
  if (first.verdict === "unproven" || typeof second === "string" || !it.whole.startsWith(shown)) return;
  const next = cut(it.whole, shown.length, second.quote);
  const played = play({ shown, anchor: second, proof: "anchor" }, next.asked, "stops", sizes(dice));
  counter.count({ ...at, it: next }, "honest", "the second seam", next.asked, played, judgeHonest(next, played), true);
};

const playPrefill = (counter: Counter, at: Situation): void => {
  const { dice, it } = at;
  const anchor = anchorOf(it.shown);
  // no request can hold half a character
  if (typeof anchor === "string" || /[\ud800-\udbff]$/.test(it.shown)) return;
  for (const [kind, way] of Object.entries(honestPrefill)) {
    const said = way(it, dice);
    if (said === undefined) continue;
    const echoes = kind.includes("echo") && dice.chance(0.5);
    const played = play({ shown: it.shown, anchor, proof: "prefill", echoes }, said, "stops", sizes(dice));
    counter.count(at, "prefill", kind, said, played, judgeHonest(it, played), true);
  }
  for (const [kind, way] of Object.entries(clumsyPrefill)) {
    const said = way.say(it, dice);
    if (said === undefined) continue;
    const played = play({ shown: it.shown, anchor, proof: "prefill" }, said, "stops", sizes(dice));
    counter.count(at, "prefill", kind, said, played, judgeClumsy(it, way, said, played, true), false);
  }
};

/** Shapes of one line without the end of a sentence. */
const withoutSentences: ReadonlyArray<string> = ["one long line", "no words at all", "emoji alone"];

/** Texts that are longer are drawn as often as each other. */
const longMin = 600;

/** Texts of each shape beside the recorded ones. */
const eachShape = 25;

/** The texts that a seed draws. */
export const textsOf = (seed: number): ReadonlyArray<Text> => [...recorded(), ...generated(seed, eachShape)];

/** Plays so many breaks. */
export const playBreaks = (breaks: number, seed: number, only?: number): Report => {
  const texts = textsOf(seed);
  // half of the breaks are in recorded texts; of both a text is drawn as often as its length deserves, as many are a few words
  const lengths = texts.map(({ text }) => Math.min(longMin, text.length));
  const sum = (isRecorded: boolean): number =>
    lengths.reduce(
      (before, length, index) => before + ((texts[index]?.shape === "recorded") === isRecorded ? length : 0),
      0,
    );
  const sums = { recorded: sum(true), generated: sum(false) };
  const weights = texts.map(
    ({ shape }, index) => (lengths[index] ?? 0) / (shape === "recorded" ? sums.recorded : sums.generated),
  );
  const total = weights.reduce((before, weight) => before + weight, 0);
  const counter = new Counter();
  for (let number = 0; number < breaks; number += 1) {
    const dice = new Dice(seed + number);
    let left = dice.next() * total;
    const index = weights.findIndex((weight) => {
      left -= weight;
      return left < 0;
    });
    const { shape, text } = texts[index] ?? { shape: "", text: " " };
    const place = dice.between(1, text.length);
    if (only !== undefined && only !== number) continue;
    const anchor = anchorOf(text.slice(0, place));
    if (typeof anchor === "string") {
      const key = `${anchor}${repeatsItself(shape) ? " (on purpose)" : ""}`;
      counter.refusals.set(key, (counter.refusals.get(key) ?? 0) + 1);
      continue;
    }
    const it = cut(text, place, anchor.quote);
    (withoutSentences.includes(shape) ? counter.extraOfLines : counter.extra).push(
      it.shown.length - it.shown.lastIndexOf(it.quote),
    );
    playBreak(counter, { seed, number, shape, it, dice });
    playPrefill(counter, { seed, number, shape, it, dice });
  }
  const { lost, refusals, rows, wrong } = counter;
  const ascending = (numbers: ReadonlyArray<number>) => numbers.toSorted((a, b) => a - b);
  const extra = { extra: ascending(counter.extra), extraOfLines: ascending(counter.extraOfLines) };
  return { seed, breaks, texts: texts.length, rows, wrong, lost, refusals, ...extra };
};
