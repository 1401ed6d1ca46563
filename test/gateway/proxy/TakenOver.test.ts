/**
 * A gateway whose runs another process has taken over, as one that hung for longer than its lease: text that flows to a client goes on to
 * its end over the sockets, and a call does not. Both read the same file.
 */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { isFlowedOn } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { Answers } from "../../../src/testing/index.ts";
import { eventually, polled } from "../../Polling.ts";
import * as Folder from "../../recorder/sql/SqlFolder.ts";
import { ask, longMs, providerOf, whole } from "../attach/AttachCases.ts";
import { front, protocols } from "../GatewayCases.ts";

type Content = NonNullable<NonNullable<Parameters<typeof Answers.render>[2]>["content"]>;

/** What a client had of a response whose run was taken over behind its first text. */
interface Seen {
  readonly said: string;
  readonly got: string;
  readonly broken: boolean;
  readonly asked: number;
  readonly isNoted: boolean;
  readonly end: string | undefined;
}

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
    // Its lease is fenced, as by a process that has watched it in vain.
    const file = new DatabaseSync(db);
    file.exec("UPDATE stream_recovery_leases SET fenced = 1");
    file.close();
    const other = Context.get(yield* Layer.build(Layer.fresh(SqlRunRecorder.layerFile({ file: db }))), RunRecorder);
    yield* other.claim(run);
    yield* other.write(run, [
      { _tag: "RunEnded", end: { state: "stopped", reason: "client_gone", attempts: 1, at: Date.now() } },
    ]);
    sent.finish();
    const { body, broken } = yield* whole(client);
    const look = Effect.map(other.run(run), (record) => {
      const { first = [], last = [] } = record?.evidence ?? {};
      return { end: record?.end?.reason, isNoted: [...first, ...last].some(isFlowedOn) };
    });
    // The note is written behind the response.
    const { end, isNoted } = broken
      ? yield* look
      : yield* polled(Effect.map(look, (it) => (it.isNoted ? it : undefined)));
    const said = Buffer.concat(events).toString();
    return { said, got: body.toString(), broken, asked: provider.asked.length, isNoted, end } satisfies Seen;
  }).pipe(Effect.scoped);

describe("A response of a gateway whose run another process has taken over", () => {
  for (const protocol of protocols) {
    for (const lingerMs of [0, longMs]) {
      it.live(
        `${protocol}: its text goes on to its clean end${lingerMs > 0 ? ", also where its client might come back" : ""}`,
        () =>
          Effect.gen(function* () {
            const it = yield* played(protocol, [{ text: 4 }], lingerMs);
            assert.strictEqual(it.got, it.said);
            assert.deepStrictEqual([it.broken, it.asked, it.isNoted, it.end], [false, 1, true, "client_gone"]);
          }),
      );
    }

    it.live(`${protocol}: breaks in front of a call, of which its client has nothing (L6)`, () =>
      Effect.gen(function* () {
        const it = yield* played(protocol, [{ text: 4 }, { tool: "pay", input: { sum: 1 } }], 0);
        assert.isTrue(it.broken);
        assert.isTrue(it.said.startsWith(it.got), "what it has are the provider's own bytes");
        assert.include(it.got, shown);
        assert.notInclude(it.got, "pay");
        assert.deepStrictEqual([it.asked, it.isNoted, it.end], [1, false, "client_gone"]);
      }),
    );
  }
});
