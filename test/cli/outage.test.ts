/** `stream-recovery serve` as a process, while its runs wait for a provider that is down. */
import { once } from "node:events";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import { gateTo } from "../gateway/Gate.ts";
import { bodies, send } from "../gateway/GatewayCases.ts";
import { polled } from "../Polling.ts";
import { run } from "./CommandLine.ts";
import { folder, runsIn, serve } from "./ServeProcess.ts";

const chat = JSON.stringify(bodies["openai-chat"]);

const ask = (url: string) =>
  Effect.promise(() => send(`${url}/v1/chat/completions`, { body: chat }).catch((error: Error) => error));

/** A process that has reached its provider before, and one of its runs, which waits now. */
const waits = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 2 }] }] } });
    const gate = yield* gateTo(server.url);
    const served = yield* serve(["--port", "0", "--openai-url", `${gate.url}/v1`, ...args]);
    yield* ask(served.url);
    yield* gate.close;
    const asked = yield* Effect.forkScoped(ask(served.url));
    const said = Effect.promise(() => send(`${served.url}/recovery/api/paths`));
    yield* polled(Effect.map(said, ({ text }) => (/"state":"down".*"waiting":1/.test(text) ? true : undefined)));
    return { server, gate, served, asked };
  }).pipe(Effect.orDie);

describe("stream-recovery serve, while its runs wait", () => {
  it.live("ends at SIGTERM within its drain, and informs the waiting clients", () =>
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

  it.live("leaves runs to the next process if it is killed, which ends them without a request", () =>
    Effect.gen(function* () {
      const db = join(yield* folder, "runs.db");
      const { asked, gate, served, server } = yield* waits(["--db", db, "--lease-ms", "1000"]);
      // The run is written after it acts, so the last moments of a killed process may be missing.
      yield* polled(Effect.map(runsIn(db), (runs) => (runs.some(({ state }) => state === "live") ? true : undefined)));
      served.child.kill("SIGKILL");
      yield* Effect.promise(() => once(served.child, "close"));
      assert.instanceOf(yield* Fiber.join(asked), Error);
      yield* gate.open;
      const next = yield* serve(["--port", "0", "--db", db, "--lease-ms", "1000", "--openai-url", `${gate.url}/v1`]);
      const said = Effect.promise(() => send(`${next.url}/recovery/api/runs?end=process_lost`));
      const ended = yield* polled(Effect.map(said, ({ text }) => JSON.parse(text).runs[0]));
      assert.deepStrictEqual([ended.state, ended.end.reason], ["ended", "process_lost"]);
      const told = yield* Effect.promise(() => run(["runs", "show", ended.run_id, "--db", db]));
      assert.strictEqual(told.code, 0, told.stderr);
      assert.lengthOf(yield* server.log, 1);
    }),
  );

  it.live("shows in `paths` what is down, and continues at once if a probe finds it up", () =>
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
