/** What a run gives travels: every event and its end, over JSON and over Effect's Rpc, as data and without a secret. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Layer, Schema, Stream } from "effect";
import { HttpRouter } from "effect/http";
import { Rpc, RpcClient, RpcGroup, RpcSerialization, RpcServer } from "effect/rpc";
import { RunInterrupted, StreamProcessor } from "../../../src/index.ts";
import * as RunEvent from "../../../src/runtime/contract/RunEvent.ts";
import * as S from "../Scripted.ts";

const Part = Schema.Struct({ name: Schema.String });
const Event = RunEvent.schema(Part);
type Event = RunEvent.RunEvent<typeof Part.Type>;

const decision = {
  action: "ask_user",
  rule: "text_shown",
  delay_ms: 0,
  policy_version: "2",
  because: ["shown=text"],
  choices: ["retry", "stop"],
  default_choice: "stop",
} as const;

const every: ReadonlyArray<Event> = [
  { _tag: "AttemptStarted", run_id: "r", attempt: 1, mode: "first" },
  { _tag: "Part", attempt: 1, ordinal: 1, part: { name: "a" } },
  {
    _tag: "Part",
    attempt: 1,
    ordinal: 2,
    part: { name: "b" },
    calls: [{ run_id: "r", attempt: 1, call: "0.0", id: "", tool: "look", input: undefined }],
  },
  { _tag: "AttemptDiscarded", attempt: 1, keep_through: 0 },
  { _tag: "RetryScheduled", attempt: 1, mode: "replay", rule: "nothing_shown", delay_ms: 375, message: "Again." },
  {
    _tag: "QuestionAsked",
    question: {
      run_id: "r",
      revision: 1,
      incident: "r.1",
      rule: "text_shown",
      message: "What now?",
      choices: ["retry", "stop"],
      default_choice: "stop",
      may_repeat: ["0.0"],
      asked_at: 5,
      decision,
    },
  },
  { _tag: "QuestionAnswered", revision: 1, choice: "retry" },
  { _tag: "CallVerified", attempt: 1, call: "0.0", tool: "look", verdict: "it_ran" },
  { _tag: "RunCompleted", run_id: "r", attempts: 2, finish: undefined, late_failure: undefined },
  { _tag: "RunCompleted", run_id: "r", attempts: 2, finish: "stop", late_failure: { kind: "truncated" } },
];

describe("RunEvent.schema", () => {
  it("decodes every event from JSON to the event that was encoded", () => {
    const codec = Schema.toCodecJson(Event);
    for (const event of every) {
      const sent: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(codec)(event)));
      assert.deepStrictEqual(Schema.decodeUnknownSync(codec)(sent), event);
    }
    assert.strictEqual(new Set(every.map(({ _tag }) => _tag)).size, 8);
  });

  it.effect("fits what a run really gives, question and retry among it", () =>
    Effect.gen(function* () {
      const codec = Schema.toCodecJson(Event);
      const provider = S.scripted([S.start, S.reset], [S.text("a"), S.callReady("look"), S.done]);
      const tools = [{ name: "look", executor: "runtime", effect: "read_only" }] as const;
      const tags = new Set<string>();
      yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools })), (event) =>
        Effect.sync(() => {
          tags.add(event._tag);
          const sent: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(codec)(event)));
          assert.strictEqual(Schema.decodeUnknownSync(codec)(sent)._tag, event._tag);
        }),
      );
      assert.includeMembers([...tags], ["AttemptStarted", "RetryScheduled", "Part", "RunCompleted"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

const secret = "sk-planted-in-the-error";

/** Errors of every shape that a provider's client may have, each with a secret in it. */
const causes: ReadonlyArray<unknown> = [
  new Error(secret),
  Object.assign(new TypeError(secret, { cause: new Error(secret) }), { code: "ECONNRESET", headers: { k: secret } }),
  secret,
  { anything: secret, nested: { deep: 10n } },
  Symbol(secret),
  () => secret,
  null,
  7,
  new S.ProviderBroke({ kind: "truncated" }),
];

describe("RunInterrupted as JSON", () => {
  const codec = Schema.toCodecJson(RunInterrupted);
  const interrupted = (cause: unknown) =>
    new RunInterrupted({
      reason: "do_not_retry",
      run_id: "r",
      rule: "not_retryable",
      failure: { kind: "transport", code: "CERT_HAS_EXPIRED" },
      attempts: 1,
      message: "It failed.",
      cause,
    });

  it("comes back with its reason, rule and message; its cause is a fingerprint without a secret", () => {
    for (const cause of causes) {
      const error = interrupted(cause);
      // In this process it is the very object (L12).
      assert.strictEqual(error.cause, cause);
      const text = JSON.stringify(Schema.encodeSync(codec)(error));
      assert.notInclude(text, secret);
      const read = Schema.decodeUnknownSync(codec)(JSON.parse(text));
      assert.instanceOf(read, RunInterrupted);
      const { attempts, failure, message, reason, rule, run_id } = error;
      assert.deepInclude({ ...read }, { attempts, failure, reason, rule, run_id });
      assert.strictEqual(read.message, message);
      assert.hasAnyKeys(Object(read.cause), ["name", "depth"]);
      // A second hop changes nothing.
      assert.strictEqual(JSON.stringify(Schema.encodeSync(codec)(read)), text);
    }
  });

  it("without a cause it has none", () => {
    const { attempts, failure, message, reason, rule, run_id } = interrupted(undefined);
    const error = new RunInterrupted({ attempts, failure, message, reason, rule, run_id });
    assert.notProperty(Schema.encodeSync(codec)(error), "cause");
  });
});

const group = RpcGroup.make(
  Rpc.make("ask", { payload: { how: Schema.String }, success: Event, error: RunInterrupted, stream: true }),
);

const scripts = {
  whole: [
    [S.start, S.reset],
    [S.start, S.text("b"), S.done],
  ],
  broken: [[S.start, S.fail({ kind: "rejected", reason: "quota", status: 402 })]],
};

describe("over Effect's Rpc", () => {
  it.live("a run's events and its end arrive on the other side of a socket", () =>
    Effect.gen(function* () {
      const client = yield* RpcClient.make(group);
      const taken: Array<Event> = [];
      const drain = (how: string) =>
        Effect.exit(Stream.runForEach(client.ask({ how }), (event) => Effect.sync(() => void taken.push(event))));
      const whole = yield* drain("whole");
      assert.isTrue(Exit.isSuccess(whole), String(whole));
      assert.strictEqual(taken.at(-1)?._tag, "RunCompleted");
      assert.includeDeepMembers(taken, [{ _tag: "Part", attempt: 2, ordinal: 2, part: { name: "b" } }]);
      const error = yield* Effect.flip(Stream.runDrain(client.ask({ how: "broken" })));
      assert.instanceOf(error, RunInterrupted);
      assert.deepInclude({ ...error }, { reason: "do_not_retry", rule: "not_retryable" });
    }).pipe(Effect.scoped, Effect.provide(served)),
  );
});

const handlers = group.toLayer({
  ask: ({ how }: { readonly how: string }) =>
    Stream.unwrap(
      Effect.map(StreamProcessor, (processor) =>
        processor.run(S.options(S.scripted(...(how === "whole" ? scripts.whole : scripts.broken)))),
      ),
    ),
});
const server = HttpRouter.serve(
  RpcServer.layerHttp({ group, path: "/", protocol: "http" }).pipe(
    Layer.provide(handlers),
    Layer.provide(S.processor()),
    Layer.provide(RpcSerialization.layerNdjson),
  ),
);
const served = RpcClient.layerProtocolHttp({ url: "" }).pipe(
  Layer.provide(RpcSerialization.layerNdjson),
  Layer.provideMerge(server),
  Layer.provide(NodeHttpServer.layerTest),
);
