/**
 * `npm run agent-kill -- --runs 200 --seed 7`: kills the example agent in the middle of its work, lets the next process continue its run,
 * and compares the effects of its tools with its journal. Exit code 1 if a tool took effect twice or a turn has no end.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Deferred, Effect, Option } from "effect";
import { FaultProvider, type FaultScript } from "effect-stream-recovery/testing";
import { Dice } from "../test/simulation/Dice.ts";

const main = join(import.meta.dirname, "../docs/examples/agent/main.ts");

/** Maximum processes of a chat that are killed. The process after them runs to the end. */
const kills = 4;

/** Maximum time from the first output of a process to its kill, in milliseconds. */
const lifeMsMax = 900;

/** Time after which a process counts as stuck, in milliseconds. */
const endMsMax = 60_000;

type Answers = NonNullable<FaultScript.FaultScriptInput["answers"]>;

/** Draws one response: text and calls, whole or broken at some point. */
const answerOf = (random: () => number): Answers[number] => {
  const mark = { tool: "shell", input: { command: "echo mark >> marks; sleep 0.08" } };
  const note = { tool: "write_file", input: { path: "a.txt", content: "noted" } };
  const text = { text: 1 + Math.floor(random() * 4) };
  const call = random() < 0.7 ? mark : note;
  const content = random() < 0.3 ? [call] : random() < 0.5 ? [text, call] : [text, call, { text: 2 }, mark];
  const delay_ms = 5 + Math.floor(random() * 30);
  const fate = random();
  if (fate < 0.5) return { content, delay_ms };
  const kind = fate < 0.7 ? "rst" : fate < 0.85 ? "fin" : "end";
  return random() < 0.4
    ? { content, delay_ms, break: { kind, at: "terminal" } }
    : { content, delay_ms, break: { kind, at: "event", n: 1 + Math.floor(random() * 14) } };
};

/** The state of a chat according to its journal and to the file that its tools write. */
class Evidence {
  readonly #journal: string;
  readonly #marks: string;
  /** The person's verdicts on interrupted calls, by call. */
  readonly #verdicts = new Map<string, "it_ran" | "it_did_not_run">();

  constructor(at: string) {
    this.#journal = join(at, "chat.jsonl");
    this.#marks = join(at, "box", "marks");
  }

  get #lines(): ReadonlyArray<Record<string, unknown>> {
    const lines = existsSync(this.#journal) ? readFileSync(this.#journal, "utf8").split("\n").slice(0, -1) : [];
    let run: unknown;
    return lines.map((line) => {
      const entry = JSON.parse(line);
      if (entry._tag === "Run") run = entry.run;
      return { ...entry, key: `${run} ${entry.attempt}/${entry.call}` };
    });
  }

  get marks(): number {
    return existsSync(this.#marks) ? readFileSync(this.#marks, "utf8").trim().split("\n").length : 0;
  }

  get hasBegun(): boolean {
    return this.#lines.some(({ _tag }) => _tag === "User");
  }

  get isOpen(): boolean {
    return this.hasBegun && this.#lines.at(-1)?._tag !== "End";
  }

  #keys(tag: string): ReadonlyArray<string> {
    const shell = this.#lines.filter(({ _tag, tool }) => _tag === "Started" && tool === "shell");
    return this.#lines
      .filter(({ _tag, key }) => _tag === tag && shell.some((it) => it.key === key))
      .map(({ key }) => String(key));
  }

  #ran(but?: string): number {
    return [...this.#verdicts].filter(([key, verdict]) => key !== but && verdict === "it_ran").length;
  }

  /** Checks whether the interrupted call left its mark, as a careful person would. */
  verdict(): string {
    const results = this.#keys("Result");
    const key = this.#keys("Started").findLast((it) => !results.includes(it)) ?? "";
    const verdict = this.marks > results.length + this.#ran(key) ? "it_ran" : "it_did_not_run";
    this.#verdicts.set(key, verdict);
    return verdict;
  }

  get problems(): ReadonlyArray<string> {
    const [started, results] = [this.#keys("Started"), this.#keys("Result")];
    const known = results.length + this.#ran();
    const unsettled = started.length - results.length - this.#verdicts.size;
    return [
      ...(new Set(started).size === started.length ? [] : ["a call was started twice"]),
      ...(new Set(results).size === results.length ? [] : ["a call has two results"]),
      ...(this.marks >= known && this.marks <= known + unsettled
        ? []
        : [`${this.marks} marks, ${known} calls that ran, ${unsettled} that were not settled`]),
      ...(this.isOpen ? ["the turn has no end"] : []),
    ];
  }
}

/** Answers a question: truthfully about a call, otherwise by continuing without repeating anything. */
const answer = (question: string, evidence: Evidence): string => {
  if (question.includes("it_did_not_run")) return evidence.verdict();
  const repeats = question.includes("may run again");
  const wanted = ["continue", ...(repeats ? [] : ["retry"]), "accept", "stop"];
  return wanted.find((choice) => new RegExp(`\\d  ${choice}\\b`).test(question)) ?? "no";
};

/** Runs one process of a chat. Returns true if it had to be killed. */
const playProcess = (args: ReadonlyArray<string>, evidence: Evidence, afterMs: number) =>
  Effect.gen(function* () {
    const env = { ...process.env, ANTHROPIC_API_KEY: "not-a-key", OPENAI_API_KEY: "not-a-key" };
    const child = spawn(process.execPath, ["--no-warnings", main, ...args], { env });
    const ready = Deferred.makeUnsafe<void>();
    const ended = Deferred.makeUnsafe<number | null>();
    let printed = "";
    let answered = 0;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      Deferred.doneUnsafe(ready, Effect.void);
      printed += text;
      for (const asked = printed.split("answer> "); answered < asked.length - 1; answered += 1) {
        child.stdin.write(
          `${answer(
            asked
              .slice(0, answered + 1)
              .join("")
              .split("? ")
              .at(-1) ?? "",
            evidence,
          )}\n`,
        );
      }
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
    child.stdin.on("error", () => undefined);
    child.once("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code)));
    yield* Effect.raceFirst(Deferred.await(ready), Deferred.await(ended));
    const inTime = yield* Effect.timeoutOption(Deferred.await(ended), afterMs);
    if (Option.isNone(inTime)) {
      child.kill("SIGKILL");
      yield* Deferred.await(ended);
      return true;
    }
    // Exit code 1 is a turn that was stopped, which is an end too.
    if (inTime.value !== 0 && inTime.value !== 1)
      return yield* Effect.die(new Error(`exit code ${inTime.value}: ${printed}`));
    return false;
  });

/** Plays a chat to the end of its turn, and judges it. */
const play = (seed: number) =>
  Effect.gen(function* () {
    const dice = new Dice(seed);
    const random = () => dice.next();
    const at = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "agent-kill-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })),
    );
    const drawn = Array.from({ length: 2 + Math.floor(random() * 3) }, () => answerOf(random));
    // The last response repeats. It is whole, so an agent that asks often enough gets one.
    const answers = [...drawn, { content: [{ text: 3 }], delay_ms: 10 }];
    const provider = yield* FaultProvider.make({ script: { answers } });
    const protocol = random() < 0.5 ? "anthropic-messages" : "openai-chat";
    const chat = ["--model", "m", "--protocol", protocol, "--base", `${provider.url}/v1`, "--dir", join(at, "box")];
    const kept = ["--folder", at, "--lease-ms", "300"];
    const evidence = new Evidence(at);
    const next = () => (evidence.hasBegun ? ["--resume"] : [...chat, "--prompt", "Tidy up"]);
    let hit = 0;
    for (let life = 0; life < kills; life += 1) {
      if (!(yield* playProcess([...kept, ...next()], evidence, 30 + Math.floor(random() * lifeMsMax)))) break;
      if (evidence.isOpen) hit += 1;
    }
    const isStuck = yield* playProcess([...kept, ...next()], evidence, endMsMax);
    const problems = [...evidence.problems, ...(isStuck ? ["the last process did not end"] : [])];
    return { hit, marks: evidence.marks, problems: problems.map((problem) => `seed ${seed}: ${problem}`) };
  }).pipe(Effect.scoped);

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "40" },
    seed: { type: "string", default: String(1 + (process.pid % 1_000_000)) },
    help: { type: "boolean", short: "h", default: false },
  },
});
const [runs, seed] = [Number(values.runs), Number(values.seed)];
if (values.help || !(runs > 0) || !Number.isSafeInteger(seed)) {
  console.log("npm run agent-kill -- [--runs 40] [--seed N]   (each run is one chat; prints the seed)");
  process.exit(values.help ? 0 : 2);
}

const outcomes = await Effect.runPromise(
  Effect.forEach(
    Array.from({ length: runs }, (_, index) => seed + index),
    play,
    { concurrency: 2 },
  ),
);
const problems = outcomes.flatMap((outcome) => outcome.problems);
const total = (of: (outcome: (typeof outcomes)[number]) => number) => outcomes.reduce((sum, it) => sum + of(it), 0);
for (const problem of problems) console.log(problem);
console.log(
  `seed ${seed}: ${runs} chats, ${total(({ hit }) => hit)} kills in the middle of a turn, ${total(({ marks }) => marks)} effects of a tool; ${problems.length} problems`,
);
process.exit(problems.length === 0 ? 0 : 1);
