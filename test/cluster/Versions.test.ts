/**
 * `serve` of the version before and of this one, side by side over one PostgreSQL: what begins at one of them is answered at the other one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import { type Served, serve, urls } from "../cli/ServeProcess.ts";
import { clientOf, whole } from "../gateway/attach/AttachCases.ts";
import { bodies, post, send } from "../gateway/GatewayCases.ts";
import { polled } from "../Polling.ts";
import * as Databases from "../recorder/postgres/Databases.ts";
import type { Recorder } from "../recorder/suite/Bench.ts";
import { isPlayed, older } from "./Older.ts";

/** Lease of these processes, in milliseconds: one of them dies. */
const leaseMs = 3_000;

/** Longest time of a test that starts four programs from their sources, in milliseconds: on a busy machine one of them takes half a minute. */
const startsMs = 300_000;

const longMs = "60000";

/** Upstreams that the version before has flags for. */
const olderNames = ["openai", "anthropic", "gemini"];

const started = (version: "older" | "newer", db: string, upstream: string, more: ReadonlyArray<string>) => {
  const flags = version === "newer" ? urls(upstream) : urls(upstream, olderNames);
  const args = ["--port", "0", "--db", db, "--lease-ms", String(leaseMs), ...flags, ...more];
  return version === "newer" ? serve(args) : serve(args, older().env, older().bin);
};

/** One of each version; the older one makes the tables, the newer one changes them. */
const both = Effect.fnUntraced(function* (db: string, upstream: string, more: ReadonlyArray<string>) {
  const before = yield* started("older", db, upstream, more);
  const after = yield* started("newer", db, upstream, more);
  for (const it of [before, after]) assert.match(it.url, /^http/, it.stderr());
  return { older: before, newer: after };
});

type Both = Effect.Success<ReturnType<typeof both>>;

/** Where a run begins, and where it is answered. */
const ways: ReadonlyArray<readonly [keyof Both, keyof Both]> = [
  ["older", "newer"],
  ["newer", "older"],
];

/** The provider may have run a tool before it broke, so that a person is asked. */
const asking = JSON.stringify({ ...bodies["openai-chat"], tools: [{ type: "mcp", server_label: "shop" }] });
const headers = { "content-type": "application/json", authorization: "Bearer sk-secret" } as const;
const broken = { break: { kind: "rst", at: "after_head" } } as const;
const hold = ["--on-question", "hold", "--hold-ms", longMs];

const kill = ({ child, exited }: Served) =>
  Effect.promise(() => {
    child.kill("SIGKILL");
    return exited;
  });

/** Waits for the newest run of the store, until it is as wanted. */
const newest = <A>(recorder: Recorder, look: (run: Run) => A | undefined) =>
  polled(Effect.map(Effect.orDie(recorder.runs({ limit: 1 })), ([run]) => (run === undefined ? undefined : look(run))));

type Run = Effect.Success<ReturnType<Recorder["runs"]>>[number];

/** Waits for the question of the newest run, and answers it by the API of a gateway. */
const answered = Effect.fnUntraced(function* (recorder: Recorder, { url }: Served, choice: "retry" | "stop") {
  const { question, run } = yield* newest(recorder, (it) => {
    const found = it.end === undefined ? it.questions.find(({ answer }) => answer === undefined) : undefined;
    return found === undefined ? undefined : { run: it, question: found };
  });
  const { status, text } = yield* Effect.promise(() =>
    send(`${url}/recovery/api/runs/${run.run_id}/answer`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-recovery-answer": "1" },
      body: JSON.stringify({ revision: question.revision, choice, confirm_may_repeat: true }),
    }),
  );
  assert.strictEqual(status, 200, text);
  return run.run_id;
});

/** The end of a run, once it is on record. */
const endOf = (recorder: Recorder, id: string) =>
  newest(recorder, (run) => (run.run_id === id && run.end !== undefined ? run : undefined));

describe.skipIf(!isPlayed)(
  "serve of the version before and of this one over one PostgreSQL",
  { timeout: startsMs },
  () => {
    it.live("answers a question at which the other one holds its client, and the stream goes on there", () =>
      Effect.gen(function* () {
        const db = yield* Databases.empty;
        const good = { content: [{ text: 3 }] } as const;
        const provider = yield* FaultProvider.make({ script: { answers: [broken, good, broken, good] } });
        const gateways = yield* both(db, provider.url, hold);
        const recorder = yield* Databases.open({ address: db });
        for (const [holds, answers] of ways) {
          const client = yield* Effect.forkChild(post(gateways[holds].url, "openai-chat", { body: asking }));
          const id = yield* answered(recorder, gateways[answers], "retry");
          const got = yield* Fiber.join(client);
          assert.deepStrictEqual([got.status, got.broken], [200, false], `${holds}: ${got.text}`);
          const { end, questions } = yield* endOf(recorder, id);
          assert.deepStrictEqual([end?.state, questions[0]?.answered_by], ["completed", "person"], holds);
        }
      }).pipe(Effect.scoped),
    );

    it.live("ends by its answer a run that the other one has left with a question when it died", () =>
      Effect.gen(function* () {
        for (const [dies, answers] of ways) {
          const db = yield* Databases.empty;
          const provider = yield* FaultProvider.make({ script: { answers: [broken] } });
          const gateways = yield* both(db, provider.url, hold);
          const recorder = yield* Databases.open({ address: db });
          const client = clientOf(`${gateways[dies].url}/v1/chat/completions`, { body: asking, headers });
          yield* newest(recorder, ({ questions }) => questions[0]);
          yield* kill(gateways[dies]);
          assert.isTrue((yield* whole(client)).broken, dies);
          const id = yield* answered(recorder, gateways[answers], "stop");
          const { end, questions } = yield* endOf(recorder, id);
          assert.deepStrictEqual([end?.state, questions[0]?.answered_by], ["stopped", "person"], dies);
        }
      }).pipe(Effect.scoped),
    );
  },
);
