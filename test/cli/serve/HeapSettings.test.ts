/**
 * The memory of streams that survives V8's minor collections in a serving process, as V8 reports it.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { bareEnv, bin } from "../CommandLine.ts";
import { folder } from "../ServeProcess.ts";

/** A small young generation, so that V8 soon learns which objects are long-lived. */
const node = ["--no-warnings", "--trace-gc", "--trace-gc-nvp", "--min-semi-space-size=2", "--max-semi-space-size=2"];

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`;

const answer = [
  chunk({ role: "assistant", content: "" }),
  ...Array.from({ length: 20 }, (_, at) => chunk({ content: `word ${at} ` })),
  `${chunk({}, "stop")}data: [DONE]\n\n`,
];

/** A provider for the duration of the scope. Returns its address. */
const provider = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => {
        request.resume().on("end", () => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          for (const event of answer) response.write(event);
          response.end();
        });
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
    (server) =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  ),
  (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
);

const ask = async (url: string, n: number): Promise<void> => {
  const messages = [{ role: "user", content: `question ${n}` }];
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-test" },
    body: JSON.stringify({ model: "m", stream: true, messages }),
  });
  assert.include(await response.text(), "[DONE]");
};

const lanes = 4;

/** Requests the given number of streams, four at a time. */
const asked = async (url: string, from: number, count: number): Promise<void> => {
  const lane = async (first: number) => {
    for (let n = first; n < from + count; n += lanes) await ask(url, n);
  };
  await Promise.all(Array.from({ length: lanes }, (_, at) => lane(from + at)));
};

/** Streams until V8 has learned, and streams that are measured. */
const [before, streams] = [400, 400];

interface Given {
  readonly flags?: ReadonlyArray<string>;
  readonly workers?: number;
}

/** Kilobytes per stream that outlive two minor collections, with runs recorded in a file. */
const promotedKb = ({ flags = [], workers = 1 }: Given = {}) =>
  Effect.gen(function* () {
    const upstream = yield* provider;
    const serve = ["serve", "--port", "0", "--db", join(yield* folder, "runs.db"), "--workers", String(workers)];
    const goesOn = ["--access-log", "off", "--continue-text", "auto", "--linger-ms", "60000"];
    const served = [...serve, ...goesOn, "--openai-url", `${upstream}/v1`];
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
    child.stdout.on("data", (bytes: Buffer) => {
      said += String(bytes);
    });
    return yield* Effect.promise(async () => {
      let url: string | undefined;
      for (; url === undefined; url = /listening on (http:\/\/\S+)\n/.exec(said)?.[1]) await once(child.stdout, "data");
      // Each worker has its own V8, which learns from its own streams.
      await asked(url, 0, before * workers);
      said = "";
      await asked(url, before * workers, streams);
      const promoted = [...said.matchAll(/ gc=s .* promoted=(\d+) /g)].map(([, bytes]) => Number(bytes));
      assert.isAbove(promoted.length, 10);
      return promoted.reduce((sum, bytes) => sum + bytes, 0) / streams / 1024;
    });
  }).pipe(Effect.scoped);

describe("a stream of a gateway", () => {
  it.live("is gone with the next minor collections", () => Effect.map(promotedKb(), (kb) => assert.isBelow(kb, 15)));

  it.live("is gone with the next minor collections of each of several workers, too", () =>
    Effect.map(promotedKb({ workers: 2 }), (kb) => assert.isBelow(kb, 15)),
  );

  it.live("is what the command line of Node says, if that sets it", () =>
    Effect.map(promotedKb({ flags: ["--allocation_site_pretenuring"] }), (kb) => assert.isAbove(kb, 15)),
  );
});

/** A program that calls `setHeap` on request. */
const program = `
  import { getHeapSpaceStatistics } from "node:v8";
  import { setHeap } from ${JSON.stringify(new URL("../../../src/cli/serve/HeapSettings.ts", import.meta.url).href)};
  if (process.argv.includes("called")) setHeap();
`;

const started = (flags: ReadonlyArray<string>, does: string, ...args: ReadonlyArray<string>) => [
  ...["--no-warnings", ...flags, "--input-type=module", "--eval", program + does],
  ...["--", ...args],
];

/** Prints each size of the young generation, in megabytes, while objects outlive it. */
const grows = `
  const [kept, seen] = [[], new Set()];
  for (let n = 0; n < 300; n += 1) {
    kept.push(Array.from({ length: 1000 }, (_, at) => ({ at })));
    seen.add(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size / 2 ** 20);
  }
  console.log(JSON.stringify([...seen]));
`;

const sizesOf = (flags: ReadonlyArray<string>, ...args: ReadonlyArray<string>): ReadonlyArray<number> => {
  const options = { env: bareEnv(tmpdir()), encoding: "utf8" } as const;
  const child = spawnSync(process.execPath, started(flags, grows, ...args), options);
  assert.strictEqual(child.status, 0, child.stderr);
  return JSON.parse(child.stdout) as ReadonlyArray<number>;
};

describe("the room of young objects", () => {
  it("grows to that of a busy gateway in one step, and not by doubling", () => {
    const between = (found: ReadonlyArray<number>) => found.filter((size) => size > 2 && size < 16);
    assert.isAbove(between(sizesOf([])).length, 1);
    assert.deepStrictEqual(between(sizesOf([], "called")), []);
    assert.isAtLeast(Math.max(...sizesOf([], "called")), 16);
  });

  it("follows the command line of Node", () => {
    assert.include(sizesOf(["--semi_space_growth_factor=2"], "called"), 4);
  });
});
