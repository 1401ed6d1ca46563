/**
 * Texts that are odd to cut, cut at every unit: markdown, tables of numbers, addresses, pictures, line ends of other systems, scripts
 * from right to left, characters that are not seen, and the marks of the request itself.
 */
import { assert, describe, it } from "@effect/vitest";
import { seamWords } from "../../src/provider/continuation/SeamRequest.ts";
import { anchorOf } from "../../src/seam/Anchor.ts";
import * as SeamVerifier from "../../src/seam/SeamVerifier.ts";

const texts: Readonly<Record<string, string>> = {
  markdown:
    "## Locks\n\n- **open** takes *the* lock and [waits](https://a.example/x_(y)?q=1&r=2#s) for `close()`;\n- **close** gives it back.\n\n> A caller that leaves, leaves it ~~open~~ closed.\n\n1. First one\n2. Second one\n\n***\n\nThat is *all* there is to say.",
  "a table of numbers":
    "| year | rain | snow |\n|---:|---:|---:|\n| 1998 | 12.5 | 1,024 |\n| 1999 | 12.75 | 2,048 |\n| 2000 | 3.141592653589793 | 65,536 |\n| 2001 | 0.0000001 | 4,294,967,296 |\n\nAll numbers are in millimetres (±0.5).",
  "addresses and numbers":
    "See https://docs.example.org/v1.2.3/a/b/c?x=10&y=20#part-4.5 or write to someone.else@mail.example.org. The number is 3.14159265358979323846264338327950288 and the key is 0xDEADBEEF-1234-5678.",
  pictures:
    "Hello 👋🏽 from 👩‍👩‍👧‍👦 in 🇩🇪🇫🇷 with ❤️‍🔥 and 🏴󠁧󠁢󠁥󠁮󠁧󠁿 for 1️⃣ reason: 🧑🏿‍🚀 flies to 🌕. And back 🚀 again, é and é, too.",
  "CRLF and tabs":
    "First\tline of\tthe text.\r\n\tSecond line,\tindented.\r\n\r\n\tThird one\twith\ttabs.\r\nThe last line goes on for a while and ends here.",
  "a very long line": `${Array.from({ length: 400 }, (_, at) => `w${(at * 7919) % 1009}x${at}`).join(" ")} end`,
  "a line without white space": Array.from({ length: 300 }, (_, at) => `${at},${(at * 7919) % 1009};`).join(""),
  "right to left":
    "السلام عليكم، هذا نص طويل يكتب من اليمين إلى اليسار، وفيه أرقام 123 و 456. ثم جملة أخرى؟ نعم. ‏שלום עולם, זה טקסט ‎(abc)‎ בעברית עם סימנים״ ועוד משפט אחד כאן.",
  "characters that are not seen":
    "A\u200Bzero\u200Bwidth\u200Btext with\u00ADsoft hyphens,\u00A0no-break\u00A0spaces and\u202Fnarrow ones.\u2060 Then \uFEFFa mark inside, joiners\u200D, and\u200Enothing else is\u200F to be seen here.",
  "the marks of the request":
    "The words stand between <cut> and </cut>. A <cut2>mark</cut2> in a text is text, <cut>as is this</cut>, and nothing ends at </cut> but the mark that began.",
};

/** What a model makes of the anchor that copies it badly. */
const others: ReadonlyArray<readonly [what: string, of: (shown: string) => string]> = [
  ["another digit", (shown) => shown.replace(/\d/, (digit) => `${(Number(digit) + 1) % 10}`)],
  ["without what is not seen", (shown) => shown.replaceAll(/[\u200b-\u200f\u2060\u00ad]/g, "")],
  ["pictures without their colours", (shown) => shown.replaceAll(/[\ufe0f\u{1f3fb}-\u{1f3ff}]/gu, "")],
  ["without the marks of markdown", (shown) => shown.replaceAll(/\*\*?/g, "")],
  ["in marks", (shown) => `<cut>${shown}`],
  ["in quotation marks", (shown) => `„${shown}`],
  ["in a code block", (shown) => `\`\`\`\n${shown}`],
  ["as a quotation", (shown) => `> ${shown}`],
];

/** Every cut of a short text, some of a long one. */
const cutsOf = (text: string): ReadonlyArray<number> => {
  const step = text.length > 1_000 ? 23 : 1;
  return Array.from({ length: Math.floor((text.length - 1) / step) }, (_, at) => 1 + at * step);
};

interface Read {
  readonly text: string;
  readonly fault: string | undefined;
}

/** What a client has read of a text behind a cut, where the model says this. */
const readOf = (run: string, said: string, size: number, start: Partial<SeamVerifier.SeamStart> = {}): Read => {
  const anchor = anchorOf(run);
  if (typeof anchor === "string") return { text: run, fault: anchor };
  const verifier = SeamVerifier.make({ run, anchor, proof: "anchor", ...start });
  let text = run;
  for (let at = 0; at < said.length; at += size) {
    const step = verifier.take(said.slice(at, at + size));
    if (step.type === "unproven") return { text, fault: step.fault };
    if (step.type === "joined") text += step.text;
  }
  const step = verifier.stop();
  return step.type === "joined" ? { text: text + step.text, fault: undefined } : { text, fault: "stopped" };
};

const anchorIn = (run: string): number => {
  const anchor = anchorOf(run);
  return typeof anchor === "string" ? run.length : anchor.at;
};

describe("an odd text that is cut at any unit", () => {
  for (const [name, text] of Object.entries(texts)) {
    it(`${name}: goes on with each character once, in pieces of any size`, () => {
      for (const cut of cutsOf(text))
        for (const size of [1, 5, 64]) {
          const run = text.slice(0, cut);
          assert.deepStrictEqual(readOf(run, text.slice(anchorIn(run)), size), { text, fault: undefined }, `${cut}`);
        }
    });

    it(`${name}: goes on behind an echo of all that was sent, as a whole and without its end of white space`, () => {
      for (const cut of cutsOf(text)) {
        const run = text.slice(0, cut);
        const start = { proof: "prefill", echoes: true } as const;
        // Half a character is not sent, and no prefill ends with one.
        if (/[\ud800-\udbff]$/.test(run)) continue;
        const { fault, text: read } = readOf(run, text, 5, start);
        if (fault === undefined) assert.strictEqual(read, text, `${cut}`);
        else assert.isTrue(text.startsWith(read), `${cut}: ${fault}`);
      }
    });

    it(`${name}: shows nothing of a model that says another text`, () => {
      for (const cut of cutsOf(text)) {
        const run = text.slice(0, cut);
        const at = anchorIn(run);
        for (const [what, other] of others) {
          const shown = run.slice(at);
          const said = other(shown) + text.slice(cut);
          // Where only the last of it is another, what follows may be the same.
          if (shown.trim() === "" || said.startsWith(shown)) continue;
          assert.strictEqual(readOf(run, said, 5).text, run, `${what} at ${cut}`);
        }
      }
    });
  }

  it("is quoted in marks that it does not close itself", () => {
    for (let cut = 1; cut < 200; cut += 1) {
      const anchor = anchorOf((texts["the marks of the request"] ?? "").slice(0, cut));
      if (typeof anchor === "string") continue;
      const words = seamWords(anchor.quote);
      const [, mark = ""] = /with: <(cut\d*)>/.exec(words) ?? [];
      const open = words.indexOf(`<${mark}>`) + mark.length + 2;
      assert.strictEqual(words.slice(open, words.indexOf(`</${mark}>`, open)), anchor.quote);
    }
  });
});
