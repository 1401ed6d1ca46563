/**
 * Plays how the field's servers end their responses. Each row names the reports that it stands for.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import { layer, reset } from "../adapters/relay/RelayCases.ts";
import { type Ended, type Got, good, played, protocols, type Said, written } from "./Wires.ts";

const end = "end" as const;

interface Empty {
  readonly name: string;
  readonly reports: string;
  readonly said: ReadonlyArray<Said>;
  readonly ended?: Ended;
}

/** Turns with nothing in them. */
const empties: ReadonlyArray<Empty> = [
  {
    name: "thoughts alone",
    reports: "goose #11975, oh-my-pi #8176, cline #13165, pi #6963",
    said: [{ thought: "Let me see." }],
    ended: { tokens: 60 },
  },
  { name: "white space", reports: "hermes #58148", said: [{ text: " \n\n" }], ended: { tokens: 20 } },
  {
    name: "thoughts and white space",
    reports: "litellm #24462",
    said: [{ thought: "Hm." }, { text: "\n" }],
    ended: { tokens: 60 },
  },
  { name: "three tokens and no word", reports: "hermes #58148, litellm #24462", said: [], ended: { tokens: 3 } },
];

describe("Empty turns of the field", () => {
  for (const { ended, name, reports, said } of empties)
    for (const protocol of protocols) {
      const empty = written(protocol, said, ended);

      it.effect(`${protocol}: ${name}: asked for once more where nothing was shown (${reports})`, () =>
        Effect.gen(function* () {
          const got = yield* played(
            protocol,
            [
              [empty, end],
              [good(protocol), end],
            ],
            { reveal: "on_complete" },
          );
          assert.deepStrictEqual(got, { requests: 2, text: good(protocol), end: "end" });
        }).pipe(Effect.scoped, Effect.provide(layer)),
      );

      it.effect(`${protocol}: ${name}: handed on where the second is empty too`, () =>
        Effect.gen(function* () {
          const got = yield* played(protocol, [[empty, end]], { reveal: "on_complete" });
          assert.deepStrictEqual(got, { requests: 2, text: empty, end: "end" });
        }).pipe(Effect.scoped, Effect.provide(layer)),
      );

      if (said.length > 0)
        it.effect(`${protocol}: ${name}: not asked for again once its client has seen it`, () =>
          Effect.gen(function* () {
            const got = yield* played(protocol, [
              [empty, end],
              [good(protocol), end],
            ]);
            assert.deepStrictEqual(got, { requests: 1, text: empty, end: "end" });
          }).pipe(Effect.scoped, Effect.provide(layer)),
        );
    }

  for (const protocol of protocols)
    it.effect(`${protocol}: an answer that begins with white space and thoughts is whole`, () =>
      Effect.gen(function* () {
        const whole = written(protocol, [{ thought: "Hm." }, { text: "\n" }, { text: "Yes." }], { tokens: 60 });
        const got = yield* played(protocol, [[whole, end]], { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 1, text: whole, end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );
});

describe("Breaks of the field that repeat themselves", () => {
  const half = (protocol: ProtocolId, words: string) => [written(protocol, [{ text: words }], { cut: true }), end];

  for (const protocol of protocols) {
    it.effect(`${protocol}: two partial responses with the same words end the retries (agenc-core #1714)`, () =>
      Effect.gen(function* () {
        const got = yield* played(protocol, [half(protocol, "Once upon")], { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 2, text: "", end: "budget_exhausted" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );

    it.effect(`${protocol}: two partial responses with other words do not`, () =>
      Effect.gen(function* () {
        const attempts = [
          half(protocol, "Once upon"),
          half(protocol, "Once a"),
          half(protocol, "On"),
          [good(protocol), end],
        ];
        const got = yield* played(protocol, attempts, { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 4, text: good(protocol), end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );

    it.effect(`${protocol}: the same words before an end and before a reset do not`, () =>
      Effect.gen(function* () {
        const [words = ""] = half(protocol, "Once upon");
        const attempts = [
          [words, end],
          [words, reset()],
          [good(protocol), end],
        ];
        const got = yield* played(protocol, attempts, { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 3, text: good(protocol), end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );

    it.effect(`${protocol}: two partial responses with the same first word do not`, () =>
      Effect.gen(function* () {
        const attempts = [half(protocol, "I"), half(protocol, "I"), [good(protocol), end]];
        const got = yield* played(protocol, attempts, { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 3, text: good(protocol), end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );

    it.effect(`${protocol}: two responses that broke before their first word do not`, () =>
      Effect.gen(function* () {
        const none = [written(protocol, [], { cut: true }), end];
        const got = yield* played(protocol, [none, none, none, [good(protocol), end]], { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 4, text: good(protocol), end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
    );
  }
});

describe("Ends of the field that lack their last event, or their connection's end", () => {
  const whole = (protocol: ProtocolId): string =>
    written(protocol, [{ text: "GOOD" }], { lacksLast: true, tokens: 40 });
  const ping = 'event: ping\ndata: {"type":"ping"}\n\n';

  it.effect("anthropic-messages: a stop_reason and a clean end is asked for again unseen (better-ccflare #307)", () =>
    Effect.gen(function* () {
      const it = "anthropic-messages";
      const got = yield* played(
        it,
        [
          [whole(it), end],
          [good(it), end],
        ],
        { reveal: "on_complete" },
      );
      assert.deepStrictEqual(got, { requests: 2, text: good(it), end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect(
    "anthropic-messages: a stop_reason with pings behind it is asked for again unseen (better-ccflare #307)",
    () =>
      Effect.gen(function* () {
        const it = "anthropic-messages";
        const pings = Array.from({ length: 20 }).flatMap(() => [1000, ping]);
        const got = yield* played(
          it,
          [
            [whole(it), ...pings, "silence"],
            [good(it), end],
          ],
          { reveal: "on_complete" },
        );
        assert.deepStrictEqual(got, { requests: 2, text: good(it), end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect(
    "anthropic-messages: a server that never sends message_stop is paid twice, and its message is handed on",
    () =>
      Effect.gen(function* () {
        const it = "anthropic-messages";
        const got = yield* played(it, [[whole(it), end]], { reveal: "on_complete" });
        assert.deepStrictEqual(got, { requests: 2, text: whole(it), end: "end" });
      }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("anthropic-messages: a stop_reason and a clean end behind shown text is whole", () =>
    Effect.gen(function* () {
      const it = "anthropic-messages";
      assert.deepStrictEqual(yield* played(it, [[whole(it), end]]), { requests: 1, text: whole(it), end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("openai-chat: a finish without [DONE] is whole at a clean end", () =>
    Effect.gen(function* () {
      const it = "openai-chat";
      const got = yield* played(it, [[whole(it), end]], { reveal: "on_complete" });
      assert.deepStrictEqual(got, { requests: 1, text: whole(it), end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  for (const protocol of protocols)
    for (const reveal of ["on_complete", "live"] as const)
      it.effect(
        `${protocol}, ${reveal}: a whole response on a socket that stays open ends within 15 s, paid once (sub2api #6473)`,
        () =>
          Effect.gen(function* () {
            const got = yield* played(protocol, [[good(protocol), "silence"]], { reveal, seconds: 15 });
            assert.deepStrictEqual(got, { requests: 1, text: good(protocol), end: "end" });
          }).pipe(Effect.scoped, Effect.provide(layer)),
      );

  const call = `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [{ functionCall: { name: "run", args: {} } }] }, finishReason: "STOP" }] })}\n\n`;

  it.effect("google-gemini: a call with its STOP on an open socket leaves after the linger (agentscope #2073)", () =>
    Effect.gen(function* () {
      const got = yield* played("google-gemini", [[call, "silence"]], { seconds: 15 });
      assert.deepStrictEqual(got, { requests: 1, text: call, end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("google-gemini: a server with a STOP in every chunk is not taken for over while it pauses", () =>
    Effect.gen(function* () {
      const stop = (text: string) =>
        `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [{ text }] }, finishReason: "STOP" }] })}\n\n`;
      const whole = { requests: 1, text: stop("One, ") + stop("two, ") + stop("three."), end: "end" };
      for (const stream of [
        [stop("One, "), stop("two, "), 60_000, stop("three."), end],
        [stop("One, "), 60_000, stop("two, "), stop("three."), end],
      ])
        assert.deepStrictEqual(yield* played("google-gemini", [stream], { reveal: "on_complete", seconds: 90 }), whole);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("google-gemini: a STOP that comes after a long pause still waits for the bytes behind it", () =>
    Effect.gen(function* () {
      const [text, stop] = written("google-gemini", [{ text: "GOOD" }], { tokens: 40 }).split(/(?<=\n\n)/);
      const usage = 'data: {"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":40}}\n\n';
      const stream = [`${text}`, 40_000, `${stop}`, 5000, usage, end];
      const got: Got = yield* played("google-gemini", [stream], { reveal: "on_complete", seconds: 60 });
      assert.deepStrictEqual(got, { requests: 1, text: `${text}${stop}${usage}`, end: "end" });
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});
