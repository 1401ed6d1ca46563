/**
 * `serve` of the version before ends over a file, with a question that is open and a stream under way: this version takes the file over and
 * decides both. The programs of one machine are updated together: the version before is refused there from then on.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { folder, runsIn, type Served, serve } from "../cli/ServeProcess.ts";
import { clientOf, whole } from "../gateway/attach/AttachCases.ts";
import { bodies, paths, send } from "../gateway/GatewayCases.ts";
import { polled } from "../Polling.ts";
import { serverOf } from "../Servers.ts";
import { isPlayed, older } from "./Older.ts";

/** The provider may have run a tool before it broke, so that a person is asked. */
const asking = JSON.stringify({ ...bodies["openai-chat"], tools: [{ type: "mcp", server_label: "shop" }] });
const streaming = JSON.stringify(bodies["openai-chat"]);

/** It breaks what may have run a tool, and never ends what it streams. */
const provider = serverOf((request, response) => {
  let body = "";
  request.on("data", (bytes: Buffer) => {
    body += String(bytes);
  });
  request.on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = { id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "x" } }] };
    if (body.includes("mcp")) response.flushHeaders();
    else response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    if (body.includes("mcp")) setImmediate(() => response.destroy());
  });
});

const argsOf = (file: string, upstream: string): ReadonlyArray<string> => [
  ...["--port", "0", "--db", file, "--lease-ms", "2000", "--drain-ms", "200", "--openai-url", `${upstream}/v1`],
  ...["--on-question", "hold", "--hold-ms", "60000"],
];

const asked = ({ url }: Served, body: string) =>
  clientOf(`${url}${paths["openai-chat"]}`, { body, headers: { "content-type": "application/json" } });

type Runs = Effect.Success<ReturnType<typeof runsIn>>;

/** What stands in the file, as soon as it is as wanted. */
const stands = <A>(file: string, look: (runs: Runs) => A | undefined) =>
  polled(Effect.map(Effect.orDie(runsIn(file)), look));

const isWaiting = ({ end, questions }: Runs[number]): boolean =>
  end === undefined && questions.some(({ answer }) => answer === undefined);

/** Answers the question that waits, as the page of a gateway does; then every run of the file has an end. */
const answered = Effect.fnUntraced(function* ({ url }: Served, file: string) {
  const run = yield* stands(file, (runs) => runs.find(isWaiting));
  const { status, text } = yield* Effect.promise(() =>
    send(`${url}/recovery/api/runs/${run.run_id}/answer`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-recovery-answer": "1" },
      body: JSON.stringify({ revision: run.questions[0]?.revision, choice: "stop" }),
    }),
  );
  assert.strictEqual(status, 200, text);
});

/** Version of the tables, and the states of the runs: read without a recorder of this version, which would change the tables. */
const untouched = (file: string) => {
  const database = new DatabaseSync(file, { readOnly: true });
  const [meta] = database.prepare("SELECT value FROM stream_recovery_meta WHERE name = 'schema_version'").all();
  const states = database.prepare("SELECT state FROM stream_recovery_runs ORDER BY state").all();
  database.close();
  return { schema: Number(meta?.value), states: states.map(({ state }) => String(state)).join(", ") };
};

/** How the runs of a file have ended, once all have. */
const endsIn = (file: string) =>
  stands(file, (runs) => {
    const ends = runs.flatMap(({ end }) => (end === undefined ? [] : [end.reason]));
    return ends.length === runs.length ? ends.sort() : undefined;
  });

/** How the runs end: a dead process's by the next one, a stopped one's by itself. */
const ends = {
  SIGKILL: ["client_gone", "side_effects_unprovable"],
  SIGTERM: ["lifecycle_closed", "lifecycle_closed"],
} as const;

describe.skipIf(!isPlayed)("a file of the version before, whose serve ends with a question and a stream", () => {
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    it.live(
      `by ${signal}: both are decided when this version's has taken it over, and the version before is refused`,
      () =>
        Effect.gen(function* () {
          const file = join(yield* folder, "runs.db");
          const args = argsOf(file, yield* provider);
          const before = yield* serve(args, older().env, older().bin);
          const clients = [asked(before, asking), asked(before, streaming)];
          yield* polled(Effect.sync(() => (untouched(file).states === "asking, live" ? true : undefined)));
          yield* Effect.promise(async () => (await clients[1]?.head)?.statusCode);
          before.child.kill(signal);
          yield* Effect.promise(() => before.exited);
          for (const client of clients) {
            const got = yield* whole(client);
            // A client without a head is told that its session was closed.
            assert.isTrue(got.broken || got.head?.statusCode === 503, got.body.toString());
          }
          assert.strictEqual(untouched(file).schema, older().schema);
          const now = yield* serve(args);
          assert.match(now.url, /^http/, now.stderr());
          if (signal === "SIGKILL") yield* answered(now, file);
          assert.deepStrictEqual(yield* endsIn(file), [...ends[signal]]);
          const again = yield* serve(args, older().env, older().bin);
          assert.deepStrictEqual(yield* Effect.promise(() => again.exited), [2, null]);
          const { schema } = older();
          assert.include(again.stderr(), `has schema version ${schema + 1}, `);
          assert.include(again.stderr(), `this program knows version ${schema}: a newer `);
          assert.strictEqual((yield* Effect.promise(() => send(`${now.url}/readyz`))).status, 200);
        }).pipe(Effect.scoped),
    );
  }
});
