/**
 * A gateway whose file of runs is on a full disk: a small file system, if this user may mount one.
 */
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Result } from "effect";
import { StoreHealth } from "../../../src/gateway/api/StoreHealth.ts";
import { unrecordedHeader } from "../../../src/gateway/proxy/StoreWord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { Answers } from "../../../src/testing/index.ts";
import { eventually, found } from "../../Polling.ts";
import * as E from "../../recorder/Entries.ts";
import { filled, smallDisk } from "../../SmallDisk.ts";
import { ask, stage, whole } from "../attach/AttachCases.ts";

/** Text only, because a call would wait for the store. */
const events = Answers.render("openai-chat", 1, { content: [{ text: 4 }] }).map(({ frame }) => Buffer.from(frame));

describe("a gateway whose file of runs has a full disk", () => {
  it.live("shows text to its end and says so, and each end is on record once when there is room", () =>
    Effect.gen(function* () {
      const disk = yield* smallDisk;
      if (disk === undefined) return;
      const it = yield* stage(events, { db: join(disk, "runs.db"), lingerMs: 0 });
      const before = ask(it, "openai-chat");
      const sent = yield* it.nth(0);
      sent.send(3);
      yield* eventually(() => (before.got().byteLength > 0 ? true : undefined));
      const room = filled(join(disk, "filler"));
      const clients = [before];
      // An existing journal can still grow by a few pages.
      for (let said: unknown; said === undefined; ) {
        const behind = ask(it, "openai-chat");
        (yield* it.nth(clients.length)).finish();
        clients.push(behind);
        said = (yield* whole(behind)).head?.headers[unrecordedHeader];
        assert.include([undefined, "disk_full"], said);
      }
      assert.strictEqual((yield* Context.get(it.services, StoreHealth).state).reason, "disk_full");
      // It does not report room if there is none for a run.
      const recorder = Context.get(it.services, RunRecorder);
      for (let looks = 0; looks < 5; looks += 1) {
        const room = yield* Effect.result(recorder.probe ?? Effect.void);
        const id = `behind-${looks}`;
        if (Result.isSuccess(room)) yield* recorder.write(id, [E.begun(id), E.attempt(1), E.ended()]);
      }
      sent.finish();
      for (const client of clients) {
        const { body, broken } = yield* whole(client);
        assert.isFalse(broken);
        assert.strictEqual(body.toString(), Buffer.concat(events).toString());
      }
      room();
      const ended = yield* it.until((runs) => {
        const all = runs.filter(({ end }) => end !== undefined);
        return all.length >= clients.length ? all : undefined;
      });
      assert.lengthOf(ended, clients.length);
      assert.deepStrictEqual([...new Set(ended.map(({ end }) => end?.state))], ["completed"]);
      assert.lengthOf(it.asked, clients.length);
      const { state } = Context.get(it.services, StoreHealth);
      yield* found(Effect.map(state, ({ writes }) => (writes === "failing" ? undefined : true)));
    }).pipe(Effect.scoped),
  );
});
