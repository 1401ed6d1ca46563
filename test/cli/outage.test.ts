/** `stream-recovery serve` as a process, while its runs wait for a provider that is away. */
import { once } from "node:events";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import { gateTo } from "../gateway/Gate.ts";
import { bodies, send } from "../gateway/GatewayCases.ts";
import { run } from "./CommandLine.ts";
import { folder, serve } from "./ServeProcess.ts";

const chat = JSON.stringify(bodies["openai-chat"]);

const ask = (url: string) =>
  Effect.promise(() => send(`${url}/v1/chat/completions`, { body: chat }).catch((error: Error) => error));

/** A process whose provider it has reached, and a run of it that waits now. */
const waits = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 2 }] }] } });
    const gate = yield* gateTo(server.url);
    const served = yield* serve(["--port", "0", "--openai-url", `${gate.url}/v1`, ...args]);
    yield* ask(served.url);
    yield* gate.close;
    const asked = yield* Effect.forkScoped(ask(served.url));
    yield* Effect.promise(async () => {
      for (;;) {
        const { text } = await send(`${served.url}/recovery/api/paths`);
        if (/"state":"down".*"waiting":1/.test(text)) return;
      }
    });
    return { server, gate, served, asked };
  }).pipe(Effect.orDie);

describe("stream-recovery serve, while its runs wait", () => {
  it.live("ends at SIGTERM within its drain, and tells who waits", () =>
    Effect.gen(function* () {
      const { asked, served, server } = yield* waits(["--db", "memory", "--drain-ms", "300"]);
      const began = performance.now();
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
      const got = yield* Fiber.join(asked);
      assert.isFalse(got instanceof Error);
      if (!(got instanceof Error)) assert.strictEqual(got.status, 503);
      assert.isBelow(performance.now() - began, 10_000);
      assert.lengthOf(yield* server.log, 1);
    }),
  );

  it.live("leaves runs that the next process ends, where it is killed; nothing is sent for them", () =>
    Effect.gen(function* () {
      const db = join(yield* folder, "runs.db");
      const { asked, gate, served, server } = yield* waits(["--db", db, "--lease-ms", "1000"]);
      served.child.kill("SIGKILL");
      yield* Effect.promise(() => once(served.child, "close"));
      assert.instanceOf(yield* Fiber.join(asked), Error);
      yield* gate.open;
      const next = yield* serve(["--port", "0", "--db", db, "--lease-ms", "1000", "--openai-url", `${gate.url}/v1`]);
      const ended = yield* Effect.promise(async () => {
        for (;;) {
          const { text } = await send(`${next.url}/recovery/api/runs?end=client_gone`);
          const { runs } = JSON.parse(text);
          if (runs.length > 0) return runs[0];
        }
      });
      assert.deepStrictEqual([ended.state, ended.end.reason], ["ended", "client_gone"]);
      const told = yield* Effect.promise(() => run(["runs", "show", ended.run_id, "--db", db]));
      assert.strictEqual(told.code, 0, told.stderr);
      assert.lengthOf(yield* server.log, 1);
    }),
  );

  it.live("tells `paths` what is down, and goes on at once where a try finds it back", () =>
    Effect.gen(function* () {
      const { asked, gate, served } = yield* waits(["--db", "memory"]);
      const env = { PATH: process.env.PATH, STREAM_RECOVERY_URL: served.url };
      const down = yield* Effect.promise(() => run(["paths"], { env }));
      assert.deepStrictEqual([down.code, down.stderr], [0, ""]);
      assert.match(down.stdout, /✕ down .* 1 .*nothing listens at its address \(ECONNREFUSED\)/);
      const vain = yield* Effect.promise(() => run(["paths", "--try", gate.url], { env }));
      assert.strictEqual(vain.code, 1);
      yield* gate.open;
      const back = yield* Effect.promise(() => run(["paths", "--try", gate.url], { env }));
      assert.strictEqual(back.code, 0, back.stderr);
      const got = yield* Fiber.join(asked);
      assert.isTrue(!(got instanceof Error) && got.status === 200);
    }),
  );
});
