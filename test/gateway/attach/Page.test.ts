/** What the page of a real gateway says of a run whose client has gone. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { pageServer } from "../page/Server.ts";
import { again, ask, eventsOf, stage, whole } from "./AttachCases.ts";

describe("The page of a run that goes on without its client", () => {
  it.live("shows in the list and at the run until when it lingers, until its client returns", () =>
    Effect.gen(function* () {
      const it = yield* stage(eventsOf("openai-chat"));
      const { handle } = yield* Effect.provideContext(pageServer, it.services);
      const shown = (path: string) =>
        Effect.gen(function* () {
          const response = yield* handle(path);
          return response === undefined ? "" : yield* Effect.promise(() => response.text());
        });
      const first = ask(it, "openai-chat");
      (yield* it.nth(0)).send(3);
      yield* Effect.promise(() => first.head);
      const run = yield* it.lingers("read");
      const pages = ["/recovery/", `/recovery/?run=${run}`];
      for (const path of pages) assert.notInclude(yield* shown(path), "continues without its client", path);
      first.leave();
      assert.strictEqual(yield* it.lingers("left"), run);
      for (const path of pages) {
        assert.match(yield* shown(path), /continues without its client until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/, path);
        assert.match(yield* shown(path), /can return for another \d+ (s|min)/, path);
      }
      const second = ask(it, "openai-chat", again);
      yield* Effect.promise(() => second.head);
      assert.strictEqual(yield* it.lingers("read"), run);
      for (const path of pages) assert.notInclude(yield* shown(path), "continues without its client", path);
      (yield* it.nth(0)).finish();
      assert.isFalse((yield* whole(second)).broken);
    }).pipe(Effect.scoped),
  );
});
