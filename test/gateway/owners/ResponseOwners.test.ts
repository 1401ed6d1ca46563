import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect } from "effect";
import { TestClock } from "effect/testing";
import { MadeId } from "../../../src/gateway/owners/MadeId.ts";
import * as ResponseOwners from "../../../src/gateway/owners/ResponseOwners.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

describe("the owners of stored responses", () => {
  it("are forgotten by a token's own later responses, and by no other token's", () => {
    const memory = new ResponseOwners.OwnerMemory(3);
    memory.keep("colleague", "a");
    for (let at = 0; at < 100; at += 1) memory.keep("attacker", `x${at}`);
    assert.strictEqual(memory.find("a"), "colleague");
    assert.strictEqual(memory.find("x99"), "attacker");
    assert.isUndefined(memory.find("x0"));
  });

  it("are those that made an id first, because some servers let a client choose it", () => {
    const memory = new ResponseOwners.OwnerMemory();
    memory.keep("one", "a");
    memory.keep("two", "a");
    assert.strictEqual(memory.find("a"), "one");
  });
});

describe("the owners that the processes of a store know", () => {
  it.effect("are those of each of them, also at a process that starts later", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
      const recorder = yield* Effect.provide(RunRecorder, RunRecorder.layerMemory());
      const start = () =>
        Effect.provideService(ResponseOwners.make, RunRecorder, { ...recorder, shared: store.process() });
      const [first, second] = [yield* start(), yield* start()];
      first.keep("one", "resp_1");
      yield* TestClock.adjust(1);
      for (const owners of [second, yield* start()]) {
        assert.strictEqual(yield* owners.ownerOf("resp_1", "one"), "own");
        assert.strictEqual(yield* owners.ownerOf("resp_1", "two"), "other");
        assert.strictEqual(yield* owners.ownerOf("resp_2", "one"), "unknown");
      }
    }).pipe(Effect.scoped),
  );
});

const madeOf = (body: string, pieces = 1): ReadonlyArray<string> => {
  const found: Array<string> = [];
  const made = new MadeId((id) => found.push(id));
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += pieces) made.take(bytes.subarray(at, at + pieces));
  made.end();
  return found;
};

describe("the id of an answer", () => {
  const created = { type: "response.created", response: { metadata: { id: "resp_claimed" }, id: "resp_1" } };
  const event = (data: object) => `event: x\ndata: ${JSON.stringify(data)}\n\n`;

  it("is that of the response itself, cut anywhere, and is told once", () => {
    const stream = `: hi\n\n${event(created)}${event({ ...created, response: { id: "resp_2" } })}`;
    for (const pieces of [1, 7, 10_000]) assert.deepStrictEqual(madeOf(stream, pieces), ["resp_1"]);
    const document = JSON.stringify({ output: [{ id: "msg_1" }], metadata: { id: "resp_claimed" }, id: "resp_1" });
    for (const pieces of [1, 10_000]) assert.deepStrictEqual(madeOf(document, pieces), ["resp_1"]);
  });

  it("is none where the answer has none", () => {
    for (const body of ["", "{}", "[]", "oops", event({ type: "error", id: "resp_1" }), event({ response: "resp_1" })])
      assert.deepStrictEqual(madeOf(body), [], body);
  });
});
