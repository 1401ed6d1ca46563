/**
 * Resumed streams on real sockets, through StreamProcessor.run: whatever breaks, every event is seen exactly once, in order.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Random, References, Stream } from "effect";
import { ProviderClient, ResumableStream } from "../../../src/client/index.ts";
import * as Json from "../../../src/domain/Json.ts";
import { none } from "../../../src/domain/Observation.ts";
import type { AnyProtocolId } from "../../../src/provider/Protocols.ts";
import * as AnySse from "../../../src/provider/stream/AnySse.ts";
import * as Resume from "../../../src/provider/stream/Resume.ts";
import type { RunBase, RunOptions } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { Answers, FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { protocols } from "../../client/Protocols.ts";

/** Jitter 0: every wait is as short as it can be. */
const noJitter = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 };

interface Seen {
  /** Sequence numbers of what the caller has at the end, withdrawn parts left out. */
  readonly numbers: ReadonlyArray<number>;
  readonly rules: ReadonlyArray<string>;
  readonly requests: ReadonlyArray<string>;
  readonly end: string;
  /** Calls that the caller was told to run, with their arguments. */
  readonly calls: ReadonlyArray<string>;
}

type Part = Resume.CursorPart<AnyProtocolId>;
type Open = (
  client: ProviderClient["Service"],
  server: FaultProvider["Service"],
) => RunOptions<Part, unknown, never>["attempt"];

const responses: Open = (client, server) => (attempt) =>
  ResumableStream.responses(
    client,
    {
      protocol: protocols["openai-responses"],
      url: server.endpoint("openai-responses"),
      body: { background: true, stream: true },
      delivery: attempt.delivery,
      bytes: attempt.bytes,
    },
    attempt,
  );

/** A stream of no protocol's: all of it is reasoning, so that a run may begin again without asking. */
const rules: AnySse.Rules = {
  terminal: (_event, json) => Json.record(json)?.type === "response.completed",
  observe: () => ({ ...none, progress: "reasoning", shows: "reasoning" }),
};

const events: Open = (client, server) => (attempt) =>
  ResumableStream.events(
    client,
    {
      protocol: AnySse.protocol(rules),
      url: server.endpoint("openai-responses"),
      body: { stream: true },
      delivery: attempt.delivery,
      bytes: attempt.bytes,
    },
    attempt,
    { sequence: Number },
  );

const played = (script: FaultScriptInput, open: Open, more: Partial<RunBase<Part, unknown, never>> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script });
      const client = yield* ProviderClient.make();
      const processor = yield* StreamProcessor;
      let parts: Array<{ readonly attempt: number; readonly ordinal: number; readonly part: Part }> = [];
      const found: Array<string> = [];
      const calls: Array<string> = [];
      const end = yield* processor
        .run<Part, unknown, never>({
          provider: { id: "openai", model: "m", reasoning: false },
          tools: [],
          attempt: open(client, server),
          observe: (part) => part.observation,
          cursor: Resume.cursor,
          ...more,
        })
        .pipe(
          Stream.runForEach((event) =>
            Effect.sync(() => {
              if (event._tag === "Part") parts.push(event);
              if (event._tag === "Part") calls.push(...(event.calls ?? []).map((call) => call.input ?? ""));
              if (event._tag === "RetryScheduled") found.push(`${event.mode} ${event.rule}`);
              if (event._tag === "QuestionAsked") found.push(`ask ${event.question.rule}`);
              if (event._tag !== "AttemptDiscarded") return;
              parts = parts.filter((it) => it.attempt !== event.attempt || it.ordinal <= event.keep_through);
            }),
          ),
          Effect.match({ onSuccess: () => "completed", onFailure: (error) => error.rule }),
        );
      const rows = yield* server.log;
      return {
        numbers: parts.flatMap(({ part }) => Json.natural(Json.record(part.json)?.sequence_number) ?? []),
        rules: found,
        requests: rows.map((row) => `${row.method} ${row.path}`),
        end,
        calls,
      } satisfies Seen;
    }),
  ).pipe(
    Effect.provideService(Random.Random, noJitter),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provide(StreamProcessor.layerDefault),
  );

const content = [{ reasoning: 2 }, { text: 3 }, { tool: "bash", input: { cmd: "ls" } }];
const background = { content, background: true };
const counted = { content, ids: true };
const total = Answers.render("openai-responses", 1, { content }).length;
const all = Array.from({ length: total }, (_, index) => index);
const input = JSON.stringify({ serial: "r1.t1", cmd: "ls", end: "r1.t1·" });
const resume = { resume: {} };
const cut = (n: number, kind: "rst" | "end" = "rst") => ({ break: { kind, at: "event", n } }) as const;

describe.concurrent("A background response is resumed on real sockets", () => {
  it.live(`cut after each of its ${total} events and resumed, every sequence number comes exactly once`, () =>
    Effect.gen(function* () {
      const cuts = all.slice(1).flatMap((k) => [
        { k, kind: "rst" as const },
        { k, kind: "end" as const },
      ]);
      yield* Effect.forEach(
        cuts,
        Effect.fnUntraced(function* ({ k, kind }) {
          const it = yield* played({ answers: [{ ...background, ...cut(k, kind) }, resume] }, responses);
          assert.deepStrictEqual(it.numbers, all, `cut after ${k} by ${kind}`);
          assert.deepStrictEqual(it.rules, ["resume resume_cursor"]);
          assert.deepStrictEqual(it.requests, ["POST /v1/responses", "GET /v1/responses/resp_r1"]);
          assert.deepStrictEqual([it.calls, it.end], [[input], "completed"], `cut after ${k} by ${kind}`);
        }),
        { concurrency: 12 },
      );
    }),
  );

  it.live("cut again and again, it is resumed each time where it broke", () =>
    Effect.gen(function* () {
      const answers = [
        { ...background, ...cut(5) },
        { ...resume, ...cut(1) },
        { ...resume, ...cut(6) },
        resume,
      ] as const;
      const it = yield* played({ answers }, responses);
      assert.deepStrictEqual([it.numbers, it.end], [all, "completed"]);
      assert.deepStrictEqual(it.rules, Array(3).fill("resume resume_cursor"));
    }),
  );

  it.live("a final response that tells its calls again hands none over a second time", () =>
    Effect.gen(function* () {
      const call = {
        type: "function_call",
        call_id: "call_r1.t1",
        name: "bash",
        arguments: input,
        status: "completed",
      };
      const final = {
        type: "response.completed",
        sequence_number: total - 1,
        response: { id: "resp_r1", status: "completed", output: [call] },
      };
      const raw = `event: response.completed\ndata: ${JSON.stringify(final)}\n\n`;
      const it = yield* played({ answers: [{ ...background, ...cut(total - 1) }, { raw }] }, responses);
      assert.deepStrictEqual([it.numbers, it.calls, it.end], [all, [input], "completed"]);
    }),
  );

  it.live("what came before the cut counts where nothing but the end comes behind it: the response is not empty", () =>
    Effect.gen(function* () {
      const final = {
        type: "response.completed",
        sequence_number: total - 1,
        response: { id: "resp_r1", status: "completed", output: [] },
      };
      const raw = `event: response.completed\ndata: ${JSON.stringify(final)}\n\n`;
      const answers = [{ ...background, ...cut(total - 1) }, { raw }];
      const it = yield* played({ answers }, responses, { emptyIsFailure: true });
      assert.deepStrictEqual([it.numbers, it.end], [all, "completed"]);
      assert.deepStrictEqual(it.rules, ["resume resume_cursor"]);
    }),
  );

  it.live("a response that does not run in the background is not resumed", () =>
    Effect.gen(function* () {
      const it = yield* played({ answers: [{ content, ...cut(4) }, { content }] }, responses);
      assert.deepStrictEqual(it.requests, ["POST /v1/responses", "POST /v1/responses"]);
      assert.deepStrictEqual([it.numbers, it.end], [all, "completed"]);
    }),
  );

  it.live("what the server repeats is dropped", () =>
    Effect.gen(function* () {
      for (const repeat of [1, 3, 100]) {
        const it = yield* played({ answers: [{ ...background, ...cut(6) }, { resume: { repeat } }] }, responses);
        assert.deepStrictEqual([it.numbers, it.end], [all, "completed"], `repeats ${repeat}`);
      }
    }),
  );

  it.live("a server that skips is not believed: the response is decided again without the cursor", () =>
    Effect.gen(function* () {
      const answers = [{ ...background, ...cut(4) }, { resume: { skip: 1 } }, background] as const;
      const it = yield* played({ answers }, responses);
      assert.deepStrictEqual(it.rules, ["resume resume_cursor", "replay only_reasoning_shown"]);
      assert.deepStrictEqual(it.requests, ["POST /v1/responses", "GET /v1/responses/resp_r1", "POST /v1/responses"]);
      assert.deepStrictEqual([it.numbers, it.end], [all, "completed"]);
    }),
  );

  it.live("a refused cursor is decided again without it", () =>
    Effect.gen(function* () {
      for (const status of [400, 404]) {
        const early = yield* played({ answers: [{ ...background, ...cut(4) }, { status }, background] }, responses);
        assert.deepStrictEqual(early.rules, ["resume resume_cursor", "replay only_reasoning_shown"], `${status}`);
        assert.deepStrictEqual([early.numbers, early.end], [all, "completed"]);
        const shown = yield* played({ answers: [{ ...background, ...cut(12) }, { status }, background] }, responses);
        assert.deepStrictEqual(shown.rules, ["resume resume_cursor", "ask text_shown"], `${status} after text`);
        assert.deepStrictEqual(shown.numbers, all.slice(0, 12));
      }
    }),
  );
});

describe.concurrent("A stream with event ids is resumed on real sockets", () => {
  it.live("cut after each event and resumed by Last-Event-ID, every event comes exactly once", () =>
    Effect.forEach(
      all.slice(1),
      Effect.fnUntraced(function* (k) {
        const it = yield* played({ answers: [{ ...counted, ...cut(k) }, resume] }, events);
        assert.deepStrictEqual([it.numbers, it.end], [all, "completed"], `cut after ${k}`);
        assert.deepStrictEqual(it.rules, ["resume resume_cursor"]);
      }),
      { concurrency: 12 },
    ),
  );

  it.live("repeats are dropped, a gap and a refusal are decided again without the cursor", () =>
    Effect.gen(function* () {
      const again = yield* played({ answers: [{ ...counted, ...cut(4) }, { resume: { repeat: 2 } }] }, events);
      assert.deepStrictEqual([again.numbers, again.end], [all, "completed"]);
      for (const second of [{ resume: { skip: 1 } }, { status: 404 }]) {
        const it = yield* played({ answers: [{ ...counted, ...cut(4) }, second, counted] }, events);
        assert.deepStrictEqual(it.rules, ["resume resume_cursor", "replay only_reasoning_shown"]);
        assert.deepStrictEqual([it.numbers, it.end], [all, "completed"]);
      }
    }),
  );
});

describe.concurrent("A cursor that is none", () => {
  it.effect("is refused before anything is sent", () =>
    Effect.gen(function* () {
      const client = yield* ProviderClient.make();
      const request = { protocol: protocols["openai-responses"], url: "http://127.0.0.1:9/v1/responses" };
      for (const open of [ResumableStream.responses, ResumableStream.events]) {
        const stream = open(client, request, { request: "resume", cursor: "nonsense" });
        const error = yield* Effect.flip(Stream.runDrain(stream));
        assert.deepStrictEqual([error.reason, error.delivery], [Resume.unreadable, "not_sent"]);
      }
    }),
  );
});
