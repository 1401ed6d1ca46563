/**
 * The texts that are cut and continued: those of recorded responses, and texts in other scripts and shapes.
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { textOf } from "../../../src/provider/stream/Content.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import { bytesOf, recordings } from "../../Recordings.ts";
import { Dice } from "../../simulation/Dice.ts";

/** A whole text of a model. */
export interface Text {
  readonly shape: string;
  readonly text: string;
}

const streams = fileURLToPath(new URL("../../fixtures/streams", import.meta.url));

const partsOf = (protocol: ProtocolId, bytes: Uint8Array): ReadonlyArray<Part> => {
  const decoder = Decoder.make(protocols.get(protocol));
  return [...decoder.push(bytes), ...decoder.end().parts];
};

const said = (protocol: ProtocolId, bytes: Uint8Array): string =>
  partsOf(protocol, bytes)
    .map(({ content }) => textOf((content ?? []).filter(({ choice }) => choice === 0)))
    .join("");

/** The texts of the fixtures, and of the recordings if they are available. */
export const recorded = (): ReadonlyArray<Text> => {
  const fixtures = protocols.ids.flatMap((protocol) =>
    globSync(`${streams}/${protocol}/*.sse`).map((file) => said(protocol, new Uint8Array(readFileSync(file)))),
  );
  const played = recordings.map((recording) => said(recording.protocol, bytesOf(recording)));
  return [...new Set([...fixtures, ...played])]
    .filter((text) => text.trim() !== "")
    .map((text) => ({ shape: "recorded", text }));
};

const latin =
  "river stone answer model stream window garden quiet figure number because often under morning between travel letter always paper winter silver question simple bridge market yellow person surface reason measure history current problem language general machine theory village careful distance system".split(
    " ",
  );
const cyrillic =
  "река камень ответ модель поток окно сад тихий число потому часто утро между письмо всегда бумага зима вопрос простой мост рынок человек причина мера история задача язык машина теория деревня путь система".split(
    " ",
  );
const arabic =
  "النهر الحجر الجواب النموذج النافذة الحديقة هادئ الرقم لأن غالبا الصباح بين الرسالة دائما الورق الشتاء السؤال بسيط الجسر السوق الإنسان السبب القياس التاريخ المشكلة اللغة الآلة القرية الطريق النظام".split(
    " ",
  );
const hindi =
  "नदी पत्थर उत्तर मॉडल धारा खिड़की बगीचा शांत संख्या क्योंकि अक्सर सुबह बीच पत्र हमेशा काग़ज़ सर्दी प्रश्न सरल पुल बाज़ार व्यक्ति कारण माप इतिहास समस्या भाषा मशीन गाँव रास्ता प्रणाली".split(
    " ",
  );
const han = "河石答模流窗园静数因常晨间信纸冬银问简桥市黄人面理量史今题语机论村远系统水山火木金土日月天地风云花草鸟鱼";
const kana = "かわいしこたえもでるながれまどにわしずかすうじなぜならよくあさあいだてがみいつもかみふゆ";
const hangul = "강물돌대답모형흐름창문정원조용한숫자왜냐하면자주아침사이편지항상종이겨울질문간단다리시장사람";
const thai = "แม่น้ำหินคำตอบแบบจำลองกระแสหน้าต่างสวนเงียบตัวเลขเพราะบ่อยเช้าระหว่างจดหมายเสมอกระดาษฤดูหนาวคำถาม";
const emoji = ["👨‍👩‍👧‍👦", "🇩🇪", "🇯🇵", "👍🏽", "🏳️‍🌈", "😀", "🎉", "❤️", "👩‍💻", "🧑🏿‍🚀", "🇧🇷", "🥨"];

const words = (dice: Dice, from: ReadonlyArray<string>, count: number): string =>
  dice.times(count, () => dice.pick(from as [string, ...Array<string>])).join(" ");

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

const sentence = (dice: Dice, from: ReadonlyArray<string>, end: string): string => {
  const length = dice.between(4, 22);
  const text = capital(words(dice, from, length));
  const number = dice.chance(0.15) ? ` ${dice.between(1, 9999)}.${dice.between(0, 9)} %` : "";
  const quote = dice.chance(0.15) ? ` “${words(dice, from, 2)}” – ${words(dice, from, 2)}` : "";
  return text + number + quote + end;
};

const prose = (dice: Dice, from: ReadonlyArray<string>, ends: readonly [string, ...Array<string>]): string =>
  dice
    .times(dice.between(2, 7), () =>
      dice.times(dice.between(1, 6), () => sentence(dice, from, dice.pick(ends))).join(" "),
    )
    .join("\n\n");

/** Sentences of a script without spaces. */
const dense = (dice: Dice, from: string, comma: string, end: string): string => {
  const letters = Array.from(from);
  const clause = () => dice.times(dice.between(4, 16), () => dice.pick(letters as [string, ...Array<string>])).join("");
  return dice
    .times(dice.between(2, 6), () =>
      dice.times(dice.between(1, 5), () => dice.times(dice.between(1, 4), clause).join(comma) + end).join(""),
    )
    .join("\n\n");
};

const name = (dice: Dice): string =>
  dice.pick(latin as [string, ...Array<string>]) + capital(dice.pick(latin as [string, ...Array<string>]));

const codeLines = (dice: Dice, depth: number): ReadonlyArray<string> => {
  const pad = "    ".repeat(depth);
  return dice
    .times(dice.between(2, 6), () => dice.between(0, 5))
    .flatMap((kind) => {
      if (kind === 0 && depth < 3) {
        return [`${pad}if (${name(dice)} < ${dice.between(0, 99)}) {`, ...codeLines(dice, depth + 1), `${pad}}`];
      }
      if (kind === 1 && depth < 3) {
        return [`${pad}for (const ${name(dice)} of ${name(dice)}) {`, ...codeLines(dice, depth + 1), `${pad}}`];
      }
      if (kind === 2) return [`${pad}// ${words(dice, latin, 5)} - it's “so”`];
      if (kind === 3) return [`${pad}return ${name(dice)}(${name(dice)}, "${words(dice, latin, 2)}");`];
      return [`${pad}const ${name(dice)} = ${name(dice)}.${name(dice)}(${dice.between(0, 9)});`];
    });
};

const code = (dice: Dice): string =>
  dice
    .times(dice.between(1, 3), () => {
      const fence = dice.pick(["```", "```", "~~~", "````"]);
      const language = dice.pick(["ts", "python", "", "js title=x", "rust"]);
      return `${sentence(dice, latin, ":")}\n\n${fence}${language}\n${codeLines(dice, 0).join("\n")}\n${fence}\n\n${sentence(dice, latin, ".")}`;
    })
    .join("\n\n");

const table = (dice: Dice): string => {
  const columns = dice.between(2, 6);
  const row = (cell: () => string) => `| ${dice.times(columns, cell).join(" | ")} |`;
  return [
    sentence(dice, latin, "."),
    "",
    row(() => capital(dice.pick(latin as [string, ...Array<string>]))),
    row(() => "---"),
    ...dice.times(dice.between(3, 20), () =>
      row(() => (dice.chance(0.5) ? String(dice.between(0, 99_999) / 10) : words(dice, latin, dice.between(1, 3)))),
    ),
    "",
    sentence(dice, latin, "."),
  ].join("\n");
};

const list = (dice: Dice): string =>
  dice
    .times(dice.between(4, 30), (index) => {
      const mark = dice.chance(0.5) ? "- " : `${index + 1}. `;
      const depth = "  ".repeat(dice.between(0, 2));
      return `${depth}${mark}${dice.chance(0.5) ? `**${words(dice, latin, 2)}**: ` : ""}${words(dice, latin, dice.between(1, 12))}`;
    })
    .join("\n");

const json = (dice: Dice): string =>
  JSON.stringify(
    dice.times(dice.between(2, 12), (index) => ({
      id: index,
      [name(dice)]: words(dice, latin, 3),
      at: { x: dice.between(0, 9) },
    })),
    undefined,
    2,
  );

const verse = (dice: Dice): string => {
  const refrain = `${sentence(dice, latin, "!")}\n${sentence(dice, latin, "!")}`;
  return dice
    .times(dice.between(2, 5), () => `${sentence(dice, latin, ",")}\n${sentence(dice, latin, ".")}\n${refrain}`)
    .join("\n\n");
};

const shapes: Readonly<Record<string, (dice: Dice) => string>> = {
  english: (dice) => prose(dice, latin, [".", ".", "?", "!"]),
  cyrillic: (dice) => prose(dice, cyrillic, [".", ".", "?"]),
  arabic: (dice) => prose(dice, arabic, [".", "؟", "."]),
  devanagari: (dice) => prose(dice, hindi, ["।", "।", "?"]),
  chinese: (dice) => dense(dice, han, "，", "。"),
  japanese: (dice) => dense(dice, han + kana, "、", "。"),
  korean: (dice) =>
    prose(
      dice,
      dice.times(30, () =>
        dice.times(dice.between(2, 4), () => dice.pick(Array.from(hangul) as [string, ...Array<string>])).join(""),
      ),
      ["."],
    ),
  thai: (dice) => dense(dice, thai, " ", " "),
  code,
  table,
  list,
  json,
  "emoji in prose": (dice) =>
    dice
      .times(
        dice.between(4, 20),
        () =>
          `${words(dice, latin, dice.between(1, 8))} ${dice.pick(emoji as [string, ...Array<string>])}${dice.chance(0.5) ? "!" : ""}`,
      )
      .join(" "),
  "emoji alone": (dice) =>
    dice.times(dice.between(10, 90), () => dice.pick(emoji as [string, ...Array<string>])).join(""),
  "combining marks": (dice) =>
    prose(
      dice,
      latin.map((word) => word.replaceAll(/[aeiou]/g, (one) => `${one}\u0301`)),
      ["."],
    ),
  "carriage returns": (dice) => prose(dice, latin, [".", "!"]).replaceAll("\n", "\r\n"),
  "one long line": (dice) => words(dice, latin, dice.between(80, 400)),
  "no words at all": (dice) => dice.times(dice.between(300, 1_500), () => dice.between(0, 15).toString(16)).join(""),
  "ends in white space": (dice) => `${prose(dice, latin, ["."])}${dice.pick(["\n", "\n\n\n", "  ", "\r\n", " \n \n"])}`,
  "very short": (dice) => words(dice, latin, dice.between(1, 5)) + dice.pick([".", "", "!\n"]),
  "very long": (dice) => dice.times(8, () => prose(dice, latin, [".", "?"])).join("\n\n"),
};

/** Texts with repeated lines or sentences: a cut within them is ambiguous. */
const repeating: Readonly<Record<string, (dice: Dice) => string>> = {
  "refrains (repeats itself)": verse,
  "same lines (repeats itself)": (dice) => {
    const lines = dice.times(3, () => words(dice, latin, dice.between(1, 6)));
    return dice.times(dice.between(8, 40), () => dice.pick(lines as [string, ...Array<string>])).join("\n");
  },
  "same words (repeats itself)": (dice) =>
    dice.times(dice.between(20, 200), () => dice.pick(["ha", "ha", "la", "no"])).join(" "),
  "rules and bars (repeats itself)": (dice) =>
    dice
      .times(dice.between(3, 9), () => `${"=".repeat(dice.between(3, 60))}\n${sentence(dice, latin, ".")}`)
      .join("\n"),
};

/** Returns true if a shape repeats itself on purpose. */
export const repeatsItself = (shape: string): boolean => shape in repeating;

/** Draws texts: of every shape the same number. */
export const generated = (seed: number, each: number): ReadonlyArray<Text> => {
  const dice = new Dice(seed);
  return Object.entries({ ...shapes, ...repeating }).flatMap(([shape, make]) =>
    dice.times(each, () => ({ shape, text: make(dice) })),
  );
};
