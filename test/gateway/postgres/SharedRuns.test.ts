/** A run of one gateway, as a person sees it and acts on it at another one over the same database. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber } from "effect";
import { inject } from "vitest";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as RunCancel from "../../../src/runtime/crash/RunCancel.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as Pooler from "../../recorder/postgres/Pooler.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, type Fronted, front, post, send } from "../GatewayCases.ts";
import { looking } from "./LookingClock.ts";
import { listening } from "./Nodes.ts";

/** The provider may have run a tool before it broke, so that a person is asked. */
const asking = JSON.stringify({ ...bodies["openai-chat"], tools: [{ type: "mcp", server_label: "shop" }] });
const unproven = { answers: [{ break: { kind: "rst", at: "after_head" } }, { content: [{ text: 3 }] }] } as const;

const hold = { onQuestion: "hold", keepAliveMs: 5 } as const;

/** The newest run once it asks, as a gateway has it on record. */
const asked = ({ until }: Fronted) =>
  until(([run]) => (run?.questions[0] === undefined ? undefined : { run, question: run.questions[0] }));

/** Answers by the API of a gateway, as its page does. */
const answer = ({ url }: Fronted, run: string, revision: number) =>
  Effect.promise(() =>
    send(`${url}/recovery/api/runs/${run}/answer`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-recovery-answer": "1" },
      body: JSON.stringify({ revision, choice: "retry", confirm_may_repeat: true }),
    }),
  );

/** A stream that is held at one gateway over a question is answered at the other one, and goes on. */
const goesOn = Effect.fnUntraced(function* (a: Fronted, b: Fronted) {
  const client = yield* Effect.forkChild(post(a.url, "openai-chat", { body: asking }));
  const { question, run } = yield* asked(b);
  assert.strictEqual((yield* answer(b, run.run_id, question.revision)).status, 200);
  const got = yield* Fiber.join(client);
  assert.deepStrictEqual([got.status, got.broken], [200, false]);
  const ended = yield* b.until((all) => all.find(({ end }) => end !== undefined));
  assert.deepStrictEqual([ended.end?.state, ended.questions[0]?.answered_by], ["completed", "person"]);
});

describe("a run of one gateway at another one", () => {
  it.live("continues with an answer from another gateway as soon as it is notified", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const server = yield* FaultProvider.make({ script: unproven });
      // By the poll it would never be found.
      const a = yield* front(server.url, { db, ...hold }).pipe(looking("never"));
      const b = yield* front(server.url, { db, ...hold }, RecoveryPage.layer);
      yield* listening(a);
      yield* goesOn(a, b);
    }).pipe(Effect.scoped),
  );

  it.live("is named by the feed of the page there: when it begins, and when it goes on", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const server = yield* FaultProvider.make({ script: unproven });
      const a = yield* front(server.url, { db, ...hold });
      const b = yield* front(server.url, { db, ...hold }, RecoveryPage.layer);
      const abort = new AbortController();
      yield* Effect.addFinalizer(() => Effect.sync(() => abort.abort()));
      const { body } = yield* Effect.promise(() => fetch(`${b.url}/recovery/api/events`, { signal: abort.signal }));
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let said = "";
      const names = (text: string) =>
        Effect.promise(async () => {
          while (!said.includes(text)) said += (await reader?.read())?.value ?? assert.fail("the feed has ended");
          said = said.slice(said.indexOf(text) + text.length);
        });
      // Its first look has nothing to compare with.
      yield* names('{"runs":[]}');
      const client = yield* Effect.forkChild(post(a.url, "openai-chat", { body: asking }));
      const { question, run } = yield* asked(b);
      yield* names(`"${run.run_id}"`);
      // Nothing is new of it until it is answered.
      yield* names('{"runs":[]}');
      yield* answer(b, run.run_id, question.revision);
      yield* names(`"${run.run_id}"`);
      assert.isFalse((yield* Fiber.join(client)).broken);
    }).pipe(Effect.scoped),
  );
});

describe("gateways that hear nothing, behind a pooler by transaction", () => {
  const pooled = Pooler.database("transaction", inject("postgresSocket"), [Pooler.ignoredParameters]);

  /** What is put into the address where nothing can be prepared. */
  const more = "&prepare=false";

  const isDeaf = ({ services }: Fronted): boolean =>
    Context.get(services, RunRecorder).shared?.hasNotifications() === false;

  it.live("find an answer by the poll", () =>
    Effect.gen(function* () {
      const db = `${yield* pooled}${more}`;
      const server = yield* FaultProvider.make({ script: unproven });
      const a = yield* front(server.url, { db, ...hold }).pipe(looking("never"));
      const b = yield* front(server.url, { db, ...hold }, RecoveryPage.layer);
      yield* goesOn(a, b);
      assert.deepStrictEqual([isDeaf(a), isDeaf(b)], [true, true]);
    }).pipe(Effect.scoped),
  );

  it.live("find a cancel by the look that comes from time to time", () =>
    Effect.gen(function* () {
      const db = `${yield* pooled}${more}`;
      const upstream = yield* serverOf((_, response) => {
        const chunk = { id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "x" } }] };
        response.writeHead(200, { "content-type": "text/event-stream" }).write(`data: ${JSON.stringify(chunk)}\n\n`);
      });
      const a = yield* front(upstream, { db }).pipe(looking("soon"));
      const b = yield* front(upstream, { db });
      const shown = Deferred.makeUnsafe<void>();
      const onData = (): void => void Deferred.doneUnsafe(shown, Effect.void);
      const client = yield* Effect.forkChild(post(a.url, "openai-chat", { onData }));
      // A run that is cancelled before its head has a plain answer, which no cancel breaks.
      yield* Deferred.await(shown);
      const { run_id } = yield* b.until((all) => all.find(({ state }) => state === "live"));
      const recorder = Context.get(b.services, RunRecorder);
      const found = yield* Effect.provideService(RunCancel.cancel(run_id), RunRecorder, recorder);
      assert.deepStrictEqual([found?.outcome, found?.record.end?.reason], ["forwarded", "user_cancelled"]);
      assert.isTrue((yield* Fiber.join(client)).broken);
      assert.deepStrictEqual([isDeaf(a), isDeaf(b)], [true, true]);
    }).pipe(Effect.scoped),
  );
});
