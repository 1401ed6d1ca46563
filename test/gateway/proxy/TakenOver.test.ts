/**
 * A gateway that another process considers dead, like one that hung for longer than its lease. Its responses continue to their end over the
 * sockets, calls included, and its own end of its runs replaces the assumed one. Both read the same file.
 */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { Answers } from "../../../src/testing/index.ts";
import { eventually, polled } from "../../Polling.ts";
import * as Folder from "../../recorder/sql/SqlFolder.ts";
import { ask, longMs, providerOf, whole } from "../attach/AttachCases.ts";
import { front, protocols } from "../GatewayCases.ts";

type Content = NonNullable<NonNullable<Parameters<typeof Answers.render>[2]>["content"]>;

const shown = "r1.0·";

const played = (protocol: (typeof protocols)[number], content: Content, lingerMs: number) =>
  Effect.gen(function* () {
    const events = Answers.render(protocol, 1, { content }).map(({ frame }) => Buffer.from(frame));
    const provider = yield* providerOf(events);
    const db = yield* Folder.emptyPath;
    const gateway = yield* front(provider.at, { db, lingerMs });
    const client = ask(gateway, protocol);
    const sent = yield* provider.nth(0);
    const first = events.findIndex((event) => event.includes(shown));
    sent.send(first + 1);
    yield* eventually(() => (client.got().includes(shown) ? true : undefined));
    const run = yield* gateway.until((runs) => runs[0]?.run_id);
    const other = Context.get(yield* Layer.build(Layer.fresh(SqlRunRecorder.layerFile({ file: db }))), RunRecorder);
    const ended = Effect.map(other.run(run), (record) => record?.end);
    // The run is written a moment later.
    yield* polled(Effect.map(other.run(run), (record) => record));
    // Fences its lease, like a process that has watched it in vain.
    const file = new DatabaseSync(db);
    file.exec("UPDATE stream_recovery_leases SET fenced = 1");
    file.close();
    yield* Effect.provideService(CrashRecovery.recover(), RunRecorder, other);
    const assumed = yield* ended;
    sent.finish();
    const { body, broken } = yield* whole(client);
    const end = yield* polled(Effect.map(ended, (it) => (it?.assumed === true ? undefined : it)));
    const said = Buffer.concat(events).toString();
    return { said, got: body.toString(), broken, asked: provider.asked.length, assumed, end };
  }).pipe(Effect.scoped);

describe("A response of a gateway that another process considers dead", () => {
  const contents: Readonly<Record<string, Content>> = {
    "its text": [{ text: 4 }],
    "its text and its call": [{ text: 4 }, { tool: "pay", input: { sum: 1 } }],
  };
  for (const protocol of protocols) {
    for (const [what, content] of Object.entries(contents)) {
      for (const lingerMs of [0, longMs]) {
        const linger = lingerMs > 0 ? ", also where its client might come back" : "";
        it.live(`${protocol}: ${what} continues to its clean end${linger}, and the record has its own end`, () =>
          Effect.gen(function* () {
            const it = yield* played(protocol, content, lingerMs);
            assert.strictEqual(it.got, it.said);
            assert.deepStrictEqual([it.broken, it.asked], [false, 1]);
            assert.deepInclude(it.assumed, { state: "stopped", reason: "process_lost", assumed: true });
            assert.strictEqual(it.end?.state, "completed");
          }),
        );
      }
    }
  }
});
