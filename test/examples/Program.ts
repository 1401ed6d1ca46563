/**
 * Runs example programs as processes, with the package's entry points from the sources: what a user would write runs without a
 * build.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assert } from "@effect/vitest";
import { Deferred, Effect, Schema } from "effect";

/** The root of the repository. */
export const root = join(import.meta.dirname, "../..");

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    name: Schema.String,
    exports: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Struct({ default: Schema.String })])),
  }),
);

const manifest = Schema.decodeSync(Manifest)(readFileSync(join(root, "package.json"), "utf8"));

const entries = Object.entries(manifest.exports).flatMap(([entry, target]) => {
  if (typeof target === "string") return [];
  const source = target.default.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
  return [[manifest.name + entry.slice(1), pathToFileURL(join(root, source)).href] as const];
});

const resolving = `
  import { registerHooks } from "node:module";
  const entries = ${JSON.stringify(Object.fromEntries(entries))};
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier in entries ? { url: entries[specifier], shortCircuit: true } : next(specifier, context),
  });
`;

/** A program that runs. */
export interface Running {
  readonly child: ChildProcess;
  /** Everything that it has printed. */
  readonly printed: () => string;
  /** Waits until it has printed this. It is a defect if the program ends without it. */
  readonly until: (text: string) => Effect.Effect<void>;
  /** Waits for its end, and gives its exit code. */
  readonly ended: Effect.Effect<number | null>;
  /** Waits for its end, and demands exit code 0. */
  readonly succeeded: Effect.Effect<string>;
}

/** Starts a program of the repository; it is killed with the scope. */
export const start = (file: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => run(file, args, env)),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL")),
  );

const run = (file: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv): Running => {
  const hooks = `data:text/javascript,${encodeURIComponent(resolving)}`;
  const child = spawn(process.execPath, ["--no-warnings", "--import", hooks, join(root, file), ...args], {
    cwd: root,
    env: { ...process.env, ...env },
  });
  let printed = "";
  const waits = new Set<() => void>();
  const ended = Deferred.makeUnsafe<number | null>();
  const look = () => {
    for (const wait of waits) wait();
  };
  const take = (text: string) => {
    printed += text;
    look();
  };
  child.stdout.setEncoding("utf8").on("data", take);
  child.stderr.setEncoding("utf8").on("data", take);
  child.once("close", (code) => {
    Deferred.doneUnsafe(ended, Effect.succeed(code));
    look();
  });
  return {
    child,
    printed: () => printed,
    until: (text) =>
      Effect.callback<void>((resume) => {
        const wait = () => {
          const isThere = printed.includes(text);
          if (!isThere && !Deferred.isDoneUnsafe(ended)) return;
          waits.delete(wait);
          resume(isThere ? Effect.void : Effect.die(new Error(`it never printed ${text}: ${printed}`)));
        };
        waits.add(wait);
        wait();
      }),
    ended: Deferred.await(ended),
    succeeded: Effect.map(Deferred.await(ended), (code) => {
      assert.strictEqual(code, 0, printed);
      return printed;
    }),
  };
};
