import { zstdCompressSync } from "node:zlib";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { AnswerMarks, answerMarksMax } from "../../../src/gateway/routes/AnswerMarks.ts";
import { RouteMemory } from "../../../src/gateway/routes/RouteMemory.ts";
import { framesOf, textAnswer } from "../../samples/index.ts";
import { paths, send } from "../GatewayCases.ts";
import {
  type Answering,
  ask,
  dying,
  failing,
  freeBody,
  paired,
  recording,
  routeIn,
  streaming,
  token,
} from "./RouteCases.ts";

/** An answer of Anthropic, with signed thinking if there is a signature. */
const thought = (text: string, signature?: string): string =>
  framesOf("anthropic-messages", [...(signature === undefined ? [] : [{ thought: "hm", signature }]), { text }]).join(
    "",
  );

const signature = "EqQBCkYIARgCIkDsigned-by-the-second";

/** A request whose history has a thought of the second provider's. */
const carrying = (signed: string) => ({
  body: {
    ...freeBody("anthropic-messages"),
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: signed }] },
      { role: "user", content: "and?" },
    ],
  },
});

/** A first server that fails once, so that one run moves, and is well from then on. */
const failingOnce = (answer: string): Answering => {
  let failed = false;
  return (response, asked) => {
    (failed ? streaming(answer) : failing(404))(response, asked);
    failed = true;
  };
};

describe("a conversation stays where its history comes from", () => {
  it.live("signed thinking of an answer that came by another route brings the next request there, and keeps it", () =>
    Effect.gen(function* () {
      const one = yield* recording(failingOnce(thought("one")));
      const other = yield* recording(streaming(thought("two", signature)));
      const { runs, url } = yield* paired(one.url, other.url);
      assert.strictEqual(routeIn(yield* ask(url, "anthropic-messages")), "second-anthropic");
      const next = yield* ask(url, "anthropic-messages", carrying(signature));
      assert.strictEqual(next.status, 200);
      assert.strictEqual(routeIn(next), "second-anthropic");
      assert.lengthOf(one.asked, 1);
      // It stays there also where that route fails: no other provider can read its history.
      other.answers = failing(404);
      const failed = yield* ask(url, "anthropic-messages", carrying(signature));
      assert.strictEqual(failed.status, 404);
      assert.strictEqual(routeIn(failed), "second-anthropic");
      assert.lengthOf(one.asked, 1);
      assert.lengthOf(yield* runs, 3);
      // A conversation that nothing binds, and one that was signed elsewhere, go to the first as ever.
      assert.strictEqual(routeIn(yield* ask(url, "anthropic-messages")), "anthropic");
      assert.strictEqual(routeIn(yield* ask(url, "anthropic-messages", carrying("signed-elsewhere"))), "anthropic");
    }),
  );

  it.live("and moves only within the state of the route that it came by", () =>
    Effect.gen(function* () {
      const state = { state: "team" };
      const one = yield* recording(failingOnce(thought("one")));
      const other = yield* recording(streaming(thought("two", signature)));
      const { url } = yield* paired(one.url, other.url, { first: state, second: state });
      assert.strictEqual(routeIn(yield* ask(url, "anthropic-messages")), "second-anthropic");
      other.answers = dying;
      const moved = yield* ask(url, "anthropic-messages", carrying(signature));
      assert.strictEqual(moved.status, 200);
      assert.strictEqual(routeIn(moved), "anthropic");
      assert.isAbove(other.asked.length, 1);
    }),
  );

  it.live("for each tenant by itself", () =>
    Effect.gen(function* () {
      const one = yield* recording(failingOnce(thought("one")));
      const other = yield* recording(streaming(thought("two", signature)));
      const tokens = ["b-token-of-24-characters", "c-token-of-24-characters"].map((it, at) => ({
        ...{ name: `t${at}`, token: Redacted.make(it), page: false, metrics: false },
      }));
      const { url } = yield* paired(one.url, other.url, { program: { tokens } });
      const as = (at: number) => ({
        headers: { "x-recovery-token": Redacted.value(tokens[at]?.token ?? Redacted.make("")) },
      });
      assert.strictEqual(routeIn(yield* ask(url, "anthropic-messages", as(0))), "second-anthropic");
      const theirs = yield* ask(url, "anthropic-messages", { ...carrying(signature), ...as(1) });
      assert.strictEqual(routeIn(theirs), "anthropic");
      const own = yield* ask(url, "anthropic-messages", { ...carrying(signature), ...as(0) });
      assert.strictEqual(routeIn(own), "second-anthropic");
    }),
  );

  it.live("by encrypted reasoning, a response's id and an item's too, in a body that its client compressed", () =>
    Effect.gen(function* () {
      const item = { type: "reasoning", id: "rs_of_the_second", summary: [], encrypted_content: "gAAA-of-the-second" };
      const answer = textAnswer("openai-responses", "two")
        .replaceAll('"resp_1"', '"resp_of_the_second"')
        .replace('"output":[{', `"output":[${JSON.stringify(item)},{`);
      const one = yield* recording(failingOnce(textAnswer("openai-responses", "one")));
      const other = yield* recording(streaming(answer));
      const { url } = yield* paired(one.url, other.url);
      assert.strictEqual(routeIn(yield* ask(url, "openai-responses")), "second");
      for (const more of [
        { previous_response_id: "resp_of_the_second" },
        { input: [item] },
        { input: [{ type: "item_reference", id: "rs_of_the_second" }] },
      ]) {
        const body = { ...freeBody("openai-responses"), ...more };
        assert.strictEqual(routeIn(yield* ask(url, "openai-responses", { body })), "second", JSON.stringify(more));
        const packed = yield* Effect.promise(() =>
          send(`${url}${paths["openai-responses"]}`, {
            body: zstdCompressSync(JSON.stringify(body)),
            headers: { "content-type": "application/json", "content-encoding": "zstd", "x-recovery-token": token },
          }),
        );
        assert.strictEqual(routeIn(packed), "second");
      }
      assert.lengthOf(one.asked, 1);
    }),
  );
});

describe("RouteMemory", () => {
  const of = { tenant: "t", upstream: "openai" };

  it("forgets what was seen last the longest ago, and never holds more than its limit", () => {
    const memory = new RouteMemory(3);
    for (const text of ["a", "b", "c"]) memory.keep(of, text, "second");
    assert.strictEqual(memory.find(of, ["a"]), "second");
    memory.keep(of, "d", "second");
    assert.strictEqual(memory.size, 3);
    assert.isUndefined(memory.find(of, ["b"]));
    assert.strictEqual(memory.find(of, ["a"]), "second");
    for (let n = 0; n < 100; n += 1) memory.keep(of, `e${n}`, "second");
    assert.strictEqual(memory.size, 3);
  });

  it("finds the route of the newest response in a request, and no route of another upstream", () => {
    const memory = new RouteMemory();
    memory.keep(of, "old", "second");
    memory.keep(of, "new", "third");
    assert.strictEqual(memory.find(of, ["old", "new", "unknown"]), "third");
    assert.isUndefined(memory.find({ ...of, upstream: "anthropic" }, ["old"]));
    assert.isUndefined(memory.find({ ...of, tenant: undefined }, ["old"]));
  });
});

describe("AnswerMarks", () => {
  const marksOf = (chunks: ReadonlyArray<string>): ReadonlyArray<string> => {
    const told: Array<string> = [];
    const marks = new AnswerMarks((text) => void told.push(text));
    for (const chunk of chunks) marks.take(Buffer.from(chunk));
    marks.end();
    return told;
  };

  it("reads a stream however it is cut, and puts a signature together from its pieces", () => {
    const text = thought("x", signature);
    assert.include(marksOf([text]), signature);
    assert.include(marksOf([...text]), signature);
  });

  it("reads a document whole", () => {
    const document = JSON.stringify({ id: "resp_1", output: [{ type: "reasoning", encrypted_content: "gAAA" }] });
    assert.sameMembers([...marksOf([...document])], ["resp_1", "gAAA"]);
    assert.sameMembers([...marksOf([document.slice(0, 30)])], []);
  });

  it("reads Gemini's signatures, Anthropic's containers and redacted thinking, and files", () => {
    const event = {
      candidates: [{ content: { parts: [{ text: "", thoughtSignature: "Ci" }] } }],
      container: { id: "container_1" },
      content_block: { type: "redacted_thinking", data: "Em" },
      file_id: "file_1",
      text: "no-mark",
    };
    assert.sameMembers([...marksOf([`data: ${JSON.stringify(event)}\n\n`])], ["Ci", "container_1", "Em", "file_1"]);
  });

  it("stores at most its limit of marks for an endless response", () => {
    const events = Array.from({ length: answerMarksMax + 50 }, (_, n) => `data: {"id":"${n}"}\n\n`);
    assert.lengthOf(marksOf(events), answerMarksMax);
  });
});
