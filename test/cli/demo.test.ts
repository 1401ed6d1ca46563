import { createHash } from "node:crypto";
import { existsSync, mkdtempSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { formatTable } from "../../src/cli/demo/DemoTable.ts";
import * as Frames from "../../src/cli/demo/recordings/Frames.ts";
import { type Heard, judgeBroken, judgeWhole } from "../../src/cli/demo/recordings/Judge.ts";
import type { Recording } from "../../src/cli/demo/recordings/Recordings.ts";
import type { Take } from "../../src/cli/demo/recordings/Take.ts";
import { type JudgedRun, judge } from "../../src/cli/demo/scenarios/Judge.ts";
import type { PlayedRun } from "../../src/cli/demo/scenarios/Player.ts";
import { faultCharactersMax, guarded, type Scenario, silentRetry } from "../../src/cli/demo/scenarios/Scenario.ts";
import { scenarios } from "../../src/cli/demo.ts";
import { plainInk } from "../../src/cli/terminal/Ink.ts";
import * as Json from "../../src/domain/Json.ts";
import type { RequestLog } from "../../src/testing/index.ts";
import { folder as recordingsFolder } from "../Recordings.ts";
import { row } from "../testing/faults/Requests.ts";
import { type Ended, run as runProcess } from "./CommandLine.ts";

const fixtures = fileURLToPath(new URL("../fixtures/streams", import.meta.url));

/** The demo keeps its runs, so a test gives it a folder. */
const stateFolder = mkdtempSync(join(tmpdir(), "demo-"));

afterAll(() => rm(stateFolder, { recursive: true, force: true }));

const run = (args: ReadonlyArray<string>, command = "demo", env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  runProcess([command, ...args], { env: { ...process.env, STREAM_RECOVERY_DB: join(stateFolder, "runs.db"), ...env } });

const json = (text: string) => Json.record(Json.parse(text)?.json) ?? {};
const rowsOf = (text: string) => Json.list(json(text).rows).map((row) => Json.record(row) ?? {});

const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "");

describe("stream-recovery demo", () => {
  it("plays every run over real sockets, in four protocols, and each has its hand-written outcome", async () => {
    const { code, stderr, stdout } = await run(["--json"]);
    const rows = rowsOf(stdout);
    assert.strictEqual(code, 0, stdout.slice(0, 2_000));
    assert.isAtLeast(rows.length, 24);
    assert.strictEqual(new Set(rows.map((row) => row.protocol)).size, 4);
    for (const row of rows) {
      const expected = Json.record(row.expected) ?? {};
      assert.deepStrictEqual(row.problems, [], String(row.name));
      assert.strictEqual(row.duplicates, 0);
      assert.strictEqual(row.lost, 0);
      assert.strictEqual(row.cut_inputs, 0);
      assert.strictEqual(row.requests, expected.requests, String(row.name));
      assert.deepStrictEqual(row.decisions, expected.decisions, String(row.name));
    }
    assert.strictEqual(lines(stderr).length, rows.length, "a line of progress for every run");
    assert.isBelow(Number(json(stdout).duration_ms), 20_000);
  });

  it("plays the refused connection in the same way over a store whose runs of this protocol were answered", async () => {
    const played = ["--json", "--only", "port-refused", "--only", "server-error-500"];
    for (const time of ["first", "second"]) {
      const { code, stdout } = await run(played);
      assert.strictEqual(code, 0, `${time}: ${stdout.slice(0, 2_000)}`);
    }
  });

  it("prints a table that fits, an incident in words, and a command that decides it again", async () => {
    const { code, stdout } = await run([
      "--only",
      "call-complete-then-cut,context",
      "--only",
      "late-error",
      "--seed",
      "5",
    ]);
    assert.strictEqual(code, 0, stdout);
    assert.include(stdout, "call complete, then cut");
    assert.include(stdout, "do_not_retry not_retryable");
    assert.include(stdout, "do_not_retry already_complete");
    assert.notInclude(stdout, "reset before");
    assert.include(stdout, "3 of 3 runs as expected");
    assert.include(stdout, "Seed 5.");
    assert.notInclude(stdout, "\u001b[", "no colours in a pipe");
    const [, input = ""] = /^echo '(.*)' \| .* decide --explain$/m.exec(stdout) ?? [];
    for (const line of lines(stdout)) if (!line.startsWith("echo")) assert.isAtMost([...line].length, 100, line);
    const decided = json(await decide(input));
    assert.strictEqual(decided.rule, "tool_calls_fenced");
    const [, delay = ""] = /request\s+again\s+after\s+(\d+)\s+ms/.exec(stdout) ?? [];
    assert.approximately(Number(decided.delay_ms), Number(delay), 1);
  });

  it("shows a recycled and a stale socket in the client's telemetry", async () => {
    const args = ["--only", "stale-socket", "--seed", "5"];
    const { code, stdout } = await run(args, "demo", { STREAM_RECOVERY_KEEPALIVE_MS: "60" });
    assert.strictEqual(code, 0, stdout);
    assert.match(stdout, /^stale-socket-reset: .* 10000 ms /m);
    assert.match(stdout, /^ 2 .* 1 reused .* ECONNRESET ambiguous$/m);
    assert.match(stdout, /^ 3 .* 2 new .* 200 complete$/m);
    assert.match(stdout, /^stale-socket-recycled: .* 60 ms /m);
    assert.match(stdout, /^ 2 .* 2 new, 1 recycled .* 200 complete$/m);
    for (const line of lines(stdout)) if (!line.startsWith("echo")) assert.isAtMost([...line].length, 100, line);
  });

  it("reports an invalid STREAM_RECOVERY_KEEPALIVE_MS and exits with code 2", async () => {
    const { code, stderr, stdout } = await run(["--only", "stale-socket"], "demo", {
      STREAM_RECOVERY_KEEPALIVE_MS: "ten",
    });
    assert.strictEqual(code, 2);
    assert.strictEqual(stdout, "");
    assert.match(stderr, /^demo: STREAM_RECOVERY_KEEPALIVE_MS: expected a whole number of milliseconds .* got "ten"$/m);
  });

  it("names an unknown run and the known ones, and exits with code 2", async () => {
    const { code, stderr, stdout } = await run(["--only", "reset-in-thinking,nonsense"]);
    assert.strictEqual(code, 2);
    assert.strictEqual(stdout, "");
    assert.strictEqual(lines(stderr).length, 1);
    assert.match(stderr, /^demo: --only: unknown run "nonsense"; expected reset-before-head, /);
  });

  it("has runs with unique names whose words fit into the table", () => {
    assert.strictEqual(new Set(scenarios.map((it) => it.name)).size, scenarios.length);
    for (const { fault } of scenarios) assert.isAtMost(fault.length, faultCharactersMax, fault);
  });
});

const decide = async (input: string): Promise<string> => (await runProcess(["decide"], {}, input)).stdout;

const scenario: Scenario = {
  name: "judged",
  fault: "a fault",
  protocol: "openai-chat",
  tools: [guarded],
  answers: [{}],
  expect: silentRetry("nothing_shown", { decisions: [], attempts: 2, requests: 2, toolRuns: 1 }),
};

const call = {
  serial: "r2.t1",
  name: "bash",
  executor: "runtime",
  input: '{"serial":"r2.t1","end":"r2.t1·"}',
} as const;

/** A request whose response broke before its first delta. */
const request = (more: Partial<RequestLog>): RequestLog =>
  row(1, { protocol: "openai-chat", text: [], terminal: false, outcome: "broken", ...more });

const clean: PlayedRun = {
  completed: true,
  error: undefined,
  withdrawn: false,
  continued: false,
  text: "r2.0·r2.1·",
  reasoning: "",
  attempts: 2,
  toolInputs: [call.input],
  incidents: [],
  log: [
    request({ text: ["r1.0·"] }),
    request({ number: 2, text: ["r2.0·", "r2.1·"], calls: [call], terminal: true, outcome: "complete" }),
  ],
  exchanges: [],
  keptMs: 10_000,
  recoveryMs: 5,
  waits: [],
  route: undefined,
  seams: [],
  attached: false,
};

const judged = (more: Partial<PlayedRun>, expect: Partial<Scenario["expect"]> = {}): JudgedRun =>
  judge({ ...scenario, expect: { ...scenario.expect, ...expect } }, { ...clean, ...more });

describe("the demo's judge", () => {
  it("finds an unexpected wait, and a route that answered without a request", () => {
    assert.deepStrictEqual(judged({ waits: ["path"] }).problems, ["waits: expected none, got path"]);
    assert.deepStrictEqual(judged({ route: "second" }).problems, ["route: expected null, got second"]);
  });

  it("finds a text that was continued or not against the expectation", () => {
    assert.deepStrictEqual(judged({ seams: ["anchor"] }).problems, ["seams: expected none, got anchor"]);
    const wanted = judged({ seams: ["logprobs"] }, { seams: ["anchor"] });
    assert.deepStrictEqual(wanted.problems, ["seams: expected anchor, got logprobs"]);
    assert.deepStrictEqual(judged({ seams: ["anchor"] }, { seams: ["anchor"] }).problems, []);
  });

  it("finds a caller that should have reattached and got everything in one read", () => {
    const comes = { ...scenario, leavesAfter: 1 };
    assert.deepStrictEqual(judge(comes, clean).problems, ["the caller did not attach again"]);
    assert.deepStrictEqual(judge(comes, { ...clean, attached: true }).problems, []);
  });

  it("finds a reused connection that should have been fresh", () => {
    const connections = ["kept", "fresh"] as const;
    assert.deepStrictEqual(judged({}, { connections }).problems, ["connections: expected kept, fresh, got none"]);
  });

  it("finds nothing wrong with a clean run", () => {
    assert.deepStrictEqual(judged({}).problems, []);
  });

  it("finds text that is shown twice, within an answer and across two of them", () => {
    assert.strictEqual(judged({ text: "r2.0·r2.1·r2.1·" }).duplicates, 1);
    const both = judged({ text: "r1.0·r2.0·r2.1·" });
    assert.strictEqual(both.duplicates, 1);
    assert.match(both.problems.join(), /duplicates: r1\.0·/);
  });

  it("finds a lost delta and a lost call", () => {
    assert.strictEqual(judged({ text: "r2.0·" }).lost, 1);
    assert.match(judged({ text: "r2.0·" }).problems.join(), /lost: r2\.1·/);
    assert.strictEqual(judged({ toolInputs: [] }, { toolRuns: 0 }).lost, 1);
  });

  it("finds a tool that ran twice and one that ran with truncated arguments", () => {
    assert.strictEqual(judged({ toolInputs: [call.input, call.input] }, { toolRuns: 2 }).duplicates, 1);
    const cut = judged({ toolInputs: ['{"serial":"r2.t1"}'] });
    assert.strictEqual(cut.cut_inputs, 1);
    assert.match(cut.problems.join(), /truncated tool inputs: r2\.t1/);
  });

  it("finds a run that claims to be complete without an answer", () => {
    const row = judged({ log: clean.log.slice(0, 1), text: "r1.0·", toolInputs: [] }, { requests: 1, toolRuns: 0 });
    assert.include(row.problems, "false success");
  });

  it("accepts an answer that broke after its terminal event as whole, except Gemini's, which needs a clean end", () => {
    const late = (protocol: Scenario["protocol"]) =>
      judged({ log: clean.log.map((row) => ({ ...row, protocol, outcome: "broken" as const })) });
    assert.deepStrictEqual(late("openai-chat").problems, []);
    assert.include(late("google-gemini").problems, "false success");
  });

  for (const [what, expect] of [
    ["what the caller saw", { saw: "draft, then whole" }],
    ["the decisions", { decisions: ["ask_user text_shown"] }],
    ["the attempts", { attempts: 1 }],
    ["the server's requests", { requests: 3 }],
    ["the tool runs", { toolRuns: 2 }],
    ["the waits", { waits: ["path"] }],
    ["the route", { route: "second" }],
  ] as const) {
    it(`finds an unexpected value of ${what}, and the table says so`, () => {
      const row = judged({}, expect);
      assert.strictEqual(row.problems.length, 1);
      assert.include(formatTable([row], plainInk), "✗ a fault");
      assert.include(formatTable([row], plainInk), row.problems[0] ?? "?");
    });
  }
});

const stream =
  'event: a\ndata: {"n":1}\n\n: ping\n\ndata: {"n":2}\ndata: é\n\ndata: {"choices":[{"finish_reason":"stop"}]}\n\n';
const frames = Frames.read(Buffer.from(stream));

const recording: Recording = {
  file: "a.sse",
  protocol: "openai-chat",
  status: 200,
  response_headers: {},
  features: [],
  finish: "stop",
  terminal: "[DONE]",
  tool_names: [],
};

const take: Take = {
  name: "rst-0",
  kind: "rst",
  at: 3,
  caller: { name: "live, retry", reveal: "live", answer: "retry" },
};

const hash = createHash("sha256").update(stream).digest("hex");
const wholeHeard: Heard = {
  completed: true,
  frames,
  decisions: [],
  log: [request({ outcome: "complete", sent_hash: hash })],
};
const brokenHeard: Heard = {
  completed: true,
  frames,
  decisions: ["auto_retry_once nothing_shown"],
  log: [request({}), request({ number: 2, outcome: "complete" })],
};

describe("the judge of recordings", () => {
  it("parses events, comments, several data lines and offsets independently", () => {
    assert.deepStrictEqual(
      frames.map(({ data, event, from }) => [event, data, from]),
      [
        ["a", '{"n":1}', 0],
        ["comment", " ping", 24],
        ["message", '{"n":2}\né', 32],
        ["message", '{"choices":[{"finish_reason":"stop"}]}', 56],
      ],
    );
    assert.strictEqual(Frames.endOf("openai-chat", frames, 1_000), 56);
    const crlf = Frames.read(Buffer.from("\ufeffdata: 1\r\n\r\ndata: 2\r\rdata: 3\n"));
    assert.deepStrictEqual(
      crlf.map(({ data, open }) => [data, open]),
      [
        ["1", false],
        ["2", false],
        ["3", true],
      ],
    );
  });

  it("finds nothing wrong with a whole recording and a recovered one", () => {
    assert.deepStrictEqual(judgeWhole(recording, frames, hash, wholeHeard, []).problems, []);
    assert.deepStrictEqual(judgeBroken(recording, take, frames, wholeHeard, brokenHeard).problems, []);
  });

  it("finds an event that is missing, changed or repeated", () => {
    const whole = (heard: Heard["frames"]) => judgeWhole(recording, frames, hash, { ...wholeHeard, frames: heard }, []);
    assert.match(whole(frames.slice(1)).problems.join(), /1 of 4 events are missing/);
    assert.match(
      whole(frames.map((frame) => ({ ...frame, data: frame.data.replace("é", "e") }))).problems.join(),
      /1 of 4 events are missing or changed/,
    );
    const twice = judgeBroken(recording, take, frames, wholeHeard, {
      ...brokenHeard,
      frames: [...frames.slice(0, 1), ...frames],
    });
    assert.strictEqual(twice.extra, 1);
    assert.match(twice.problems.join(), /1 events repeated/);
  });

  it("finds a whole recording that is not complete, and a complete one that should not be", () => {
    const failed = judgeWhole(recording, frames, hash, { ...wholeHeard, completed: false }, []);
    assert.match(failed.problems.join(), /not complete/);
    const should = judgeWhole({ ...recording, finish: null, terminal: null }, frames, hash, wholeHeard, []);
    assert.match(should.problems.join(), /complete, although the recording is not/);
  });

  it("reports a break that counted as the end, and a person whose retry failed", () => {
    const once = judgeBroken(recording, take, frames, wholeHeard, { ...brokenHeard, log: brokenHeard.log.slice(0, 1) });
    assert.isTrue(once.false_success);
    assert.match(once.problems.join(), /reported a broken response as complete/);
    const nowhere = {
      ...brokenHeard,
      completed: false,
      decisions: ["ask_user text_shown"],
      frames: frames.slice(0, 1),
    };
    assert.match(judgeBroken(recording, take, frames, wholeHeard, nowhere).problems.join(), /a person answered retry/);
  });
});

describe("stream-recovery demo --streams", () => {
  const folders: Array<string> = [];
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

  const folder = async (manifest: unknown): Promise<string> => {
    const made = await mkdtemp(join(tmpdir(), "recordings-"));
    folders.push(made);
    await writeFile(join(made, "manifest.json"), typeof manifest === "string" ? manifest : JSON.stringify(manifest));
    return made;
  };

  /** The project's own fixtures as a folder of recordings. `known` holds the facts known about some of them. */
  const fixtureFolder = async (known: Record<string, object>, pick: (file: string) => boolean = () => true) => {
    const all = await readdir(fixtures, { recursive: true });
    const files = all.filter((file) => file.endsWith(".sse") && pick(file)).sort();
    const streams = files.map((file) => ({ file, protocol: dirname(file), ...known[file] }));
    const made = await folder({ streams });
    await cp(fixtures, made, { recursive: true });
    return { made, count: files.length, protocols: new Set(files.map(dirname)).size };
  };

  it("plays the project's fixtures whole and broken, and reports none as complete by mistake", async () => {
    const { count, made, protocols } = await fixtureFolder({
      "anthropic-messages/thinking-text.sse": { finish: "end_turn", terminal: "message_stop" },
      "openai-chat/text.sse": { finish: "stop", terminal: "[DONE]" },
      "openai-responses/reasoning-text.sse": { finish: "completed", terminal: "response.completed" },
      "google-gemini/thinking-text.sse": { finish: "STOP", terminal: "finishReason" },
    });
    const { code, stdout } = await run(["--streams", made, "--json", "--cuts", "1", "--seed", "11"]);
    const failed = rowsOf(stdout).filter((row) => Json.list(row.problems).length > 0);
    assert.deepStrictEqual(failed, [], "seed 11");
    assert.strictEqual(code, 0);
    assert.deepInclude(json(stdout).totals, { recordings: count, false_successes: 0, duplicates: 0, failures: 0 });
    assert.strictEqual(new Set(rowsOf(stdout).map((row) => row.protocol)).size, protocols);
    assert.isAbove(Number(Json.record(json(stdout).totals)?.recovered), 40);
  });

  it("exits with code 1 and names the seed and the place if a recording contradicts its manifest", async () => {
    const { made } = await fixtureFolder(
      { "google-gemini/truncated.sse": { finish: "STOP", terminal: "finishReason", sha256: "0".repeat(64) } },
      (file) => file.endsWith("truncated.sse"),
    );
    const { code, stdout } = await run(["--streams", made, "--cuts", "1", "--seed", "3"]);
    assert.strictEqual(code, 1);
    assert.match(stdout, /✗ google-gemini\/truncated\.sse\n {4}whole \(seed 3\): the file does not match the manifest/);
    assert.include(stdout, "not complete");
  });

  it("breaks at the same places for the same seed", async () => {
    const { made } = await fixtureFolder({}, (file) => file.endsWith("/text.sse"));
    const places = async (seed: string) => {
      const { stdout } = await run(["--streams", made, "--json", "--seed", seed]);
      return rowsOf(stdout).map((row) => [row.kind, row.at, row.caller]);
    };
    const [first, again, other] = await Promise.all([places("1"), places("1"), places("2")]);
    assert.deepStrictEqual(first, again);
    assert.notDeepEqual(first, other);
  });

  for (const [what, manifest, expected] of [
    ["is not JSON", "{", /^demo: manifest\.json: not JSON$/],
    ["has no streams", {}, /^demo: manifest\.json: streams: /],
    [
      "has an unknown protocol",
      { streams: [{ file: "a", protocol: "x" }] },
      /^demo: manifest\.json: streams\[0\]\.protocol: /,
    ],
    [
      "names a file that is not there",
      { streams: [{ file: "a.sse", protocol: "openai-chat" }] },
      /^demo: manifest\.json: streams\[0\]\.file: no such file: a\.sse$/,
    ],
  ] as const) {
    it(`reports in one line that the manifest ${what}, and exits with code 2`, async () => {
      const { code, stderr, stdout } = await run(["--streams", await folder(manifest)]);
      assert.strictEqual(code, 2);
      assert.strictEqual(stdout, "");
      assert.strictEqual(lines(stderr).length, 1);
      assert.match(stderr.trim(), expected);
    });
  }

  it("reports a missing folder, a missing manifest, and an unknown recording", async () => {
    const empty = await mkdtemp(join(tmpdir(), "recordings-"));
    folders.push(empty);
    const missing = await run(["--streams", join(empty, "nowhere")]);
    assert.strictEqual(missing.code, 2);
    assert.match(missing.stderr, /^demo: --streams: no such folder: .*nowhere\n$/);
    assert.match((await run(["--streams", empty])).stderr, /^demo: --streams: no manifest\.json in .*\n$/);
    const { made } = await fixtureFolder({}, (file) => file.endsWith("/text.sse"));
    const unnamed = await run(["--streams", made, "--only", "nonsense"]);
    assert.strictEqual(unnamed.code, 2);
    assert.match(unnamed.stderr, /^demo: --only: no recording has "nonsense" in its name\n$/);
  });

  it.skipIf(!existsSync(join(recordingsFolder, "manifest.json")))(
    "plays a few recordings of real providers, if they are present",
    async () => {
      const manifest = json(await readFile(join(recordingsFolder, "manifest.json"), "utf8"));
      const streams = Json.list(manifest.streams).filter((_, index, all) => index % Math.ceil(all.length / 8) === 0);
      const made = await folder({ streams });
      for (const file of streams.map((row) => Json.string(Json.record(row)?.file))) {
        await mkdir(dirname(join(made, file)), { recursive: true });
        await cp(join(recordingsFolder, file), join(made, file));
      }
      const { code, stdout } = await run(["--streams", made, "--json", "--cuts", "1", "--seed", "17"]);
      const failed = rowsOf(stdout).filter((row) => Json.list(row.problems).length > 0);
      assert.deepStrictEqual(failed, [], "seed 17");
      assert.strictEqual(code, 0);
      assert.deepInclude(json(stdout).totals, { recordings: streams.length, false_successes: 0, duplicates: 0 });
    },
  );
});
