/**
 * What the young generation of a gateway has taken when it is collected, as V8 tells it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { bareEnv, bin } from "../CommandLine.ts";
import { folder } from "../ServeProcess.ts";

/** A young generation that does not grow: two halves of 16 MB. */
const node = ["--no-warnings", "--trace-gc", "--min-semi-space-size=16", "--max-semi-space-size=16"];

/** Megabytes that each of the first collections behind the start has freed, while a gateway answers short requests. */
const freedMb = (
  wanted: number,
  { flags = [], workers = 1 }: { readonly flags?: ReadonlyArray<string>; readonly workers?: number } = {},
) =>
  Effect.gen(function* () {
    const db = workers === 1 ? "memory" : join(yield* folder, "runs.db");
    const served = ["serve", "--port", "0", "--db", db, "--access-log", "off", "--workers", String(workers)];
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [...node, ...flags, bin, ...served], {
          env: bareEnv(tmpdir()),
          stdio: ["ignore", "pipe", "ignore"],
        }),
      ),
      (started) =>
        Effect.promise(async () => {
          started.kill("SIGKILL");
          await once(started, "close");
        }),
    );
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => {
      said += String(chunk);
    });
    const url = () => /listening on (http:\/\/\S+)\n/.exec(said)?.[1];
    const freed = () =>
      [...said.slice(said.indexOf("listening on")).matchAll(/\[(\d+):.* Scavenge ([\d.]+) \([\d.]+\) -> ([\d.]+) /g)]
        // A supervisor serves nothing itself.
        .filter(([, pid]) => workers === 1 || Number(pid) !== child.pid)
        .map(([, , before, after]) => Number(before) - Number(after));
    yield* Effect.promise(async () => {
      while (url() === undefined) await once(child.stdout, "data");
      while (freed().length < wanted)
        await Promise.all(Array.from({ length: 8 }, () => fetch(`${url()}/livez`).then((response) => response.text())));
    });
    return freed().slice(0, wanted);
  }).pipe(Effect.scoped);

describe("a gateway that serves", () => {
  it.live(
    "is collected before its young generation is full, so that no pause has much to copy",
    () =>
      Effect.gen(function* () {
        for (const mb of yield* freedMb(3)) assert.isBelow(mb, 6);
      }),
    60_000,
  );

  it.live(
    "is so in each of several workers, too",
    () =>
      Effect.gen(function* () {
        for (const mb of yield* freedMb(4, { workers: 2 })) assert.isBelow(mb, 6);
      }),
    60_000,
  );

  it.live(
    "leaves alone what the command line of Node says of it",
    () =>
      Effect.gen(function* () {
        const all = yield* freedMb(2, { flags: ["--minor_gc_task_trigger=60"] });
        assert.isAbove(Math.max(...all), 6);
      }),
    60_000,
  );
});
