/**
 * The request that goes on behind text that was shown: what it says, what it ends with, what is left of its budget, and when it is
 * not built. In each of the protocols, and for every recorded stream cut anywhere behind some text.
 */
import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import * as Json from "../../../src/domain/Json.ts";
import type { PrefillForm } from "../../../src/domain/SeamWords.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import type { SeamPlan } from "../../../src/seam/TextSeam.ts";
import { bytesOf, recordings } from "../../Recordings.ts";
import { seeded } from "../../Seeded.ts";
import { byProtocol, conversation, samples, seamIds } from "../../samples/index.ts";
import { decode } from "../Decoded.ts";

const bodies = byProtocol(({ id, limit }) => ({ ...conversation(id, "Tell me."), ...limit(4_096) }));

/** What was received of a text, cut behind its last character. */
const received = (protocol: ProtocolId, text: string, before: ReadonlyArray<unknown> = []): unknown => {
  const json = protocol === "openai-responses" ? { "output_text 0": text } : { text };
  return {
    protocol,
    items: [...before, { type: "text", whole: false, attempt: 1, json }],
    choices: 1,
    overflow: false,
  };
};

const shown = "It rained all night. The river rose, and the old bri";
const anchor: SeamPlan = { proof: "anchor", at: shown.length, quote: "The river rose, and the old bri" };
const prefill = (form: PrefillForm, text = shown): SeamPlan => ({
  proof: "prefill",
  at: text.length,
  quote: text,
  form,
});

const input = (protocol: ProtocolId, seam: SeamPlan, text = shown, body = bodies[protocol]) => ({
  body,
  received: received(protocol, text),
  calls: [],
  results: [],
  seam,
});

const built = (protocol: ProtocolId, given: Continuation.ContinuationInput): Json.JsonRecord => {
  const result = Continuation.build(protocol, given);
  return Result.isSuccess(result) ? result.success : assert.fail(result.failure.message);
};

const refusedFor = (protocol: ProtocolId, given: Continuation.ContinuationInput): string => {
  const result = Continuation.build(protocol, given);
  return Result.isFailure(result) ? result.failure.message : assert.fail(JSON.stringify(result.success));
};

/** The messages of a body as role and text. */
const said = (body: Json.JsonRecord): ReadonlyArray<readonly [role: unknown, text: string]> =>
  Json.list(body.messages ?? body.input ?? body.contents).map((it) => {
    const { content, parts, role } = Json.record(it) ?? {};
    if (typeof content === "string") return [role, content];
    const texts = Json.list(content ?? parts).map((part) => Json.string(Json.record(part)?.text));
    return [role, texts.join("")];
  });

const budgetOf = (body: Json.JsonRecord): unknown =>
  body.max_tokens ?? body.max_output_tokens ?? Json.record(body.generationConfig)?.maxOutputTokens;

describe.each(seamIds.filter((id) => samples[id].wrapper === undefined))(
  "%s: a request that goes on behind shown text",
  (protocol) => {
    it("gives back the text once, and asks for the anchor in the user's words with the quote between marks", () => {
      const body = built(protocol, input(protocol, anchor));
      assert.deepStrictEqual(said(body).slice(1), [
        [samples[protocol].assistant, shown],
        [
          "user",
          "Your last message was cut off by a connection failure. It ended, between the marks, with: <cut>The river rose, and the old bri</cut>. Begin your next message with exactly these characters, without the marks, quotation or any word before them, also where a word or a line is cut, and go straight on to the end of the answer. Repeat nothing else and do not mention the interruption.",
        ],
      ]);
      assert.deepStrictEqual(samples[protocol].check(body), []);
    });

    it("uses other quotation marks if the quote contains the usual ones", () => {
      const text = "Write <cut>so</cut> and go on";
      const body = built(protocol, input(protocol, { proof: "anchor", at: text.length, quote: text }, text));
      assert.include(said(body).at(-1)?.[1], `<cut2>${text}</cut2>`);
    });

    it("ends with the assistant's own text where a prefill is declared, and adds no words", () => {
      const body = built(protocol, input(protocol, prefill("trailing")));
      assert.deepStrictEqual(said(body).slice(1), [[samples[protocol].assistant, shown]]);
    });

    it("keeps white space at the end of a prefill but for Anthropic, which refuses it", () => {
      const text = `${shown} \n`;
      const body = built(protocol, input(protocol, prefill("trailing", text), text));
      assert.strictEqual(said(body).at(-1)?.[1], protocol === "anthropic-messages" ? shown : text);
    });

    it("keeps white space at the end of the text in front of the user's words", () => {
      const text = `${shown} `;
      const body = built(protocol, input(protocol, { ...anchor, at: text.length }, text));
      assert.strictEqual(said(body).at(-2)?.[1], text);
    });

    it("does not send half a character", () => {
      const text = `${shown}\ud83d`;
      const body = built(protocol, input(protocol, { ...anchor, at: text.length }, text));
      assert.strictEqual(said(body).at(-2)?.[1], shown);
    });

    it("asks for what is left of the budget, with the anchor in it", () => {
      const body = built(protocol, input(protocol, anchor));
      assert.strictEqual(budgetOf(body), 4096 - 13 + 8);
      assert.strictEqual(budgetOf(built(protocol, input(protocol, prefill("trailing")))), 4096 - 13);
    });

    it("asks for no less than a floor, and never for more than was asked", () => {
      const long = `${"word ".repeat(4000)}end`;
      const seam: SeamPlan = { proof: "anchor", at: long.length, quote: "word word word end" };
      assert.strictEqual(budgetOf(built(protocol, input(protocol, seam, long))), 256);
      const small = JSON.parse(JSON.stringify(bodies[protocol]).replace("4096", "100"));
      assert.strictEqual(budgetOf(built(protocol, input(protocol, seam, long, small))), 100);
    });

    it("is not built for another text than the one that was kept", () => {
      const seam: SeamPlan = { ...anchor, quote: "The river fell" };
      assert.include(refusedFor(protocol, input(protocol, seam)), "does not end with the quote");
    });

    it("is built where a finish came with the last piece, which only a clean end would have made the marker", () => {
      const finished = { ...Json.record(received(protocol, shown)), whole: true };
      const body = built(protocol, { ...input(protocol, anchor), received: finished });
      assert.include(said(body).at(-1)?.[1], "<cut>");
    });

    it("is not built where a call stands beside the text", () => {
      const call = { type: "call", whole: true, attempt: 1, call: "0.0", json: { id: "c1", name: "f", input: "{}" } };
      for (const before of [call, { ...call, whole: false }]) {
        const given = { ...input(protocol, anchor), received: received(protocol, shown, [before]) };
        assert.include(refusedFor(protocol, given), "a call is open");
      }
    });

    it("is not built for a request that forbids it", () => {
      const body = {
        ...bodies[protocol],
        tool_choice: "required",
        toolConfig: { functionCallingConfig: { mode: "ANY" } },
      };
      assert.include(refusedFor(protocol, input(protocol, anchor, shown, body)), "forced_tool");
    });
  },
);

describe("A request that goes on behind shown text", () => {
  it("writes the prefill in the form that the provider declares", () => {
    const last = (form: PrefillForm) =>
      Json.record(Json.list(built("openai-chat", input("openai-chat", prefill(form))).messages).at(-1));
    assert.deepStrictEqual(last("prefix"), { role: "assistant", content: shown, prefix: true });
    assert.deepStrictEqual(last("partial"), { role: "assistant", content: shown, partial: true });
    assert.deepStrictEqual(last("trailing"), { role: "assistant", content: shown });
    const vllm = built("openai-chat", input("openai-chat", prefill("continue_final_message")));
    assert.deepStrictEqual(
      [vllm.continue_final_message, vllm.add_generation_prompt, Json.list(vllm.messages).at(-1)],
      [true, false, { role: "assistant", content: shown }],
    );
  });

  it("does not let a server go on with the user's words where the caller's own prefill was marked", () => {
    const body = {
      messages: [samples["openai-chat"].message("Tell me."), { role: "assistant", content: "Well, ", prefix: true }],
      continue_final_message: true,
      add_generation_prompt: false,
    };
    for (const seam of [anchor, undefined]) {
      const next = built("openai-chat", { ...input("openai-chat", anchor, shown, body), seam });
      assert.deepStrictEqual(said(next).at(-2), ["assistant", `Well, ${shown}`]);
      assert.doesNotHaveAnyKeys(next, ["continue_final_message", "add_generation_prompt"]);
      assert.notProperty(Json.list(next.messages).at(-2), "prefix");
    }
  });

  it("leaves the caller's own prefill as it is where nothing was kept", () => {
    const body = {
      messages: [samples["openai-chat"].message("Tell me."), { role: "assistant", content: "Well, " }],
      continue_final_message: true,
    };
    const nothing = { protocol: "openai-chat", items: [], choices: 1, overflow: false };
    const next = built("openai-chat", { body, received: nothing, calls: [], results: [] });
    assert.deepStrictEqual(next, body);
  });

  it("keeps the thinking budget below the whole one", () => {
    const body = {
      ...bodies["anthropic-messages"],
      max_tokens: 3000,
      thinking: { type: "enabled", budget_tokens: 2800 },
    };
    const long = `${"word ".repeat(4000)}end`;
    const seam: SeamPlan = { proof: "anchor", at: long.length, quote: "word end" };
    assert.strictEqual(built("anthropic-messages", input("anthropic-messages", seam, long, body)).max_tokens, 3000);
    const wide = { ...body, max_tokens: 6000 };
    assert.strictEqual(built("anthropic-messages", input("anthropic-messages", seam, long, wide)).max_tokens, 3056);
  });

  it("reads Gemini's budget in both spellings, and in Code Assist's request", () => {
    const snake = {
      contents: [{ role: "user", parts: [{ text: "Tell me." }] }],
      generation_config: { max_output_tokens: 4096, thinking_config: { thinking_budget: -1 } },
    };
    const next = built("google-gemini", input("google-gemini", anchor, shown, snake));
    assert.strictEqual(Json.record(next.generation_config)?.max_output_tokens, 4091);
    const wrapped = built("google-gemini", input("google-gemini", anchor, shown, { request: bodies["google-gemini"] }));
    assert.strictEqual(budgetOf(Json.record(wrapped.request) ?? {}), 4091);
  });

  it("demands no least number of tokens any more, and lowers both budgets of a chat request", () => {
    const body = {
      messages: [samples["openai-chat"].message("Tell me.")],
      max_completion_tokens: 2000,
      max_tokens: 1000,
      min_tokens: 900,
    };
    const next = built("openai-chat", input("openai-chat", anchor, shown, body));
    assert.deepStrictEqual([next.max_completion_tokens, next.max_tokens, next.min_tokens], [1995, 995, undefined]);
  });

  it("drops reasoning that was cut and keeps what was signed whole", () => {
    const thinking = (whole: boolean) => ({
      type: "reasoning",
      whole,
      attempt: 1,
      json: { type: "thinking", thinking: "hm", ...(whole ? { signature: "s" } : {}) },
    });
    const blocks = (whole: boolean) => {
      const given = {
        ...input("anthropic-messages", anchor),
        received: received("anthropic-messages", shown, [thinking(whole)]),
      };
      const [, answer] = Json.list(built("anthropic-messages", given).messages);
      return Json.list(Json.record(answer)?.content).map((block) => Json.record(block)?.type);
    };
    assert.deepStrictEqual(blocks(true), ["thinking", "text"]);
    assert.deepStrictEqual(blocks(false), ["text"]);
  });

  it("keeps a hosted call that has its result, and is not built where one has none", () => {
    const call = { id: "h1", type: "server_tool_use", name: "web_search", input: {} };
    const result = { type: "web_search_tool_result", tool_use_id: "h1", content: [] };
    const of = (type: string, whole: boolean, json: object) => ({ type, whole, attempt: 1, json });
    const given = (before: ReadonlyArray<unknown>) => ({
      ...input("anthropic-messages", anchor),
      received: received("anthropic-messages", shown, before),
    });
    const next = built("anthropic-messages", given([of("hosted", true, call), of("result", true, result)]));
    assert.include(JSON.stringify(next), "web_search_tool_result");
    assert.deepStrictEqual(samples["anthropic-messages"].check(next), []);
    assert.include(refusedFor("anthropic-messages", given([of("hosted", true, call)])), "a call is open");
  });
});

const squeezed = (text: string): string => text.replace(/\s+/g, "");

/** The end of a text, as an anchor would be: never blank, at most so many characters. */
const planOf = (text: string, dice: () => number): SeamPlan | undefined => {
  const end = text.replace(/[\s\ud800-\udbff]+$/, "");
  const quote = end.slice(Math.max(0, end.length - 1 - Math.floor(dice() * 120))).replace(/^[\udc00-\udfff]/, "");
  return quote.trim() === "" ? undefined : { proof: "anchor", at: text.length, quote };
};

describe("recorded streams, cut anywhere behind some text", () => {
  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const recording of recordings) {
    it(`${recording.file} goes on with the whole text once, the quote and a legal request`, () => {
      const { protocol } = recording;
      const { parts } = decode(protocols.get(protocol), [bytesOf(recording)]);
      const dice = seeded(parts.length);
      for (let round = 0; round < 40; round += 1) {
        const cut = parts.slice(0, Math.floor(dice() * (parts.length + 1)));
        const kept = Continuation.collect(protocol, cut);
        if (kept.whole || kept.choices > 1) continue;
        const text = cut.map(Continuation.textOf).join("");
        const seam = planOf(text, dice);
        if (seam === undefined) continue;
        const given = { body: bodies[protocol], received: kept, calls: [], results: [], seam };
        const result = Continuation.build(protocol, given);
        if (Result.isFailure(result)) {
          // Every other response has to go on.
          const others = kept.items.filter(({ type }) => type !== "note" && type !== "reasoning");
          const isText = others.every(({ type }) => type === "text") && !/refusal|untold/.test(JSON.stringify(others));
          assert.isFalse(isText, result.failure.message);
          continue;
        }
        const body = result.success;
        const messages = said(body);
        const answer = messages.filter(([role]) => role === samples[protocol].assistant).map(([, it]) => it);
        assert.strictEqual(
          squeezed(answer.join("")),
          squeezed(text.replace(/[\ud800-\udbff]$/, "")),
          `cut at ${cut.length}`,
        );
        assert.include(messages.at(-1)?.[1], `<cut>${seam.quote}</cut>`);
        assert.deepStrictEqual(samples[protocol].check(body), []);
        assert.isAtMost(Number(budgetOf(body)), 4096);
        assert.isTrue(JSON.stringify(body).isWellFormed());
      }
    });
  }
});
