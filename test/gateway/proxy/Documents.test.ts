/**
 * A model's response that is one document: nothing of it is shown before it is whole, so every failure before its end is retried.
 */
import type { ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { documentBytesMax, documentBytesProcessMax, heldDocuments } from "../../../src/adapters/relay/WholeBody.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { serverOf } from "../../Servers.ts";
import { allIds, type Ended, framesOf, type Said, samples } from "../../samples/index.ts";
import { type Fronted, front, type Got, recovery, send } from "../GatewayCases.ts";
import { ask, paired, recording, routeIn } from "../routes/RouteCases.ts";

type Answer = (response: ServerResponse) => void;

const json = { "content-type": "application/json" };

const usage = [7, 5] as const;

/** White space and an order of fields that no program would write again. */
const written = (protocol: ProtocolId, said: ReadonlyArray<Said>, ended: Ended = { usage }): string =>
  ` ${JSON.stringify(samples[protocol].document(said, ended), undefined, 1)}\n`;

const whole =
  (text: string, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(200, { ...json, ...headers }).end(text);

const refusing =
  (status: number, document: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { ...json, ...headers }).end(JSON.stringify(document));

const reset: Answer = (response) => response.socket?.resetAndDestroy();

/** Begins a document and breaks its connection. */
const cut =
  (text: string, headers: Record<string, string>, how: "fin" | "rst"): Answer =>
  (response) => {
    response.writeHead(200, { ...json, ...headers });
    response.write(text.slice(0, 20), () =>
      how === "rst" ? response.socket?.resetAndDestroy() : response.socket?.end(),
    );
  };

/** Breaks a document's first attempt in every way of a server. */
const faultsOf = (protocol: ProtocolId): ReadonlyArray<readonly [named: string, Answer]> => {
  const { failedFinish, refusal } = samples[protocol];
  const text = written(protocol, [{ text: "A" }]);
  const { document, status } = refusal("busy");
  return [
    ["a reset before the head", reset],
    ["a clean end before the head", (response) => response.socket?.end()],
    ["a reset in the body", cut(text, {}, "rst")],
    ["a chunked body without its last chunk", cut(text, {}, "fin")],
    ["a body shorter than its length", cut(text, { "content-length": String(text.length) }, "fin")],
    ["JSON that stops", whole(text.slice(0, -20))],
    ["no byte of JSON", whole("")],
    ["a page of a proxy", (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html></html>")],
    ["a server error", refusing(500, document)],
    ["a bad gateway", refusing(502, document)],
    ["an overload that announces a wait", refusing(503, document, { "retry-after": "0" })],
    ["a limit that announces a wait", refusing(429, document, { "retry-after": "0" })],
    ["an overload in Anthropic's status", refusing(529, document)],
    ["a refusal for now", refusing(status, document, { "retry-after": "0" })],
    ...("error" in failedFinish ? [["an error beside the finish", refusing(200, failedFinish)] as const] : []),
  ];
};

/** Plays a list of answers, the last one from then on, and asks for a document. */
const played = (
  protocol: ProtocolId,
  answers: ReadonlyArray<Answer>,
  body: object = {},
  program: GatewayProgram = {},
): Effect.Effect<{ readonly asked: ReadonlyArray<string>; readonly gateway: Fronted; readonly got: Got }> =>
  Effect.scoped(
    Effect.gen(function* () {
      const asked: Array<string> = [];
      const provider = yield* serverOf((request, response) => {
        let text = "";
        request.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        request.on("end", () => {
          asked.push(text);
          answers[Math.min(asked.length, answers.length) - 1]?.(response);
        });
      });
      const gateway = yield* front(provider, program);
      const { bare, documentPath, streams } = samples[protocol];
      const sent = JSON.stringify({ ...bare, ...streams(false), ...body });
      const got = yield* Effect.promise(() => send(`${gateway.url}${documentPath}`, { body: sent }));
      return { asked, gateway, got };
    }),
  );

for (const protocol of allIds)
  describe.concurrent(`a document of ${protocol}`, () => {
    const text = written(protocol, [{ text: "Hello" }]);

    it.live("reaches its client byte for byte, with its headers, and its end and its tokens are on record", () =>
      Effect.gen(function* () {
        const { asked, gateway, got } = yield* played(protocol, [whole(text, { "x-of-provider": "1" })]);
        assert.deepStrictEqual([got.status, got.broken, got.text], [200, false, text]);
        assert.strictEqual(got.headers["x-of-provider"], "1");
        assert.strictEqual(recovery(got, "attempts"), "1");
        assert.lengthOf(asked, 1);
        const [run] = yield* gateway.runs;
        assert.deepInclude(run?.end, { state: "completed", reason: samples[protocol].finishes.natural });
        const facts = run?.attempts.at(-1)?.facts;
        assert.deepInclude(facts, { progress: "output", shown: "text", terminal_seen: true });
        assert.deepInclude(facts?.counters, { characters: 5, input_tokens: 7, output_tokens: 5 });
      }),
    );

    for (const [named, fault] of faultsOf(protocol))
      it.live(`is requested again after ${named}`, () =>
        Effect.gen(function* () {
          const { asked, gateway, got } = yield* played(protocol, [fault, whole(text)]);
          assert.deepStrictEqual([got.status, got.text, got.broken], [200, text, false]);
          assert.strictEqual(recovery(got, "attempts"), "2");
          assert.lengthOf(asked, 2);
          assert.strictEqual(asked[0], asked[1]);
          const [run] = yield* gateway.runs;
          assert.deepStrictEqual([run?.end?.state, run?.attempts.length, run?.incidents.length], ["completed", 2, 1]);
        }),
      );

    if (samples[protocol].has.calls !== "none")
      it.live("puts its calls on record, and none of them as run by the gateway", () =>
        Effect.gen(function* () {
          const called = written(protocol, [{ call: "pay", pieces: ['{"sum":1}'] }]);
          const { gateway, got } = yield* played(protocol, [whole(called)]);
          assert.deepStrictEqual([got.text, got.broken], [called, false]);
          const [run] = yield* gateway.runs;
          const [row] = run?.attempts.at(-1)?.facts.tools ?? [];
          assert.deepInclude(row, { tool: "pay", executor: "runtime", phase: "handed_over" });
        }),
      );

    it.live("is requested at most four times, and its client learns the end", () =>
      Effect.gen(function* () {
        const { asked, got } = yield* played(protocol, [reset]);
        assert.lengthOf(asked, 4);
        assert.strictEqual(got.headers["x-should-retry"], "false");
        assert.isAtLeast(got.status, 400);
      }),
    );
  });

describe.concurrent("a document of a model", () => {
  it.live("moves to another route after the second refusal in a row", () =>
    Effect.gen(function* () {
      const busy = samples["openai-chat"].refusal("busy");
      const [one, other] = [
        yield* recording(refusing(busy.status, busy.document, { "retry-after": "0" })),
        yield* recording(whole(written("openai-chat", [{ text: "Hello" }]))),
      ];
      const { url } = yield* paired(one.url, other.url);
      const got = yield* ask(url, "openai-chat", { body: { model: "m", messages: [] } });
      assert.deepStrictEqual([got.status, routeIn(got)], [200, "second"]);
      assert.deepStrictEqual([one.asked.length, other.asked.length], [2, 1]);
    }),
  );

  it.live("moves to another route if the model refuses and that counts as a failure", () =>
    Effect.gen(function* () {
      const refused = written("openai-chat", [], { finish: "content_filter", usage });
      const [one, other] = [
        yield* recording(whole(refused)),
        yield* recording(whole(written("openai-chat", [{ text: "Hello" }]))),
      ];
      const { url } = yield* paired(one.url, other.url, { movesOn: ["refused"] });
      const got = yield* ask(url, "openai-chat", { body: { model: "m", messages: [] } });
      assert.deepStrictEqual([got.status, routeIn(got)], [200, "second"]);
      assert.include(got.text, "Hello");
    }),
  );

  it.live("with text that the filter then ended stays with its client", () =>
    Effect.gen(function* () {
      const refused = written("openai-chat", [{ text: "So" }], { finish: "content_filter", usage });
      const [one, other] = [yield* recording(whole(refused)), yield* recording(reset)];
      const { url } = yield* paired(one.url, other.url, { movesOn: ["refused"] });
      const got = yield* ask(url, "openai-chat", { body: { model: "m", messages: [] } });
      assert.deepStrictEqual([got.text, got.broken, other.asked.length], [refused, false, 0]);
    }),
  );

  it.live("with a call that cannot be read is requested again, and never reaches its client", () =>
    Effect.gen(function* () {
      const damaged = written("openai-chat", [{ call: "pay", pieces: ['{"sum":'] }]);
      const good = written("openai-chat", [{ call: "pay", pieces: ['{"sum":1}'] }]);
      const again = yield* played("openai-chat", [whole(damaged), whole(good)]);
      assert.deepStrictEqual([again.asked.length, again.got.text], [2, good]);
      const never = yield* played("openai-chat", [whole(damaged)]);
      assert.notInclude(never.got.text, "sum");
      assert.strictEqual(never.got.headers["x-should-retry"], "false");
    }),
  );

  it.live("with a call that the request's own limit cut is not requested again", () =>
    Effect.gen(function* () {
      const damaged = written("openai-chat", [{ call: "pay", pieces: ['{"sum":'] }]);
      const { asked, got } = yield* played("openai-chat", [whole(damaged)], { max_tokens: 5 });
      assert.lengthOf(asked, 1);
      assert.notInclude(got.text, "sum");
    }),
  );

  it.live("that its server sends as a stream is complete only with its marker", () =>
    Effect.gen(function* () {
      const sse = { "content-type": "text/event-stream" };
      const frames = framesOf("openai-chat", [{ text: "Hello" }]).join("");
      const half = framesOf("openai-chat", [{ text: "Hello" }], { cut: true }).join("");
      const { asked, got } = yield* played("openai-chat", [whole(half, sse), whole(frames, sse)]);
      assert.deepStrictEqual([asked.length, got.text], [2, frames]);
    }),
  );

  it.live("that the provider stores is not requested a second time once it may have arrived", () =>
    Effect.gen(function* () {
      const stored = { store: true };
      const { asked, got } = yield* played("openai-responses", [reset], stored);
      assert.lengthOf(asked, 1);
      assert.isAtLeast(got.status, 400);
    }),
  );

  it.live("beyond the limit passes as it comes, and its record says that nothing in it was read", () =>
    Effect.gen(function* () {
      const piece = "x".repeat(1024 * 1024);
      const large: Answer = (response) => {
        response.writeHead(200, json);
        for (let at = 0; at <= documentBytesMax / piece.length; at += 1) response.write(piece);
        response.end();
      };
      const { asked, gateway, got } = yield* played("openai-chat", [large]);
      assert.lengthOf(asked, 1);
      assert.deepStrictEqual([got.body.byteLength, got.broken], [documentBytesMax + piece.length, false]);
      const [run] = yield* gateway.runs;
      assert.deepInclude(run?.end, { state: "completed", reason: "document_over_limit" });
    }),
  );

  it.live("ends with its client, and its provider's connection is closed", () =>
    Effect.gen(function* () {
      const closed: Array<() => void> = [];
      const gone = new Promise<void>((resolve) => closed.push(resolve));
      const begun: Array<() => void> = [];
      const started = new Promise<void>((resolve) => begun.push(resolve));
      const provider = yield* serverOf((request, response) => {
        request.resume().on("end", () => {
          response.writeHead(200, json).write(" ", () => begun[0]?.());
          response.on("close", () => closed[0]?.());
        });
      });
      const gateway = yield* front(provider);
      const { bare, documentPath, streams } = samples["openai-chat"];
      const controller = new AbortController();
      const asking = fetch(`${gateway.url}${documentPath}`, {
        method: "POST",
        headers: json,
        body: JSON.stringify({ ...bare, ...streams(false) }),
        signal: controller.signal,
      }).catch(() => undefined);
      yield* Effect.promise(() => started);
      controller.abort();
      yield* Effect.promise(() => gone);
      yield* Effect.promise(() => asking);
      const end = yield* gateway.until(([run]) => run?.end);
      assert.deepInclude(end, { state: "stopped", reason: "user_cancelled" });
    }).pipe(Effect.scoped),
  );
});

describe("A document that falls silent in its body", () => {
  it.live("is requested again", () =>
    Effect.gen(function* () {
      const text = written("openai-chat", [{ text: "A" }]);
      const begun: Answer = (response) => void response.writeHead(200, json).write(text.slice(0, 20));
      const clocks = { silence: 1_000, attempt: 20_000 };
      const { asked, got } = yield* played("openai-chat", [begun, whole(text)], {}, { clocks });
      assert.deepStrictEqual([asked.length, got.text], [2, text]);
    }),
  );
});

describe("The documents of a process", () => {
  /** Leaves room for this many bytes of documents. */
  const withRoom = (bytes: number) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const before = heldDocuments.bytes;
        heldDocuments.bytes = documentBytesProcessMax - bytes;
        return before;
      }),
      (before) =>
        Effect.sync(() => {
          heldDocuments.bytes = before;
        }),
    );

  it.live("pass as they come if together they exceed the limit, and their records say so", () =>
    Effect.gen(function* () {
      yield* withRoom(100_000);
      const text = written("openai-chat", [{ text: "x".repeat(200_000) }]);
      const { gateway, got } = yield* played("openai-chat", [whole(text)]);
      assert.deepStrictEqual([got.text, got.broken], [text, false]);
      const [run] = yield* gateway.runs;
      assert.deepInclude(run?.end, { state: "completed", reason: "document_over_limit" });
      assert.strictEqual(heldDocuments.bytes, documentBytesProcessMax - 100_000);
    }).pipe(Effect.scoped),
  );

  it.live("are counted only while they are held", () =>
    Effect.gen(function* () {
      yield* withRoom(100_000);
      const text = written("openai-chat", [{ text: "x".repeat(60_000) }]);
      const half: Answer = (response) =>
        void response.writeHead(200, json).write(text.slice(0, 50_000), () => response.socket?.resetAndDestroy());
      for (let turn = 0; turn < 3; turn += 1) {
        const { asked, gateway, got } = yield* played("openai-chat", [half, whole(text.slice(0, -9)), whole(text)]);
        assert.deepStrictEqual([asked.length, got.text], [3, text]);
        const [run] = yield* gateway.runs;
        assert.notStrictEqual(run?.end?.reason, "document_over_limit");
      }
      assert.strictEqual(heldDocuments.bytes, documentBytesProcessMax - 100_000);
    }).pipe(Effect.scoped),
  );
});
