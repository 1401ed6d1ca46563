import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { IdempotencyKey, ProviderClient } from "../../src/client/index.ts";
import { type ProtocolId, ProtocolSeam } from "../../src/provider/index.ts";
import * as Seam from "../../src/stages/seam/Seam.ts";
import { serverOf } from "../Servers.ts";
import { attempt } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";
import { played } from "./Run.ts";
import { answer } from "./Server.ts";

/** A provider that breaks its first answers and records the keys. */
const keyed = (breaks: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const keys: Array<string | undefined> = [];
    const url = yield* serverOf((request, response) => {
      request.resume();
      const broken = breaks[keys.length];
      keys.push(request.headers["idempotency-key"]?.toString());
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (broken === undefined) response.end(answer);
      else response.write(broken === "" ? ": begun\n\n" : broken, () => response.destroy());
    });
    return { keys, endpoint: () => `${url}/v1/chat/completions` };
  });

const text = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n';

describe("IdempotencyKey", () => {
  it.live("stays the same for the replays of a request, and changes for a continuation and its replays", () =>
    Effect.gen(function* () {
      const server = yield* keyed(["", text, ""]);
      const client = yield* ProviderClient.make();
      const keyOf = IdempotencyKey.ofRun();
      const seen = yield* played(client, server, {
        runId: "run-of-ours",
        canContinue: true,
        continueText: "auto",
        seam: Seam.of(ProtocolSeam.make<ProtocolId>({ protocol: "openai-chat", body: { stream: true } })),
        request: (attempt) => ({ idempotencyKey: keyOf(attempt) }),
      });
      assert.isTrue(seen.completed);
      assert.deepStrictEqual(seen.rules, ["nothing_shown", "continue_text", "nothing_shown"]);
      const [first, replay, continued, continuedReplay] = server.keys;
      assert.strictEqual(server.keys.length, 4);
      assert.strictEqual(replay, first);
      assert.notStrictEqual(continued, first);
      assert.strictEqual(continuedReplay, continued);
      assert.match(first ?? "", /^[\w-]{43}$/);
    }),
  );

  it("is the same for the same run id in another process, and differs for another run", () => {
    const first = { attempt: 1, mode: "first", request: "first" } as const;
    const again = { attempt: 3, mode: "replay", request: "first" } as const;
    assert.strictEqual(
      IdempotencyKey.ofRun()({ ...first, run_id: "a" }),
      IdempotencyKey.ofRun()({ ...again, run_id: "a" }),
    );
    assert.notStrictEqual(
      IdempotencyKey.ofRun()({ ...first, run_id: "a" }),
      IdempotencyKey.ofRun()({ ...first, run_id: "b" }),
    );
  });

  it("of a continuation whose first request is forgotten never equals that of another request", () => {
    const replay = { run_id: "a", attempt: 5, mode: "replay", request: "continue" } as const;
    const first = IdempotencyKey.ofRun()({ run_id: "a", attempt: 1, mode: "first", request: "first" });
    assert.notStrictEqual(IdempotencyKey.ofRun()(replay), first);
  });

  it("is the response's key for a resumption, and a separate one for each continuation", () => {
    const keyOf = IdempotencyKey.ofRun();
    const key = (
      attempt: number,
      mode: "first" | "replay" | "continue" | "resume",
      request: "first" | "continue" | "resume",
    ) => keyOf({ run_id: "a", attempt, mode, request });
    const one = key(1, "first", "first");
    assert.strictEqual(key(2, "resume", "resume"), one);
    assert.strictEqual(key(3, "replay", "resume"), one);
    const three = key(4, "continue", "continue");
    assert.strictEqual(key(5, "resume", "resume"), three);
    const four = key(6, "continue", "continue");
    assert.strictEqual(new Set([one, three, four]).size, 3);
    assert.strictEqual(key(7, "replay", "first"), one);
  });

  it.live("is the caller's, and absent if the caller gives none", () =>
    Effect.gen(function* () {
      const server = yield* keyed([]);
      const client = yield* ProviderClient.make();
      const url = server.endpoint();
      yield* attempt(client, protocols["openai-chat"], { url, idempotencyKey: "mine" });
      yield* attempt(client, protocols["openai-chat"], { url });
      assert.deepStrictEqual(server.keys, ["mine", undefined]);
    }),
  );
});
