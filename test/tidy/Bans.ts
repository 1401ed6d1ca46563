/**
 * Lists words that are banned from certain files, with their replacements.
 */
import type { Rule } from "./Rules.ts";
import { lineFinder, type Source, type TextFile } from "./Sources.ts";

interface Ban {
  readonly banned: string;
  readonly use: string;
  readonly in: RegExp;
  readonly except?: RegExp;
  /** Files that say so themselves are left out. */
  readonly unless?: (source: Source) => boolean;
  /** Code is without comments and the contents of strings; text is everything, of every committed file. */
  readonly search: "code" | "comments" | "text";
  readonly pattern: RegExp;
  /** A file and a line that break the rule, and a line that does not. */
  readonly bad: readonly [string, string];
  readonly good: string;
}

const pure = /^src\/(domain|facts|failure|policy|seam|provider)\//;

/** A word, its pattern, what to use, a line that breaks the ban and one that does not. */
const pureWords: ReadonlyArray<readonly [string, RegExp, string, string, string]> = [
  ["Clock", /(?<![.\w])Clock\b/g, "time as an argument", "const now = yield* Clock.Clock;", "const clock = idle;"],
  ["Random", /(?<![.\w])Random\b/g, "the jitter argument", "yield* Random.next;", "const randomness = 0; // Random"],
  ["Date", /(?<![.\w])Date\b/g, "milliseconds as an argument", "const now = new Date(0);", "const date = 1;"],
  ["a timer", /\bset(Timeout|Interval|Immediate)\b/g, "`delay_ms`", "setTimeout(() => {}, 1);", "const timeout = 1;"],
  ["fetch", /(?<![.\w])fetch\s*\(/g, "bytes as an argument", "await fetch(url);", "const fetched = prefetch();"],
  ["process", /(?<![.\w])process\./g, "an argument", "const x = process.env;", "const x = { process: 1 };"],
  ["Layer", /(?<![.\w])Layer\b/g, "a plain value (services start in recorder)", "Layer.empty;", "const layers = 1;"],
  ["console", /(?<![.\w])console\s*\./g, "a returned value", "console.error(1);", 'const x = "console.log";'],
];

const pureBans = pureWords.map(
  ([word, pattern, use, bad, good]): Ban => ({
    banned: `${word} in a pure folder`,
    use,
    in: pure,
    search: "code",
    pattern,
    bad: ["src/policy/Bad.ts", bad],
    good,
  }),
);

/** The words are put together here, as this file is searched like every other. */
const workplace = new RegExp(
  [
    "/wo",
    "rk/|/fa",
    "rm/|\\.libr",
    "ary\\b|\\bregi",
    "stry\\.(npmjs|yarnpkg|npmmirror)|https?://[\\w.-]*regi",
    "stry\\.",
  ].join(""),
  "g",
);

const drivenByTestClock = (source: Source): boolean =>
  source.path === "test/runtime/Scripted.ts" ||
  /\bTestClock\b/.test(source.code) ||
  source.imports.some(({ target }) => target === "test/runtime/Scripted.ts");

const srcBans: ReadonlyArray<Ban> = [
  {
    banned: "Date.now",
    use: "the Clock service",
    in: /^src\//,
    // a browser has no services: the page's script asks the browser's own clock, which is never set
    except: /^src\/gateway\/page\/Browser\.ts$/,
    search: "code",
    pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b/g,
    bad: ["src/runtime/Bad.ts", "const now = Date.now();"],
    good: "const past = new Date(0); // Date.now",
  },
  {
    banned: "Math.random",
    use: "the Random service, or the jitter argument",
    in: /^src\//,
    search: "code",
    pattern: /\bMath\.random\b/g,
    bad: ["src/runtime/Bad.ts", "const jitter = Math.random();"],
    good: "const most = Math.max(1, 2);",
  },
  {
    banned: "any",
    use: "a schema, a generic or `unknown`",
    in: /^src\//,
    search: "code",
    pattern: /\bas any\b|:\s*any\b|<any\b|\bany>|\bany\[\]/g,
    bad: ["src/runtime/Bad.ts", "const x = y as any;"],
    good: "const any = 1; const z = x as unknown; // : any",
  },
  {
    banned: "switching the compiler off",
    use: "a type that fits",
    in: /^(src|test|scripts)\//,
    search: "comments",
    pattern: /@ts-(ignore|nocheck)\b/g,
    bad: ["src/runtime/Bad.ts", "// @ts-ignore"],
    good: 'const text = "@ts-ignore";',
  },
  {
    // A test may expect an error: it proves that something does not compile.
    banned: "expecting a type error",
    use: "a type that fits",
    in: /^(src|scripts)\//,
    search: "comments",
    pattern: /@ts-expect-error\b/g,
    bad: ["src/runtime/Bad.ts", "// @ts-expect-error"],
    good: 'const text = "@ts-expect-error";',
  },
  {
    banned: "a note to come back",
    use: "the finished thing, or an issue",
    in: /^(src|test|scripts)\//,
    search: "comments",
    pattern: /\b(TODO|FIXME|XXX)\b/g,
    bad: ["src/runtime/Bad.ts", "const x = 1; // TODO later"],
    good: 'const text = "TODO";',
  },
  {
    banned: "console",
    use: "the recorder, or Effect's Console in cli",
    in: /^src\//,
    except: /^src\/cli\//,
    search: "code",
    pattern: /(?<![.\w])console\s*\.\s*\w+/g,
    bad: ["src/client/Bad.ts", "console.log(1);"],
    good: "Console.log(1);",
  },
  {
    banned: "a timer",
    use: "Effect.sleep, or the watchdog's sweeper",
    in: /^src\//,
    // undici and node:http2 call connector and sessions outside of any fiber, so that their clocks cannot be fibers either; a
    // browser has no fibers; where there is no setImmediate, a turn of the event loop is a timer
    except:
      /^src\/(testing\/|runtime\/attempt\/AsyncSource\.ts$|client\/connection\/Connector\.ts$|gateway\/page\/Browser\.ts$)/,
    search: "code",
    pattern: /(?<![.\w])set(Timeout|Interval)\s*\(/g,
    bad: ["src/client/Bad.ts", "setTimeout(() => {}, 1);"],
    good: "socket.setTimeout(0);",
  },
  {
    // V8 allocates such a function among the old objects. All that it can see, a run with its whole response as a rule, is copied by
    // two minor collections then, and kept until the next full one.
    banned: "a function that is written where it is assigned to a property",
    use: "a constant that is assigned",
    in: /^src\/(runtime|provider|seam|facts|paths|client|adapters|gateway)\//,
    // a page has one of each, and so have all fibers
    except: /^src\/(gateway\/page\/Browser|runtime\/contract\/InterruptSignature)/,
    search: "code",
    pattern:
      /^[ \t]*(?:if \(.*\) |else )?[\w#.[\]]+\.#?\w+ (?:\?\?|\|\|)?= (?:async )?(?:function\b|\w+ =>|\([^()]*\)(?:: [^=\n]+)? =>)/gm,
    bad: ["src/runtime/Bad.ts", "this.#free = () => run;"],
    good: "const free: Bench.Free = () => run; this.#free = free;",
  },
  {
    // It imports a client of Redis, seven hundred files, with every start of the command line.
    banned: "the barrel of platform-node",
    use: "the module itself, as in @effect/platform-node/NodeServices",
    in: /^(src|test|scripts)\/.*\.ts$/,
    search: "text",
    pattern: /(?:from|import\()\s*"@effect\/platform-node"/g,
    bad: ["src/cli/Bad.ts", ['import { NodeServices } from "@effect/', 'platform-node";'].join("")],
    good: 'import * as NodeServices from "@effect/platform-node/NodeServices";',
  },
  {
    banned: "sleeping in a test",
    use: "TestClock, or a Deferred that the event completes",
    in: /^test\/.*\.ts$/,
    unless: drivenByTestClock,
    search: "code",
    pattern: /\bEffect\.(sleep|delay)\s*\(/g,
    bad: ["test/runtime/Bad.test.ts", "yield* Effect.sleep(10);"],
    good: 'import { TestClock } from "effect/testing"; yield* Effect.sleep(10);',
  },
  {
    banned: "a real timer in a test",
    use: "TestClock, or an event of the socket",
    in: /^test\/.*\.ts$/,
    search: "code",
    pattern: /(?<![.\w])set(Timeout|Interval)\s*\(|\bscheduler\.wait\s*\(/g,
    bad: ["test/runtime/Bad.test.ts", "setTimeout(done, 10);"],
    good: "setImmediate(done);",
  },
  {
    banned: "a path or host of the workplace",
    use: "a path from the root of the repository",
    in: /./,
    search: "text",
    pattern: workplace,
    bad: ["docs/Bad.md", ["see /wo", "rk/shared"].join("")],
    good: "see framework/core and registry.get(id)",
  },
];

const rule = (ban: Ban): Rule => ({
  name: `${ban.banned} is banned in ${ban.in.source.replaceAll("\\", "")}`,
  find: (tree) => {
    const candidates: ReadonlyArray<Source | TextFile> =
      ban.search === "text" ? tree.files : tree.sources.filter((source) => ban.unless?.(source) !== true);
    return candidates
      .filter(({ path }) => ban.in.test(path) && ban.except?.test(path) !== true)
      .flatMap((file) => {
        const text = ban.search === "text" ? file.text : "code" in file ? file[ban.search] : "";
        const lineAt = lineFinder(text);
        return [...text.matchAll(ban.pattern)].map((match) => ({
          path: file.path,
          line: lineAt(match.index),
          banned: ban.banned,
          use: ban.use,
        }));
      });
  },
  bad: { [ban.bad[0]]: `\n${ban.bad[1]}\n` },
  at: `${ban.bad[0]}:2`,
  good: { [ban.bad[0]]: `${ban.good}\n` },
});

/** The bans as rules. */
export const bans: ReadonlyArray<Rule> = [...pureBans, ...srcBans].map(rule);
