/**
 * The same clients through the gateway, with a faulty provider that we did not write: aimock with its error answers, its chaos
 * rates and its interruptions.
 */
import { LLMock } from "@copilotkit/aimock";
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Exit } from "effect";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import type { ConformanceRuntime, ConformanceTask } from "../../../src/testing/index.ts";
import { samples } from "../../samples/index.ts";
import { front } from "../GatewayCases.ts";
import { clients } from "./Runtimes.ts";

type Fixture = Parameters<LLMock["addFixture"]>[0];
type Answer = Fixture["response"];

/** A fault of aimock in the first request, in addition to its answer. */
interface Fault {
  readonly name: string;
  readonly options?: Omit<Fixture, "match" | "response">;
  /** Sent instead of the answer. */
  readonly instead?: Answer;
  /** True if text may have been shown before it, so that a live answer may end with an error. */
  readonly later?: boolean;
}

const faults: ReadonlyArray<Fault> = [
  { name: "nothing", options: {} },
  { name: "500, chaos drop", options: { chaos: { dropRate: 1 } } },
  { name: "malformed JSON, chaos", options: { chaos: { malformedRate: 1 } } },
  { name: "429, chaos rate limit", options: { chaos: { rateLimitRate: 1 } } },
  { name: "a dropped connection, chaos", options: { chaos: { disconnectRate: 1 } } },
  { name: "latency, chaos", options: { chaos: { latencyMs: 300 } } },
  { name: "cut after 1 chunk", options: { truncateAfterChunks: 1 }, later: true },
  { name: "cut after 3 chunks", options: { truncateAfterChunks: 3, latency: 5 }, later: true },
  { name: "cut after 50 ms", options: { disconnectAfterMs: 50, latency: 20 }, later: true },
  { name: "503", instead: { error: { message: "try again", type: "server_error" }, status: 503 } },
  { name: "529", instead: { error: { message: "overloaded", type: "overloaded_error" }, status: 529 } },
];

/** The answer of a turn. */
const answerOf = (kind: "text" | "call", protocol: ProtocolId): Answer => {
  if (kind === "text") return { content: "Twelve rooms are free — “A 12” among them, with a view of the harbour." };
  const toolCalls = [{ name: "book_room", arguments: JSON.stringify({ room: "A 12", night: "2026-11-21" }) }];
  // Gemini itself ends a call with STOP. After aimock's own FUNCTION_CALL the AI SDK runs no tool.
  return { toolCalls, ...(protocol === "google-gemini" ? { finishReason: "stop" } : {}) };
};

/** Size of a chunk in UTF-16 code units, small enough for many chunks. */
const chunkSize = 6;

const prompt = "Book room A 12 for tonight.";

/** aimock only serves Gemini at `/v1beta`. */
const genaiV1 = "@google/genai";

/** Starts aimock with the fault in the first request, and the answer in all others. */
const broken = (fault: Fault, answer: Answer) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const mock = new LLMock({ port: 0, host: "127.0.0.1", chunkSize, logLevel: "silent" });
      mock.addFixture({ match: { hasToolResult: true }, response: { content: "It is booked." } });
      mock.addFixture({
        match: { userMessage: prompt, sequenceIndex: 0 },
        response: fault.instead ?? answer,
        ...fault.options,
      });
      mock.addFixture({ match: { userMessage: prompt }, response: answer });
      await mock.start();
      return mock;
    }),
    (mock) => Effect.promise(() => mock.stop()),
  );

interface Turn {
  readonly text: string;
  readonly ran: ReadonlyArray<unknown>;
  readonly ok: boolean;
  readonly error: string;
}

/** One turn of a client at an address. */
const play = (runtime: ConformanceRuntime, protocol: ProtocolId, origin: string) =>
  Effect.gen(function* () {
    const ran: Array<unknown> = [];
    let text = "";
    const task: ConformanceTask = {
      ...{ protocol, origin, prompt, model: "gemini-3-pro", api_key: "not-a-key", signal: AbortSignal.timeout(25_000) },
      base_url: `${origin}${samples[protocol].base}`,
      endpoint: "",
      headers: {},
      screen: {
        text: () => text,
        write: (more) => {
          text += more;
        },
        replace: (by) => {
          text = by;
        },
      },
      tools: [
        {
          name: "book_room",
          description: "Books a room.",
          parameters: { type: "object", properties: { room: { type: "string" }, night: { type: "string" } } },
          execute: (input) => {
            ran.push(typeof input === "string" ? JSON.parse(input) : input);
            return Promise.resolve("booked");
          },
        },
      ],
    };
    const turn = runtime.turn(task);
    const exit = yield* Effect.exit(Effect.isEffect(turn) ? turn : Effect.promise(() => turn));
    const error = Exit.isSuccess(exit) ? "" : String(Cause.squash(exit.cause));
    return { text, ran, ok: Exit.isSuccess(exit), error } satisfies Turn;
  });

/** A turn through a gateway, and the number of requests to aimock. */
const through = (
  runtime: ConformanceRuntime,
  protocol: ProtocolId,
  reveal: "live" | "on_complete",
  fault: Fault,
  answer: Answer,
) =>
  Effect.gen(function* () {
    const mock = yield* broken(fault, answer);
    const { url } = yield* front(mock.url, { reveal });
    const turn = yield* play(runtime, protocol, url);
    return { turn, requests: mock.getRequests().length };
  }).pipe(Effect.scoped);

/** A turn with a healthy answer, directly. */
const directly = (runtime: ConformanceRuntime, protocol: ProtocolId, answer: Answer) =>
  Effect.gen(function* () {
    const mock = yield* broken({ name: "nothing" }, answer);
    const turn = yield* play(runtime, protocol, mock.url);
    return { turn, requests: mock.getRequests().length };
  }).pipe(Effect.scoped);

const cells = (runtime: ConformanceRuntime, protocol: ProtocolId, kind: "text" | "call") =>
  Effect.gen(function* () {
    const answer = answerOf(kind, protocol);
    const direct = yield* directly(runtime, protocol, answer);
    const name = `${runtime.name}, ${protocol}, ${kind}`;
    assert.isTrue(direct.turn.ok, `${name}: ${direct.turn.error}`);
    assert.isAbove(direct.turn.text.length + direct.turn.ran.length, 0, name);
    yield* Effect.forEach(faults, (fault) => cell(runtime, protocol, kind, fault, direct), {
      concurrency: "unbounded",
      discard: true,
    });
  });

const cell = (
  runtime: ConformanceRuntime,
  protocol: ProtocolId,
  kind: "text" | "call",
  fault: Fault,
  direct: { readonly turn: Turn; readonly requests: number },
) =>
  Effect.gen(function* () {
    const answer = answerOf(kind, protocol);
    const name = `${runtime.name}, ${protocol}, ${kind}, ${fault.name}`;
    const [whole, live] = yield* Effect.all(
      [through(runtime, protocol, "on_complete", fault, answer), through(runtime, protocol, "live", fault, answer)],
      { concurrency: 2 },
    );
    assert.deepStrictEqual(whole.turn, direct.turn, `${name}, on_complete`);
    const harmless = fault.name === "nothing" || fault.options?.chaos?.latencyMs !== undefined;
    // An answer may have ended before the time of the cut.
    if (harmless || fault.later !== true)
      assert.strictEqual(whole.requests, direct.requests + (harmless ? 0 : 1), `${name}: requests`);
    // Shown text is the beginning of the answer, and only a whole answer is reported as a success.
    if (live.turn.ok || fault.later !== true || kind === "call")
      assert.deepStrictEqual(live.turn, direct.turn, `${name}, live`);
    else assert.isTrue(direct.turn.text.startsWith(live.turn.text), `${name}, live: ${live.turn.text}`);
    assert.isAtMost(live.turn.ran.length, direct.turn.ran.length, `${name}, live`);
  });

describe("real clients through the gateway, on aimock", () => {
  for (const { name, runtime } of clients.filter((client) => client.name !== genaiV1)) {
    it.live(`${name}: a whole answer equals the direct one, whatever aimock did before`, () =>
      Effect.gen(function* () {
        const made = yield* runtime;
        // aimock does not serve legacy completions.
        for (const protocol of made.protocols.filter((it) => it !== "openai-completions")) {
          for (const kind of ["text", "call"] as const) yield* cells(made, protocol, kind);
        }
      }),
    );
  }
});
