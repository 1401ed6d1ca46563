/**
 * Runs shell commands in the sandbox directory.
 *
 * It is no security boundary: a command can read and change whatever its user can. A command gets a working directory, an
 * environment without keys, a time limit, a bounded output, and a process group of its own that dies with the call.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Deferred, Effect, Schema } from "effect";
import type { AgentTool, ToolOutput } from "./AgentTool.ts";
import { oneLine } from "./PlainText.ts";
import type { Sandbox } from "./Sandbox.ts";

/** How long a command may run by default, in milliseconds. */
export const timeoutMsDefault = 60_000;

/** Most output that is kept of a command, in bytes: half of it from the start, half from the end. */
export const outputBytesMax = 64 * 1024;

/** How long the pipes of an ended command are read, in milliseconds: a daemon that it started may hold them open for ever. */
const lingerMs = 500;

/** The variables of a command's environment: none of them holds a key. */
const variables = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"] as const;

const Input = Schema.fromJsonString(Schema.Struct({ command: Schema.String }));
const decode = Schema.decodeEffect(Input);

/**
 * The shell tool of a sandbox.
 *
 * @param timeoutMs how long a command may run, in milliseconds
 */
export const make = (sandbox: Sandbox, timeoutMs = timeoutMsDefault): AgentTool => ({
  name: "shell",
  description: `Runs a command with /bin/sh in the working directory, for at most ${Math.round(timeoutMs / 1_000)} s. Nothing that it starts outlives it.`,
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  effect: "mutating",
  title: (input) => oneLine(`shell ${/"command"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(input)?.[1] ?? ""}`),
  run: (input) =>
    decode(input).pipe(
      Effect.matchEffect({
        onFailure: (error) => Effect.succeed({ output: error.message, failed: true }),
        onSuccess: ({ command }) => run(sandbox.root, command, timeoutMs),
      }),
    ),
});

const run = (cwd: string, command: string, timeoutMs: number): Effect.Effect<ToolOutput> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => start(cwd, command)),
      (it) =>
        Effect.sync(() => {
          killGroup(it.process);
          it.process.stdout?.destroy();
          it.process.stderr?.destroy();
        }),
    );
    const ended = yield* Effect.timeoutOption(Deferred.await(child.exited), timeoutMs);
    killGroup(child.process);
    yield* Effect.timeoutOption(Deferred.await(child.closed), lingerMs);
    const output = child.output();
    if (ended._tag === "None") return { output: `${output}\n[killed after ${timeoutMs} ms]`.trim(), failed: true };
    const { code, problem } = ended.value;
    if (problem !== undefined) return { output: problem, failed: true };
    return code === 0
      ? { output: output === "" ? "[no output]" : output, failed: false }
      : { output: `${output}\n[exit code ${code ?? "none: killed"}]`.trim(), failed: true };
  }).pipe(Effect.scoped);

interface Exited {
  readonly code: number | null;
  readonly problem?: string;
}

const start = (cwd: string, command: string) => {
  const exited = Deferred.makeUnsafe<Exited>();
  const closed = Deferred.makeUnsafe<void>();
  const env: Record<string, string> = { HOME: cwd, TERM: "dumb" };
  for (const name of variables) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  // A group of its own: a signal reaches everything that the command has started.
  const child = spawn("/bin/sh", ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const kept = new BoundedOutput();
  child.stdout.on("data", (bytes: Buffer) => kept.add(bytes));
  child.stderr.on("data", (bytes: Buffer) => kept.add(bytes));
  child.once("error", (error) => Deferred.doneUnsafe(exited, Effect.succeed({ code: null, problem: error.message })));
  child.once("exit", (code) => Deferred.doneUnsafe(exited, Effect.succeed({ code })));
  child.once("close", () => Deferred.doneUnsafe(closed, Effect.void));
  return { process: child, exited, closed, output: () => kept.text };
};

const killGroup = (child: ChildProcess): void => {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group has ended by itself.
  }
};

/** Keeps the start and the end of an output. */
class BoundedOutput {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #omitted = 0;

  add(bytes: Buffer): void {
    const half = outputBytesMax / 2;
    const room = half - this.#head.length;
    this.#head = room > 0 ? Buffer.concat([this.#head, bytes.subarray(0, room)]) : this.#head;
    const rest = bytes.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    const tail = Buffer.concat([this.#tail, rest]);
    this.#omitted += Math.max(0, tail.length - half);
    this.#tail = tail.subarray(Math.max(0, tail.length - half));
  }

  get text(): string {
    const gap = this.#omitted === 0 ? "" : `\n[${this.#omitted} bytes left out]\n`;
    return `${this.#head.toString("utf8")}${gap}${this.#tail.toString("utf8")}`;
  }
}
