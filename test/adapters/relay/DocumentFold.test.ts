/** A whole document proves what the same response would prove as a stream. */
import { assert, describe, it } from "@effect/vitest";
import { documentCharactersMax, observeDocument, observeStream } from "../../../src/adapters/relay/DocumentFold.ts";
import type { Observation } from "../../../src/domain/Observation.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { allIds, type Ended, framesOf, ids, type Said, samples } from "../../samples/index.ts";

const read = (id: ProtocolId, said: ReadonlyArray<Said>, ended: Ended = {}): Observation =>
  observeDocument(protocols.get(id), samples[id].document(said, ended), {});

const readStream = (id: ProtocolId, said: ReadonlyArray<Said>, ended: Ended = {}): Observation =>
  observeStream(protocols.get(id), [new TextEncoder().encode(framesOf(id, said, ended).join(""))], {});

const usage = [7, 5] as const;
const counted = { input_tokens: 7, output_tokens: 5 };

describe("A document", () => {
  for (const id of allIds) {
    const { finishes, has } = samples[id];

    it(`shows its text, its finish and its usage: ${id}`, () => {
      const seen = read(id, [{ text: "Hello" }], { usage });
      assert.deepInclude(seen, { progress: "output", shows: "text", characters: 5, terminal: true });
      assert.deepEqual(seen.usage, counted);
      assert.strictEqual(seen.finish, finishes.natural);
      assert.isUndefined(seen.failure);
    });

    if (ids.includes(id))
      it(`reports each finish as the stream does: ${id}`, () => {
        for (const finish of finishes.others) {
          const [one, other] = [read(id, [{ text: "a" }], { finish }), readStream(id, [{ text: "a" }], { finish })];
          assert.isDefined(one.finish);
          assert.strictEqual(one.finish, other.finish);
        }
      });

    if (has.calls !== "none")
      it(`has calls that are ready and were not run: ${id}`, () => {
        const seen = read(id, [{ text: "So: " }, { call: "pay", pieces: ['{"sum":', "1}"] }]);
        assert.isUndefined(seen.failure, JSON.stringify(seen.failure));
        assert.isTrue(seen.terminal);
        const last = seen.calls.at(-1);
        assert.deepInclude(last, { tool: "pay", executor: "runtime", phase: "ready" });
        assert.deepEqual(JSON.parse(last?.input ?? ""), { sum: 1 });
      });
  }

  it("with arguments that are no JSON has failed", () => {
    for (const id of ["openai-chat", "openai-responses", "cohere-chat"] as const) {
      const { failure, terminal } = read(id, [{ call: "pay", pieces: ['{"sum":'] }]);
      assert.strictEqual(failure?.kind, "invalid_tool_input", id);
      assert.isFalse(terminal);
    }
  });

  it("with a finish that says that the server aborted has failed", () => {
    assert.strictEqual(read("openai-chat", [{ text: "Hel" }], { finish: "error" }).failure?.kind, "server_error");
    assert.strictEqual(read("cohere-chat", [{ text: "Hel" }], { finish: "ERROR" }).failure?.kind, "server_error");
  });

  it("of a job that is still running is complete as a document, and is not called empty", () => {
    const seen = read("openai-responses", [], { finish: "queued" });
    assert.deepInclude(seen, { progress: "output", terminal: true, finish: "document" });
  });

  it("that is no object of its protocol is complete as a document", () => {
    for (const json of [[], "text", 3, null, {}])
      for (const id of allIds) {
        const seen = observeDocument(protocols.get(id), json, {});
        if (seen.failure === undefined) assert.isTrue(seen.terminal, `${id} ${JSON.stringify(json)}`);
        else assert.deepEqual(json, {}, `${id} ${JSON.stringify(json)}`);
      }
  });

  it("is read up to a size that costs a few milliseconds", () => {
    assert.isAtMost(documentCharactersMax, 1024 * 1024);
  });
});

describe("A stream in place of a document", () => {
  for (const id of ids) {
    it(`is complete with its marker: ${id}`, () => {
      const seen = readStream(id, [{ text: "Hello" }], { usage });
      assert.deepInclude(seen, { progress: "output", shows: "text", characters: 5, terminal: true });
      assert.deepEqual(seen.usage, counted);
    });

    it(`without its marker is cut: ${id}`, () => {
      const seen = readStream(id, [{ text: "Hello" }], { cut: true });
      assert.strictEqual(seen.failure?.kind, "truncated");
      assert.isFalse(seen.terminal);
    });
  }

  it("that is a document after all is complete", () => {
    const body = new TextEncoder().encode(JSON.stringify(samples["openai-chat"].document([{ text: "Hi" }])));
    assert.isTrue(observeStream(protocols.get("openai-chat"), [body], {}).terminal);
  });
});
