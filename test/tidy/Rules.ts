/**
 * Holds the house rules as rows. Each row has a snippet that breaks it, and the test sees it fire: a rule that never fires is
 * no rule. To add a rule, add a row.
 */
import { bans } from "./Bans.ts";
import { cycles, reachable } from "./ImportGraph.ts";
import type { Source, Tree } from "./Sources.ts";

/** A violation that a rule found. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly banned: string;
  readonly use: string;
}

export interface Rule {
  readonly name: string;
  readonly find: (tree: Tree) => ReadonlyArray<Finding>;
  /** A tree that breaks the rule once, and where. */
  readonly bad: Readonly<Record<string, string>>;
  readonly at: string;
  /** A tree that looks like it and does not break the rule. */
  readonly good: Readonly<Record<string, string>>;
}

/** The message of a finding: the place, the violation and its remedy. */
export const message = ({ path, line, banned, use }: Finding): string =>
  `${path}:${line}: ${banned} is banned, use ${use}`;

/** Maximum lines of a source file: a reader should hold its subject in one sitting. */
const fileLinesMax = 700;

/** Maximum lines of a function. */
const functionLinesMax = 60;

const core = ["domain", "facts", "failure", "policy", "seam", "provider", "recorder", "paths", "runtime"];

/** The core with the stages, which the core itself does not import: a run that uses none loads none. */
const staged = [...core, "stages"];

/** The rooms that each room of src may import besides itself; the empty name is src/index.ts. */
const directions: Readonly<Record<string, ReadonlyArray<string>>> = {
  domain: [],
  facts: ["domain"],
  failure: ["domain"],
  policy: ["domain", "facts"],
  seam: ["domain"],
  provider: ["domain", "failure", "seam"],
  recorder: ["domain", "facts", "failure", "policy", "provider"],
  paths: ["domain", "failure", "recorder"],
  runtime: ["domain", "facts", "failure", "policy", "seam", "provider", "recorder", "paths"],
  story: ["domain", "facts", "failure", "policy", "recorder"],
  stages: core,
  client: core,
  adapters: [...staged, "client"],
  gateway: [...staged, "story", "client", "adapters"],
  testing: [...core, "client"],
  cli: [...staged, "story", "client", "adapters", "gateway", "testing"],
  "": core,
};

/**
 * The floors of each room that has sub-folders, from the ground up; "" is the room itself. A folder imports from its own floor
 * only itself, and anything from the floors below.
 */
const floors: Readonly<Record<string, ReadonlyArray<ReadonlyArray<string>>>> = {
  failure: [["thrown"], ["tables"], ["evidence"], [""]],
  provider: [
    ["stream"],
    ["continuation", "seam"],
    ["protocol"],
    ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"],
    // Envelopes and dialects of the protocols below.
    ["code-assist", "openai-completions", "cohere", "bedrock", "gemini-interactions", "mistral-conversations"],
    [""],
  ],
  recorder: [
    ["shared"],
    [""],
    ["transfer", "retention"],
    ["export", "sql/entry", "sql/lease", "sql/sqlite", "sql/postgres"],
    ["sql"],
    ["postgres"],
    ["store"],
  ],
  runtime: [["contract"], ["tools", "questions", "pacing"], ["attempt"], ["run"], ["recovery"], ["crash"], [""]],
  stages: [["output", "routes", "seam"], [""]],
  client: [["connection"], [""]],
  adapters: [
    ["relay/seam", "relay/document", "relay/form"],
    ["relay"],
    ["fetch", "ai-sdk", "effect-ai", "otlp", "promise"],
    ["provider-model"],
  ],
  gateway: [
    ["limits", "wires"],
    ["clients", "workers"],
    ["config", "api", "log"],
    ["upstream"],
    ["body", "owners", "routing"],
    ["routes"],
    ["proxy", "page/style", "page/geometry"],
    ["attach"],
    ["page"],
    [""],
  ],
  testing: [["script"], ["answers"], ["faults"], ["conformance"], [""]],
  cli: [
    ["terminal"],
    ["command", "demo/stage"],
    ["demo/scenarios", "runs", "backtest", "paths", "conformance", "serve"],
    ["demo/recordings"],
    ["demo"],
    [""],
  ],
};

/** SQL stands in a folder of its own and has an entry point of its own: the core's entries must not reach it. */
const unstableHomes = /^src\/recorder\/(?:sql|postgres|store)\//;

/** The entry points that load only stable `effect` modules, as the package promises. */
const coreEntries = [
  ...["src/index.ts", "src/policy/index.ts", "src/provider/index.ts", "src/stages/index.ts"],
  "src/adapters/promise/PromiseRecovery.ts",
];

/** Single modules, because `effect` as a whole imports sql modules. */
const stable = /^effect\/[A-Z]\w*$/;

const inSrc = ({ path }: { readonly path: string }): boolean => path.startsWith("src/");

const isIndex = (path: string): boolean => /(^|\/)index\.ts$/.test(path);

/** The room of a file in src; the empty name is src itself. */
const folderOf = (path: string): string => (path.split("/").length > 2 ? (path.split("/")[1] ?? "") : "");

/** The sub-folder of a file within its room; the empty name is the room itself. */
const subfolderOf = (path: string): string => path.split("/").slice(2, -1).join("/");

/** Runs a check over every file of src. */
const perSource = (check: (source: Source) => ReadonlyArray<Omit<Finding, "path">>) => (tree: Tree) =>
  tree.sources.filter(inSrc).flatMap((source) => check(source).map((found) => ({ path: source.path, ...found })));

const importDirection: Rule = {
  name: "imports go one way",
  find: perSource((source) => {
    const folder = folderOf(source.path);
    const allowed = directions[folder];
    if (allowed === undefined) {
      return [{ line: 1, banned: `the folder src/${folder}`, use: "a room that the tidy test names" }];
    }
    return source.imports.flatMap(({ target, line }) => {
      if (target === undefined) return [];
      const to = target.startsWith("src/") ? folderOf(target) : target;
      if (to === folder || allowed.includes(to)) return [];
      const places = allowed.length === 0 ? "itself only" : allowed.join(", ");
      return [
        {
          line,
          banned: `importing ${target} from ${source.path}`,
          use: `what ${folder || "index"} may import (${places})`,
        },
      ];
    });
  }),
  bad: { "src/domain/Bad.ts": 'import { y } from "./Good.ts";\nimport { x } from "../facts/Facts.ts";\n' },
  at: "src/domain/Bad.ts:2",
  good: { "src/policy/Good.ts": 'import { x } from "../domain/RunFacts.ts";\nimport { y } from "./Rules.ts";\n' },
};

const runtimeWithoutStages: Rule = {
  ...importDirection,
  name: "the runtime imports no stage",
  bad: { "src/runtime/run/Bad.ts": 'import * as Routes from "../../stages/routes/Routes.ts";\n' },
  at: "src/runtime/run/Bad.ts:1",
  good: { "src/stages/routes/Good.ts": 'import { releaseStreams } from "../../runtime/contract/RunOptions.ts";\n' },
};

const floorDirection: Rule = {
  name: "within a room imports go down",
  find: perSource((source) => {
    const room = floors[folderOf(source.path)];
    const own = subfolderOf(source.path);
    const floorOf = (folder: string): number => room?.findIndex((floor) => floor.includes(folder)) ?? -1;
    if (own !== "" && floorOf(own) < 0) {
      return [{ line: 1, banned: `the folder of ${source.path}`, use: "a floor that the tidy test names" }];
    }
    return source.imports.flatMap(({ target, line }) => {
      if (target === undefined || folderOf(target) !== folderOf(source.path)) return [];
      const to = subfolderOf(target);
      if (to === own || floorOf(to) < floorOf(own)) return [];
      return [{ line, banned: `importing ${target} from ${source.path}`, use: "what stands on a floor below" }];
    });
  }),
  bad: { "src/runtime/attempt/Bad.ts": 'import { y } from "./Good.ts";\nimport { x } from "../run/Run.ts";\n' },
  at: "src/runtime/attempt/Bad.ts:2",
  good: {
    "src/runtime/run/Good.ts": 'import { x } from "../attempt/Attempt.ts";\nimport { y } from "./Run.ts";\n',
    "src/policy/Good.ts": 'import { x } from "./Rules.ts";\n',
  },
};

const floorNeighbours: Rule = {
  ...floorDirection,
  name: "folders of one floor do not know each other",
  bad: { "src/provider/gemini/Bad.ts": 'import { x } from "../anthropic/Calls.ts";\n' },
  at: "src/provider/gemini/Bad.ts:1",
  good: { "src/provider/gemini/Good.ts": 'import { x } from "../stream/Sse.ts";\n' },
};

const stableImports: Rule = {
  name: "the core imports stable effect modules only",
  find: perSource((source) =>
    !(staged.includes(folderOf(source.path)) || isIndex(source.path)) ||
    /^src\/(client|testing|adapters|gateway)\//.test(source.path)
      ? []
      : source.imports
          .filter(({ target, specifier }) => target === undefined && !stable.test(specifier))
          .filter(() => !unstableHomes.test(source.path))
          .map(({ specifier, line }) => ({
            line,
            banned: `importing ${specifier} in the core`,
            use: "a single stable module (effect/Effect), or client, gateway or cli as its place",
          })),
  ),
  bad: { "src/runtime/Bad.ts": 'import * as Effect from "effect/Effect";\nimport { Stream } from "effect";\n' },
  at: "src/runtime/Bad.ts:2",
  good: {
    "src/runtime/Good.ts": 'import * as Effect from "effect/Effect";\n',
    "src/client/Good.ts": 'import { HttpClient } from "effect/http";\n',
  },
};

const coreReach: Rule = {
  name: "the core's entry points reach stable effect modules only",
  find: (tree) =>
    coreEntries.flatMap((entry) =>
      reachable(tree.sources, entry).flatMap((source) =>
        source.imports
          .filter(({ typeOnly, target, specifier }) => !typeOnly && target === undefined && !stable.test(specifier))
          .map(({ specifier, line }) => ({
            path: source.path,
            line,
            banned: `${specifier} behind ${entry}`,
            use: "an entry point of its own",
          })),
      ),
    ),
  bad: {
    "src/index.ts": 'export * from "./recorder/sql/SqlStore.ts";\n',
    "src/recorder/sql/SqlStore.ts": 'import { SqlClient } from "effect/sql";\nexport const x = SqlClient;\n',
  },
  at: "src/recorder/sql/SqlStore.ts:1",
  good: {
    "src/index.ts": 'export * from "./recorder/Store.ts";\n',
    "src/recorder/Store.ts": 'import * as Effect from "effect/Effect";\nexport const x = Effect;\n',
    "src/recorder/sql/SqlStore.ts": 'import { SqlClient } from "effect/sql";\nexport const x = SqlClient;\n',
  },
};

const importCycles: Rule = {
  name: "modules import each other in one direction",
  find: (tree) =>
    cycles(tree.sources.filter(inSrc)).map(({ path, line, round, typeOnly }) => ({
      path,
      line,
      banned: `the ${typeOnly ? "type-only " : ""}import cycle ${round.join(" → ")}`,
      use: "a module of its own for what both need",
    })),
  bad: {
    "src/policy/First.ts": 'import { b } from "./Second.ts";\nexport const a = b;\n',
    "src/policy/Second.ts": 'import type { a } from "./First.ts";\nexport const b = 1;\nexport type A = typeof a;\n',
  },
  at: "src/policy/First.ts:1",
  good: {
    "src/policy/First.ts": 'import { b } from "./Second.ts";\nexport const a = b;\n',
    "src/policy/Second.ts": "export const b = 1;\n",
  },
};

const indexFiles: Rule = {
  name: "index files only re-export",
  find: perSource((source) =>
    isIndex(source.path)
      ? source.declarations.map(({ name, line }) => ({
          line,
          banned: `${name} in an index file`,
          use: "a module and a re-export",
        }))
      : [],
  ),
  bad: { "src/policy/index.ts": 'export * from "./Facts.ts";\nexport const made = 1;\n' },
  at: "src/policy/index.ts:2",
  good: { "src/policy/index.ts": 'export * as Facts from "./Facts.ts";\nexport type { X } from "./X.ts";\n' },
};

const fileNames: Rule = {
  name: "a file is one noun in PascalCase",
  find: perSource(({ path }) => {
    const name = path.split("/").at(-1) ?? "";
    if (/^(utils?|common|helpers?|misc|types?)\.ts$/i.test(name)) {
      return [{ line: 1, banned: `the file name ${name}`, use: "the noun that it is about" }];
    }
    if (isIndex(path) || folderOf(path) === "cli" || /^[A-Z][A-Za-z0-9]*\.ts$/.test(name)) return [];
    return [{ line: 1, banned: `the file name ${name}`, use: "a noun in PascalCase" }];
  }),
  bad: { "src/policy/retryBudget.ts": "export {};\n" },
  at: "src/policy/retryBudget.ts:1",
  good: {
    "src/policy/RetryBudget.ts": "export {};\n",
    "src/policy/index.ts": "export {};\n",
    "src/cli/decide.ts": "export {};\n",
  },
};

const vagueNames: Rule = {
  ...fileNames,
  name: "no file is called utils, common, helpers, misc or types",
  bad: { "src/cli/helpers.ts": "export {};\n" },
  at: "src/cli/helpers.ts:1",
  good: { "src/cli/main.ts": "export {};\n" },
};

const fileLength: Rule = {
  name: `a file has at most ${fileLinesMax} lines`,
  find: perSource(({ text }) => {
    const lines = text.split("\n").length - 1;
    return lines <= fileLinesMax
      ? []
      : [
          {
            line: fileLinesMax + 1,
            banned: `a file of ${lines} lines`,
            use: `a second noun (at most ${fileLinesMax} lines)`,
          },
        ];
  }),
  bad: { "src/policy/Long.ts": "export {};\n".repeat(fileLinesMax + 1) },
  at: `src/policy/Long.ts:${fileLinesMax + 1}`,
  good: { "src/policy/Long.ts": "export {};\n".repeat(fileLinesMax) },
};

/** A function with the given number of lines. */
const functionOf = (lines: number): string => `const long = () => {\n${"  long();\n".repeat(lines - 2)}};\n`;

const functionLength: Rule = {
  name: `a function has at most ${functionLinesMax} lines`,
  find: perSource(({ functions }) =>
    functions
      .filter(({ lines }) => lines > functionLinesMax)
      .map(({ name, line, lines }) => ({
        line,
        banned: `a function of ${lines} lines (${name})`,
        use: `helpers below it (at most ${functionLinesMax} lines)`,
      })),
  ),
  bad: { "src/policy/Long.ts": `\n${functionOf(functionLinesMax + 1)}` },
  at: "src/policy/Long.ts:2",
  good: { "src/policy/Long.ts": functionOf(functionLinesMax) },
};

const docstrings: Rule = {
  name: "every export has a docstring",
  find: perSource(({ undocumented }) =>
    undocumented.map(({ name, line }) => ({
      line,
      banned: `the export ${name} without a docstring`,
      use: "`/** … */` directly before it",
    })),
  ),
  bad: {
    "src/domain/Bad.ts": '/** Opens the module. */\nimport { Schema } from "effect";\n\nexport const limit = 1;\n',
  },
  at: "src/domain/Bad.ts:4",
  good: {
    "src/domain/Good.ts": [
      "/** Named. */",
      "export const Name = Schema.String;",
      "export type Name = typeof Name.Type;",
      "/** More. */",
      "// biome-ignore lint/x: because",
      "export const more = 2;",
      "const own = 1;",
      "",
    ].join("\n"),
  },
};

/** A reason must be on the line of the cast or at most this many lines above it. */
const castReasonLines = 3;

const castReasons: Rule = {
  name: "a cast has its reason beside it",
  find: perSource(({ casts, comments }) => {
    const lines = comments.split("\n");
    return casts
      .filter(({ line }) =>
        lines.slice(Math.max(0, line - 1 - castReasonLines), line).every((text) => text.trim() === ""),
      )
      .map(({ name, line }) => ({
        line,
        banned: `the cast to ${name} without a reason`,
        use: "a comment that says why",
      }));
  }),
  bad: { "src/client/Bad.ts": "const a = 1 as const;\nconst b = a as unknown;\n" },
  at: "src/client/Bad.ts:2",
  good: { "src/client/Good.ts": "// The library says nothing of it.\nconst b = a as unknown;\n" },
};

/** All rules, each once. */
export const rules: ReadonlyArray<Rule> = [
  importDirection,
  runtimeWithoutStages,
  floorDirection,
  floorNeighbours,
  stableImports,
  coreReach,
  importCycles,
  indexFiles,
  fileNames,
  vagueNames,
  fileLength,
  functionLength,
  docstrings,
  castReasons,
  ...bans,
];
