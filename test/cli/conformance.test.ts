import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Console, Effect, Exit, Runtime } from "effect";
import { Command } from "effect/cli";
import { hasSdks, sdkFolder } from "../../scripts/sdks/Setup.ts";
import { aiSdkRuntime } from "../../src/cli/conformance/AiSdkRuntime.ts";
import { anthropicRuntime } from "../../src/cli/conformance/AnthropicRuntime.ts";
import { openAiRuntime } from "../../src/cli/conformance/OpenAiRuntime.ts";
import { loadPackages, PackageFolder, requirePackages, versionsOf } from "../../src/cli/conformance/Packages.ts";
import { type SubjectName, subjectNames, subjects, type WithUsSettings } from "../../src/cli/conformance/Subjects.ts";
import { conformanceCommand, failUnsafe } from "../../src/cli/conformance.ts";
import {
  type ConformanceFaultId,
  type ConformanceScoreboard,
  conformanceFaults,
  isSafe,
  runConformance,
} from "../../src/testing/index.ts";

const silenceMs = 300;

/** The columns of the first measurement of bare SDKs, each with its fault. */
const field = {
  reset_before_head: "R2",
  text_cut: "E1",
  text_clean_end: "T1",
  args_cut: "E1",
  args_clean_end: "T1",
  call_then_cut: "E1",
  silence: "R1",
  rate_limited: "R2",
  overload_in_text: "E1",
  server_error: "R2",
} satisfies Partial<Record<ConformanceFaultId, string>>;

const fieldFaults = conformanceFaults.map(({ id }) => id).filter((id) => id in field);

/** Text completions have no calls. */
const { args_clean_end: _clean, args_cut: _cut, call_then_cut: _call, ...fieldOfText } = field;

const rows = (board: ConformanceScoreboard) =>
  Object.fromEntries(
    [...new Set(board.cells.map(({ protocol }) => protocol))].map((protocol) => [
      protocol,
      Object.fromEntries(
        board.cells
          .filter((cell) => cell.protocol === protocol)
          .map(({ fault, letter, requests }) => [fault, `${letter}${requests}`]),
      ),
    ]),
  );

describe("the bare SDKs", () => {
  it.live("openai and @anthropic-ai/sdk behave as measured in the field", () =>
    Effect.gen(function* () {
      const openai = yield* runConformance(yield* openAiRuntime({ name: "openai" }), {
        faults: fieldFaults,
        silenceMs,
      });
      assert.deepStrictEqual(rows(openai), {
        ...{ "openai-chat": field, "openai-responses": field, "openai-completions": fieldOfText },
      });
      const anthropic = yield* runConformance(yield* anthropicRuntime({ name: "anthropic" }), {
        faults: fieldFaults,
        silenceMs,
      });
      assert.deepStrictEqual(rows(anthropic), { "anthropic-messages": field });
      assert.isFalse(isSafe(openai));
    }),
  );

  it.live("AI SDK accepts clean ends as answers, in all four protocols", () =>
    Effect.gen(function* () {
      const board = yield* runConformance(yield* aiSdkRuntime({ name: "ai-sdk" }), {
        faults: ["healthy_call", "text_cut", "text_clean_end", "args_clean_end"],
        silenceMs,
      });
      const row = { healthy_call: "R2", text_cut: "E1", text_clean_end: "T1", args_clean_end: "T1" };
      const spoken = ["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"];
      assert.deepStrictEqual(rows(board), Object.fromEntries(spoken.map((id) => [id, row])));
    }),
  );
});

/** The faults in which a bare SDK of the other wires differs from `field`. */
const others: Partial<Record<SubjectName, Partial<typeof field>>> = {
  ollama: {
    ...{ reset_before_head: "E1", text_clean_end: "E1", args_clean_end: "E1" },
    ...{ rate_limited: "E1", server_error: "E1" },
  },
  cohere: { reset_before_head: "E1", overload_in_text: "T1" },
  mistral: { reset_before_head: "E1", rate_limited: "E1", server_error: "E1" },
  bedrock: {},
  "anthropic-bedrock": {},
};

describe.skipIf(!hasSdks)("the bare SDKs of the other wires", () => {
  for (const [name, differing] of Object.entries(others))
    it.live(`${name} behaves as measured`, () =>
      Effect.gen(function* () {
        // The keys are those of the table, so the cast is safe.
        const bare = subjects[name as SubjectName].bare(name);
        const runtime = yield* Effect.provideService(bare, PackageFolder, sdkFolder);
        const board = yield* runConformance(runtime, { faults: fieldFaults, silenceMs });
        const [protocol = ""] = runtime.protocols;
        assert.deepStrictEqual(rows(board), { [protocol]: { ...field, ...differing } });
      }),
    );
});

/** Breaks after text that a user has seen. */
const shown: ReadonlyArray<ConformanceFaultId> = ["text_cut", "text_clean_end", "stall", "overload_in_text"];

const settings = { reveal: "live", answer: "stop", stallMs: 2_500 } as const;

const failing = Effect.fnUntraced(function* (name: SubjectName, more: Partial<WithUsSettings>) {
  const column = subjects[name].withUs(name, { ...settings, ...more });
  const runtime = yield* Effect.provideService(column, PackageFolder, sdkFolder);
  const board = yield* runConformance(runtime, { silenceMs });
  assert.isTrue(isSafe(board), JSON.stringify(board.cells.filter(({ letter }) => !/[RE]/.test(letter))));
  assert.strictEqual(board.totals.hung, 0);
  return [...new Set(board.cells.filter(({ letter }) => letter !== "R").map(({ fault }) => fault))];
});

/** Mistral stores a conversation, so a request that may have arrived is not repeated. Only a refusal proves that it did not. */
const proven = ["healthy", "healthy_call", "silence", "rate_limited"];
const stored = conformanceFaults.map(({ id }) => id).filter((id) => !proven.includes(id));

/** The SDKs with a gateway in front. The long suite installs most of them. */
const isSkipped = (name: SubjectName): boolean => subjectNames.indexOf(name) > 3 && !hasSdks;

describe("with this package", () => {
  for (const name of subjectNames.filter((each) => each !== "mistral" && !isSkipped(each))) {
    it.live(`${name} is safe, never hangs, and recovers everything except breaks after shown text`, () =>
      Effect.map(failing(name, {}), (failed) => assert.sameMembers(failed, [...shown])),
    );

    it.live(`${name} recovers everything if text is held until its end`, () =>
      Effect.map(failing(name, { reveal: "on_complete" }), (failed) => assert.deepStrictEqual(failed, [])),
    );
  }

  it.live.skipIf(isSkipped("mistral"))(
    "mistral is safe, and a request that Mistral may have stored is never repeated",
    () =>
      Effect.gen(function* () {
        for (const reveal of ["live", "on_complete"] as const)
          assert.sameMembers(yield* failing("mistral", { reveal }), stored);
      }),
  );

  it.live("ai-sdk recovers everything, with text shown as it comes, if its user allows it to be withdrawn", () =>
    Effect.map(failing("ai-sdk", { answer: "retry" }), (failed) => assert.deepStrictEqual(failed, [])),
  );
});

describe("packages of a conformance run", () => {
  it.effect("that are missing are named, with the command that installs them", () =>
    Effect.gen(function* () {
      const missing = "a-package-that-nobody-has";
      const error = yield* Effect.flip(loadPackages([missing], () => import(missing)));
      assert.strictEqual(error._tag, "MissingPackage");
      assert.deepStrictEqual(error.packages, [missing]);
      assert.strictEqual(error.message, `needs ${missing}: npm install ${missing}`);
    }),
  );

  it.effect(
    "that are not even installed for the type checker are found in the working directory, and reported with their versions",
    () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(requirePackages(["a-package-that-nobody-has"]));
        assert.strictEqual(error.message, "needs a-package-that-nobody-has: npm install a-package-that-nobody-has");
        if (!hasSdks) return;
        const found = yield* Effect.provideService(requirePackages(["ollama"]), PackageFolder, sdkFolder);
        assert.property(found.exported, "Ollama");
        assert.match(found.versions.ollama ?? "", /^\d+\.\d+\.\d+/);
      }),
  );

  it.effect("that break while they load are a defect, because installing them again would not help", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(loadPackages(["openai"], () => Promise.reject(new Error("broken"))));
      assert.isTrue(Exit.isFailure(exit) && exit.cause.reasons.every(({ _tag }) => _tag === "Die"));
    }),
  );

  it("report their installed versions", () => {
    const versions = versionsOf(["openai", "@anthropic-ai/sdk", "ai"]);
    for (const version of Object.values(versions)) assert.match(version, /^\d+\.\d+\.\d+/);
    assert.deepStrictEqual(Object.keys(versions), ["openai", "@anthropic-ai/sdk", "ai"]);
    assert.deepStrictEqual(versionsOf(["a-package-that-nobody-has"]), {});
  });
});

const run = (...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const lines: Array<string> = [];
    const errors: Array<string> = [];
    const console: Console.Console = Object.assign(Object.create(globalThis.console), {
      log: (line: string) => void lines.push(line),
      error: (line: string) => void errors.push(line),
    });
    const exit = yield* Command.runWith(conformanceCommand, { version: "test" })(args).pipe(
      Effect.provide(NodeServices.layer),
      Effect.provideService(Console.Console, console),
      Effect.exit,
    );
    return { lines, errors, exit };
  });

describe("stream-recovery conformance", () => {
  it.live("prints both columns side by side", () =>
    Effect.gen(function* () {
      const { exit, lines } = yield* run("openai", "--only", "healthy,text_clean_end", "--protocol", "chat");
      assert.isTrue(Exit.isSuccess(exit), String(exit));
      assert.include(lines[0] ?? "", "| fault in the first response | openai, chat | openai with this package, chat |");
      assert.include(lines[0] ?? "", "| text, clean end             | T1           | E1                             |");
    }),
  );

  it.live("prints scoreboards as JSON, with one column if only one was requested", () =>
    Effect.gen(function* () {
      const { exit, lines } = yield* run("anthropic", "--without-us", "--only", "text_clean_end", "--json");
      assert.isTrue(Exit.isSuccess(exit), "a bare column may be unsafe");
      const boards: ReadonlyArray<ConformanceScoreboard> = JSON.parse(lines[0] ?? "");
      assert.deepStrictEqual(
        boards.map(({ runtime, totals }) => [runtime, totals.silent_truncations]),
        [["anthropic", 1]],
      );
    }),
  );

  it.live("refuses unknown arguments in one line that names them", () =>
    Effect.gen(function* () {
      const fault = yield* run("openai", "--only", "earthquake");
      assert.deepStrictEqual(fault.errors, ['conformance: --only: unknown fault "earthquake"']);
      const protocol = yield* run("openai", "--protocol", "gemini");
      assert.deepStrictEqual(protocol.errors, [
        'conformance: --protocol: expected a part of openai-chat, openai-responses, openai-completions, got "gemini"',
      ]);
      const through = yield* run("openai", "--through", "localhost:8787");
      assert.deepStrictEqual(through.errors, [
        'conformance: --through: expected an http or https URL, got "localhost:8787"',
      ]);
      const header = yield* run("openai", "--through", "http://localhost:8787", "--header", "x-provider");
      assert.deepStrictEqual(header.errors, ['conformance: --header: expected "name: value", got "x-provider"']);
      const alone = yield* run("openai", "--header", "x-provider: a");
      assert.deepStrictEqual(alone.errors, ["conformance: --header: expected only with --through"]);
      for (const { exit } of [fault, protocol, through, header, alone]) assert.include(String(exit), "CommandFailed");
    }),
  );

  it.live("exits with 1 if a column with this package is unsafe, and not for a bare one", () =>
    Effect.gen(function* () {
      const board = yield* runConformance(yield* openAiRuntime({ name: "openai" }), { faults: ["text_clean_end"] });
      yield* failUnsafe([board]);
      const error = yield* Effect.flip(failUnsafe([board, { ...board, runtime: "openai with this package" }]));
      assert.deepStrictEqual(error.runtimes, ["openai with this package"]);
      assert.strictEqual(error[Runtime.errorExitCode], 1);
    }),
  );
});
