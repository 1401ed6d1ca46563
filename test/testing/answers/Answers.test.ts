import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Observation } from "../../../src/domain/Observation.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { Answers, FaultScript } from "../../../src/testing/index.ts";
import { protocols, serialsOf } from "../../client/Protocols.ts";
import { hasLines, samples } from "../../samples/index.ts";

const ids = Object.keys(protocols) as ReadonlyArray<ProtocolId>; // the record's keys are the ids

/** Decodes what a writer wrote. */
const decode = (id: ProtocolId, options: Answers.AnswerOptions = {}) => {
  const events = Answers.render(id, 7, options);
  const decoder = Decoder.make(protocols[id]);
  const parts = [...decoder.push(Buffer.concat(events.map((event) => Buffer.from(event.frame))))];
  const last = decoder.end();
  parts.push(...last.parts);
  return { events, parts, end: last.end, calls: parts.flatMap((part) => part.observation.calls) };
};

describe("Answers", () => {
  for (const id of ids) {
    describe(id, () => {
      it.skipIf(!samples[id].has.thoughts)("gives every delta a serial of its own, in order, and is complete", () => {
        const { end, events, parts } = decode(id, { content: [{ reasoning: 3 }, { text: 4 }, { text: 2 }] });
        const serials = events.flatMap((event) => event.serials);
        assert.deepStrictEqual(
          serials,
          Array.from({ length: 9 }, (_, n) => `r7.${n}·`),
        );
        assert.deepStrictEqual(serialsOf(parts), serials);
        assert.deepStrictEqual(end, { complete: true });
        assert.strictEqual(
          parts.filter((part) => part.observation.shows === "reasoning" && part.observation.characters > 0).length,
          3,
        );
        assert.isTrue(parts.some((part) => part.observation.usage !== undefined));
      });

      it.skipIf(samples[id].has.calls === "none")("writes calls whose input carries its serial at both ends", () => {
        const { calls, end, events } = decode(id, { content: [{ tool: "a", input: { x: "ü" } }, { tool: "b" }] });
        const ready = calls.filter((call) => call.phase === "ready");
        assert.deepStrictEqual(
          ready.map((call) => JSON.parse(call.input ?? "")),
          [
            { serial: "r7.t1", x: "ü", end: "r7.t1·" },
            { serial: "r7.t2", end: "r7.t2·" },
          ],
        );
        assert.deepStrictEqual(
          ready.map((call) => call.tool),
          ["a", "b"],
        );
        assert.deepStrictEqual(
          events.flatMap((event) => event.call ?? []).map((call) => call.serial),
          ["r7.t1", "r7.t2"],
        );
        assert.deepStrictEqual(end, { complete: true });
      });

      it.skipIf(samples[id].has.calls === "none")(
        "writes an unmarked call's input as it is, for a client that refuses fields that its tool does not have",
        () => {
          const { calls } = decode(id, { content: [{ tool: "a", input: { x: 1 }, unmarked: true }] });
          const inputs = calls.filter((call) => call.phase === "ready").map((call) => JSON.parse(call.input ?? ""));
          assert.deepStrictEqual(inputs, [{ x: 1 }]);
        },
      );

      it("never makes a ready call of cut arguments and counts none as sent", () => {
        const { calls, events } = decode(id, { content: [{ tool: "a", input: { x: 1 }, cut: true }] });
        assert.deepStrictEqual(
          calls.filter((call) => call.phase === "ready"),
          [],
        );
        assert.deepStrictEqual(
          events.flatMap((event) => event.call ?? []),
          [],
        );
      });

      it.skipIf(!samples[id].has.hosted)(
        "writes a hosted call that the decoder sees as the provider's, settled",
        () => {
          const { calls, end } = decode(id, {
            content: [{ provider_tool: "web_search", input: { q: "x" } }, { text: 1 }],
          });
          assert.deepStrictEqual(end, { complete: true });
          assert.isTrue(calls.length > 0 && calls.every((call) => call.executor === "provider"));
          assert.isTrue(calls.some((call) => call.phase === "settled"));
        },
      );

      it("shows a refusal as text", () => {
        const { parts } = decode(id, { content: [{ refusal: 2 }] });
        assert.strictEqual(
          parts.filter((part) => part.observation.shows === "text" && part.observation.characters > 0).length,
          2,
        );
      });

      it("writes pings that prove nothing", () => {
        const { end, parts } = decode(id, { content: [{ text: 1 }, { ping: 3 }] });
        // A protocol without comments has events without content in their place.
        const proves = ({ keep_alive, quiet }: Observation) => !(hasLines(id) ? quiet : keep_alive);
        assert.isAtLeast(parts.filter(({ observation }) => !proves(observation)).length, 3);
        assert.deepStrictEqual(end, { complete: true });
      });

      it("is not complete without its finish", () => {
        assert.deepInclude(decode(id, { finish: "none" }).end, { complete: false, failure: { kind: "truncated" } });
      });

      it("is complete when cut by length", () => {
        assert.deepStrictEqual(decode(id, { finish: "length" }).end, { complete: true });
      });

      for (const error of FaultScript.ProviderErrorName.literals) {
        it(`ends with the error ${error} and nothing after it`, () => {
          const { end, events } = decode(id, { content: [{ text: 1 }, { error }, { text: 1 }] });
          assert.strictEqual(events.at(-1)?.role, "error");
          assert.isFalse(end.complete);
          const kind = end.complete ? undefined : end.failure.kind;
          const expected: Record<FaultScript.ProviderErrorName, ReadonlyArray<string>> = {
            rate_limited: ["rate_limited"],
            overloaded: ["overloaded", "server_error"],
            server_error: ["server_error"],
            context_overflow: ["rejected"],
            invalid_request: ["rejected"],
          };
          // Ollama's errors have no codes, so a message that no table knows is a failure of the server.
          assert.include([...expected[error], ...(id === "ollama" ? ["server_error"] : [])], kind);
        });
      }

      it("is never complete when it is cut at any byte before its terminal event", () => {
        const events = Answers.render(id, 1, { content: [{ reasoning: 1 }, { text: 2 }, { tool: "a" }] });
        const terminal = events.findIndex((event) => event.role === "terminal");
        const bytes = Buffer.from(
          events
            .slice(0, terminal)
            .map((event) => event.frame)
            .join(""),
        );
        for (let cut = 0; cut <= bytes.length; cut++) {
          const decoder = Decoder.make(protocols[id]);
          decoder.push(bytes.subarray(0, cut));
          assert.isFalse(decoder.end().end.complete, `cut at ${cut}`);
        }
      });
    });
  }

  it.effect("renders every content that the schema lets through", () =>
    Effect.gen(function* () {
      const script = yield* FaultScript.decode({
        answers: [{ content: [{ text: 0 }, { reasoning: 0 }, { ping: 0 }] }],
      });
      for (const id of ids) assert.isNotEmpty(Answers.render(id, 1, { content: script.answers?.[0]?.content ?? [] }));
    }),
  );

  it("a Responses answer's terminal event has the whole output, as the API's has: clients read it there", () => {
    const content = [{ text: 2 }, { tool: "a", input: {} }];
    const last = Answers.render("openai-responses", 7, { content }).at(-1);
    const data = /^data: (.*)$/m.exec(String(last?.frame))?.[1] ?? "{}";
    const { output } = JSON.parse(data).response;
    assert.deepStrictEqual(
      output.map(({ type }: { readonly type: string }) => type),
      ["message", "function_call"],
    );
    assert.strictEqual(output[0].content[0].text, "r7.0·r7.1·");
  });
});
