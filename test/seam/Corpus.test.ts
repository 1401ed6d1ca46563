/**
 * Plays continuations of generated texts, honest and bad ones in pieces of any size, and compares what was released and refused with the
 * record. `vitest -u` writes the record again.
 */
import { describe, expect, it } from "@effect/vitest";
import { anchorOf } from "../../src/seam/Anchor.ts";
import { codeFences } from "../../src/seam/CodeFences.ts";
import { sentenceStarts } from "../../src/seam/SentenceStarts.ts";
import { hashOf } from "../Hashes.ts";
import { oneOf, seeded } from "../Seeded.ts";
import { type Ending, play } from "./model/Player.ts";

const random = seeded(20261130);
const pick = <A>(...all: ReadonlyArray<A>): A => oneOf(random, all);
const upTo = (max: number): number => Math.floor(random() * (max + 1));

const words =
  "the The river I II ha ha over and again wide it's “quoted” ‘so’ – a-b 11 水 河石 👩‍👩‍👧 é e\u0301 <b> </b> `code` } ); item Item x".split(
    " ",
  );

const sentence = (): string =>
  `${Array.from({ length: 1 + upTo(14) }, () => pick(...words)).join(pick(" ", " ", " ", "  ", "\t"))}${pick(".", ".", "!", "?)", "。", ":", "", ".”")}`;

const code = (): string => {
  const lines = Array.from(
    { length: 1 + upTo(5) },
    () => `${" ".repeat(2 * upTo(3))}${pick("if (a) {", "}", ");", "</div>", "let “x” = 'y' - z;")}`,
  );
  return `\n${pick("```", "````", "~~~")}ts\n${lines.join("\n")}\n${pick("```\n", "````\n", "~~~\n", "")}`;
};

const text = (): string =>
  Array.from({ length: 1 + upTo(pick(2, 6, 40)) }, () => (random() < 0.1 ? code() : sentence())).join(
    pick(" ", " ", "\n", "\r\n", "\n\n"),
  );

/** Something that a model may write after a text that was cut. */
const continued = (shown: string, anchor: string): string => {
  const more = `${pick("", " ", "\n", " \r\n")}${pick("n", "", sentence())} ${sentence()}`;
  const starts = sentenceStarts(shown, Math.max(0, shown.length - 1_700));
  const end = shown.slice(pick(...starts, Math.max(0, shown.length - 1 - upTo(30))));
  return pick<() => string>(
    () => anchor + more,
    () => anchor.trimEnd() + more,
    () => end + more,
    () => shown + more,
    () => anchor + pick("", " ", "\n", "\n  ") + end + more,
    () => anchor + pick("", " ") + shown.slice(-1 - upTo(8)) + more,
    () => `${anchor} so, ${sentence()} ${anchor}${more}`,
    () => anchor + shown.slice(0, 60) + more,
    () => anchor.replaceAll("“", '"').replaceAll("–", "-").replaceAll(/\s+/g, " ") + more,
    () => anchor.replaceAll("\r", "").replaceAll("\n", "\r\n") + more,
    () => anchor.slice(0, upTo(anchor.length)) + pick("", "#"),
    () => `${pick("```ts\n", "Sure: ", " ", "\n")}${anchor}${more}`,
    () => anchor + " ".repeat(pick(3, 300, 17_000)) + more,
    () => more,
  )();
};

const cases = Array.from({ length: 700 }, (_, at): string => {
  const whole = text();
  const shown = whole.slice(0, Math.max(1, whole.length - upTo(12))) + pick("", "", "", " ", "\n", "\r\n", "\ud83d");
  const anchor = anchorOf(shown);
  const fences = codeFences(shown).map(({ from, opener, to }) => `${from}-${to} ${opener}`);
  const title = `${at}: ${shown.length} ${hashOf(shown)}, fences ${fences.join() || "none"}`;
  if (typeof anchor === "string") return `${title}, ${anchor}`;
  const said = continued(shown, anchor.text);
  const size = pick(1, 3, 50, 100_000);
  const played = [
    play({ shown, anchor, proof: "anchor" }, said, pick<Ending>("stops", "breaks"), () => size),
    play({ shown, anchor, proof: "prefill", echoes: random() < 0.5 }, said, "stops", () => size),
  ];
  const results = played.map(
    ({ fault, read, released, verdict }) => `${verdict} ${fault ?? ""} ${read} ${hashOf(released)}`,
  );
  return `${title}, anchor ${anchor.at} ${anchor.quote.length}, ${results.join(", ")}`;
});

describe("generated continuations", () => {
  it("are joined, refused and released as recorded", async () => {
    await expect(`${cases.join("\n")}\n`).toMatchFileSnapshot("../fixtures/seam-corpus.txt");
  });
});
