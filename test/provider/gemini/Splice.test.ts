/**
 * A continuation of a response of Gemini is written field by field as one response with what a client has read.
 */
import { assert, describe, it } from "@effect/vitest";
import type { JsonRecord } from "../../../src/domain/Json.ts";
import { protocols } from "../../../src/provider/Protocols.ts";
import { decode, encode } from "../Decoded.ts";
import { played as playedIn, shownOf } from "../seam/Spliced.ts";

const protocol = protocols.get("google-gemini");
const played = (play: Parameters<typeof playedIn>[1]) => playedIn(protocol, play);

const names = { responseId: "one", modelVersion: "m-1", createTime: "t-1" };
const others = { responseId: "two", modelVersion: "m-2", createTime: "t-2" };
const candidate = (parts: ReadonlyArray<unknown>, more: JsonRecord = {}): JsonRecord => ({
  content: { parts, role: "model" },
  index: 0,
  ...more,
});
const first = (parts: ReadonlyArray<unknown>, more: JsonRecord = {}, top: JsonRecord = {}): JsonRecord => ({
  candidates: [candidate(parts, more)],
  ...names,
  ...top,
});
const second = (parts: ReadonlyArray<unknown>, more: JsonRecord = {}, top: JsonRecord = {}): JsonRecord => ({
  candidates: [candidate(parts, more)],
  ...others,
  ...top,
});
const stop = { finishReason: "STOP" };
const said = [first([{ text: "Grüße, Wel" }])];
const call = { functionCall: { name: "look", args: {} }, thoughtSignature: "c2ln" };
const usage = (promptTokenCount: number, candidatesTokenCount: number, more: JsonRecord = {}) => ({
  promptTokenCount,
  candidatesTokenCount,
  totalTokenCount: promptTokenCount + candidatesTokenCount,
  ...more,
});

/** What has left of some events. */
const shown = (...events: ReadonlyArray<unknown>) =>
  shownOf(
    protocol,
    decode(protocol, [encode(events.map((data) => `data: ${JSON.stringify(data)}\n\n`).join(""))]).parts,
  ).response();

describe("a continuation of a response of Gemini", () => {
  it("has the names of the response that was read, in every chunk", () => {
    const { events } = played({
      first: said,
      told: [second([{ text: "Grüße, Welt" }]), second([{ text: "!" }], stop)],
    });
    assert.deepStrictEqual(events, [first([{ text: "t" }]), first([{ text: "!" }]), first([{ text: "" }], stop)]);
  });

  it("has no name that the response did not have, and no index", () => {
    const { events } = played({
      first: [{ candidates: [{ content: { parts: [{ text: "Grüße, Wel" }], role: "model" } }] }],
      told: [second([{ text: "Grüße, Welt" }])],
    });
    assert.deepStrictEqual(events, [{ candidates: [{ content: { parts: [{ text: "t" }], role: "model" } }] }]);
  });

  it("drops its thoughts in front of the seam, and keeps them behind", () => {
    const thought = { text: "So", thought: true };
    const { events } = played({
      first: said,
      told: [
        second([thought]),
        second([thought, { text: "Grüße, Welt" }, thought]),
        second([thought]),
        second([{ text: "" }], stop),
      ],
    });
    assert.deepStrictEqual(events, [first([{ text: "t" }, thought]), first([thought]), first([{ text: "" }], stop)]);
  });

  it("writes nothing in front of the seam, and no chunk that has nothing left", () => {
    const { characters, events } = played({
      first: said,
      told: [
        second([{ text: "" }]),
        second([{ text: "Grüße," }]),
        second([{ text: " Welt" }, { text: "\n" }]),
        second([{ text: "\n" }]),
        second([{ text: "!" }]),
        second([{ text: "" }], stop),
      ],
    });
    assert.deepStrictEqual(events, [first([{ text: "t" }]), first([{ text: "\n\n!" }]), first([{ text: "" }], stop)]);
    assert.strictEqual(characters, "t\n\n!".length);
  });

  it("releases held text in front of a call, and with the finish", () => {
    const { events } = played({
      first: said,
      told: [second([{ text: "Grüße, Welt\n" }]), second([call]), second([], stop)],
    });
    assert.deepStrictEqual(events, [first([{ text: "t" }]), first([{ text: "\n" }, call]), first([], stop)]);
    const ending = played({ first: said, told: [second([{ text: "Grüße, Welt\n" }]), second([{ text: "\n" }], stop)] });
    assert.deepStrictEqual(ending.events, [first([{ text: "t" }]), first([{ text: "\n\n" }], stop)]);
  });

  it("says text, calls and text of one chunk in their order", () => {
    const code = { executableCode: { language: "PYTHON", code: "1" } };
    const result = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } };
    const parts = [{ text: "Grüße, Welt " }, code, result, { text: "Eins " }, call];
    const { events } = played({ first: said, told: [second(parts), second([{ text: "" }], stop)] });
    const written = [{ text: "t" }, { text: " " }, code, result, { text: "Eins" }, { text: " " }, call];
    assert.deepStrictEqual(events[0], first(written));
  });

  it("may end, or call, exactly where the shown text ends", () => {
    const told = second([{ text: "Grüße, Wel" }]);
    assert.deepStrictEqual(played({ first: said, told: [told, second([{ text: "" }], stop)] }).events, [
      first([{ text: "" }], stop),
    ]);
    assert.deepStrictEqual(played({ first: said, told: [told, second([call]), second([{ text: "" }], stop)] }).events, [
      first([call]),
      first([{ text: "" }], stop),
    ]);
  });

  it("is not joined where something that is no text stands in front of the seam", () => {
    const before: ReadonlyArray<JsonRecord> = [
      call,
      { executableCode: { code: "1" } },
      { codeExecutionResult: { output: "1" } },
      { toolCall: { toolType: "GOOGLE_SEARCH_WEB", id: "t" } },
      { toolResponse: { toolType: "GOOGLE_SEARCH_WEB", id: "t" } },
      { inlineData: { mimeType: "image/png", data: "iVBORw0=" } },
      { fileData: { fileUri: "x" } },
      { somethingNew: { a: 1 } },
    ];
    for (const part of before)
      for (const told of [[second([part])], [second([{ text: "Grüße" }, part])]]) {
        const { events, fault } = played({ first: said, told });
        assert.deepStrictEqual([events, fault], [[], "not_text"], JSON.stringify(part));
      }
    const blocked = played({ first: said, told: [{ promptFeedback: { blockReason: "SAFETY" }, ...others }] });
    assert.strictEqual(blocked.fault, "not_text");
  });

  it("is not joined where it has another candidate", () => {
    const other = { candidates: [{ ...candidate([{ text: "Grüße, Welt" }]), index: 1 }], ...others };
    assert.strictEqual(played({ first: said, told: [other] }).fault, "unwritable");
  });

  it("takes off the finishes that content followed, and lets what comes behind the last one wait", () => {
    const metadata = { groundingMetadata: { webSearchQueries: ["x"] } };
    const { events } = played({
      first: [first([{ text: "Grüße, Wel" }], stop)],
      told: [
        second([{ text: "Grüße," }], stop),
        second([{ text: " Welt\n" }], stop),
        second([{ text: "!" }], stop),
        { candidates: [{ content: {}, index: 0, ...metadata }], ...others },
        { usageMetadata: usage(5, 6), ...others },
        "[DONE]",
      ],
    });
    assert.deepStrictEqual(events, [
      first([{ text: "t" }]),
      first([{ text: "\n!" }]),
      first([{ text: "" }], stop),
      { candidates: [{ content: {}, index: 0, ...metadata }], ...names },
      { usageMetadata: usage(5, 3 + 6 - 3), ...names },
      "[DONE]",
    ]);
  });

  it("keeps the signatures of texts and calls", () => {
    const signed = { text: "Grüße, Welt", thoughtSignature: "c2ln" };
    const empty = { text: "", thoughtSignature: "c2ln" };
    assert.deepStrictEqual(played({ first: said, told: [second([signed]), second([empty], stop)] }).events, [
      first([{ text: "t", thoughtSignature: "c2ln" }]),
      first([empty], stop),
    ]);
    // The anchor alone proves nothing yet, and the end does.
    assert.deepStrictEqual(
      played({ first: said, told: [second([{ text: "Grüße, Wel" }]), second([empty], stop)] }).events,
      [first([empty], stop)],
    );
  });

  it("moves places in bytes to where their text stands", () => {
    const support = (startIndex: number | undefined, endIndex: number, text: string) => ({
      segment: { ...(startIndex === undefined ? {} : { startIndex }), endIndex, text },
      groundingChunkIndices: [0],
    });
    // "Ä. " has four bytes, and "Grüße, Wel" twelve.
    const { events } = played({
      first: [first([{ text: "Ä. " }]), ...said],
      anchor: "Grüße, Wel",
      told: [
        second([{ text: "Grüße, Welt! Ja." }]),
        second([{ text: "" }], {
          ...stop,
          groundingMetadata: {
            groundingChunks: [],
            groundingSupports: [
              support(undefined, 7, "Grüße"),
              support(undefined, 7, "Gruss!!"),
              support(undefined, 14, "Grüße, Welt!"),
              support(15, 18, "Ja."),
            ],
          },
          citationMetadata: {
            citationSources: [
              { endIndex: 7, uri: "u" },
              { startIndex: 15, endIndex: 18, uri: "u" },
            ],
          },
        }),
      ],
    });
    assert.deepStrictEqual(
      events[1],
      first([{ text: "" }], {
        ...stop,
        groundingMetadata: {
          groundingChunks: [],
          groundingSupports: [support(4, 11, "Grüße"), support(4, 18, "Grüße, Welt!"), support(19, 22, "Ja.")],
        },
        citationMetadata: { citationSources: [{ startIndex: 19, endIndex: 22, uri: "u" }] },
      }),
    );
  });

  it("says no log probabilities, and no count of its own", () => {
    const more = { ...stop, avgLogprobs: -1, logprobsResult: { topCandidates: [] }, tokenCount: 3, safetyRatings: [] };
    const { events } = played({ first: said, told: [second([{ text: "Grüße, Welt" }]), second([{ text: "" }], more)] });
    assert.deepStrictEqual(events[1], first([{ text: "" }], { ...stop, safetyRatings: [] }));
  });

  it("stays in the wrapper of Code Assist", () => {
    const { events } = played({
      first: said.map((response) => ({ response, traceId: "a" })),
      told: [
        { response: second([{ text: "Grüße, Welt\n" }]), traceId: "b" },
        { response: second([{ text: "" }], stop), traceId: "b" },
      ],
    });
    assert.deepStrictEqual(events, [
      { response: first([{ text: "t" }]), traceId: "b" },
      { response: first([{ text: "" }, { text: "\n" }], stop), traceId: "b" },
    ]);
  });

  it("ends with a call that cannot be read as the provider said it", () => {
    const broken = { finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "print(" };
    const { events } = played({
      first: said,
      told: [second([{ text: "Grüße, Welt\n" }]), { candidates: [{ ...broken, index: 0 }], ...others }],
    });
    assert.deepStrictEqual(events, [
      first([{ text: "t" }]),
      { candidates: [{ content: { parts: [{ text: "\n" }], role: "model" }, ...broken, index: 0 }], ...names },
    ]);
  });
});

describe("token counts of a continuation of Gemini", () => {
  it("are those of one response, with thoughts and details", () => {
    const told = {
      usageMetadata: usage(10, 20, {
        totalTokenCount: 41,
        thoughtsTokenCount: 11,
        promptTokensDetails: [{ modality: "TEXT", tokenCount: 10 }],
      }),
    };
    const counts = {
      usageMetadata: usage(50, 7, {
        totalTokenCount: 59,
        thoughtsTokenCount: 2,
        cachedContentTokenCount: 30,
        promptTokensDetails: [{ modality: "TEXT", tokenCount: 50 }],
        candidatesTokensDetails: [{ modality: "TEXT", tokenCount: 7 }],
      }),
    };
    const { events } = played({
      first: [first([{ text: "Grüße, Wel" }], {}, told)],
      told: [second([{ text: "Grüße, Welt" }]), second([{ text: "" }], stop, counts)],
    });
    assert.deepStrictEqual(
      events[1],
      first([{ text: "" }], stop, {
        usageMetadata: usage(10, 24, {
          totalTokenCount: 10 + 24 + 13,
          thoughtsTokenCount: 13,
          promptTokensDetails: [{ modality: "TEXT", tokenCount: 10 }],
          candidatesTokensDetails: [{ modality: "TEXT", tokenCount: 24 }],
        }),
      }),
    );
  });

  it("are estimated where the first told none of its output", () => {
    const { events } = played({
      first: [
        first([{ text: "x".repeat(8), thought: true }]),
        first([{ text: "Grüße, Wel" }], {}, { usageMetadata: { promptTokenCount: 8, totalTokenCount: 8 } }),
      ],
      told: [second([{ text: "Grüße, Welt" }]), second([{ text: "" }], stop, { usageMetadata: usage(50, 7) })],
    });
    assert.deepStrictEqual(events[1], first([{ text: "" }], stop, { usageMetadata: usage(8, 5 + 7 - 3) }));
  });
});

describe("what has left of a response of Gemini", () => {
  const code = { executableCode: { language: "PYTHON", code: "1" } };
  const result = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } };

  it("is its text, and no thought ends it", () => {
    const all = shown(
      ...said,
      first([{ text: "Hm", thought: true }]),
      first([{ text: "" }]),
      first([{ text: "t" }, { text: "!" }]),
    );
    assert.deepStrictEqual(all, { run: "Grüße, Welt!", characters: 12, refusal: undefined });
  });

  it("begins anew behind a tool of Google's, once that has its result", () => {
    assert.strictEqual(shown(...said, first([code])).refusal, "not_text_last");
    assert.strictEqual(shown(...said, first([code]), first([{ text: "So" }])).refusal, "not_text_last");
    assert.strictEqual(shown(...said, first([code, result])).refusal, "not_text_last");
    assert.deepStrictEqual(shown(...said, first([code]), first([result, { text: "So" }])), {
      run: "So",
      characters: 12,
      refusal: undefined,
    });
  });

  it("says why it cannot go on", () => {
    assert.strictEqual(shown(...said, first([call]), first([{ text: "So" }])).refusal, "not_text_last");
    assert.strictEqual(
      shown(...said, first([{ inlineData: { data: "x" } }]), first([{ text: "So" }])).refusal,
      "not_text_last",
    );
    const other = { candidates: [{ ...candidate([{ text: "Hi" }]), index: 1 }] };
    assert.strictEqual(shown(...said, other).refusal, "several_choices");
    assert.strictEqual(shown(...said, first([{ text: "x".repeat(64 * 1024) }])).refusal, "too_long");
  });
});
