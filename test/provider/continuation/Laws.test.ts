/**
 * No continuation breaks the rules of its protocol, wherever an answer was cut and whatever became of its calls.
 */
import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import { callKey } from "../../../src/domain/AttemptFacts.ts";
import * as Json from "../../../src/domain/Json.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import type { Part, ProtocolId } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { Answers } from "../../../src/testing/index.ts";
import { protocols } from "../../client/Protocols.ts";
import { bytesOf, recordings } from "../../Recordings.ts";
import { seeded } from "../../Seeded.ts";
import { samples, talkIds } from "../../samples/index.ts";

type Dice = () => number;
const pick = <A>(dice: Dice, from: readonly [A, ...Array<A>]): A => from[Math.floor(dice() * from.length)] ?? from[0];

const blocks = (dice: Dice) =>
  Array.from({ length: 1 + Math.floor(dice() * 5) }, () =>
    pick(dice, [
      { text: 3 },
      { text: 1 },
      { reasoning: 2 },
      { tool: "bash", input: { cmd: "ls" } },
      { tool: "read", input: {} },
      { tool: "bash", input: { cmd: "rm" }, cut: true },
      { provider_tool: "web_search", input: {} },
      { provider_tool: "other", input: {} },
      { ping: 1 },
    ]),
  );

const decoded = (protocol: ProtocolId, bytes: Uint8Array): ReadonlyArray<Part> => {
  const decoder = Decoder.make(protocols[protocol]);
  return [...decoder.push(bytes), ...decoder.end().parts];
};

const outcomes = ["settled", "not_run", "unknown", "it_ran", "it_did_not_run"] as const;

/** Builds a continuation of parts cut anywhere, with calls that came out anyhow, and checks it. */
const holds = (dice: Dice, protocol: ProtocolId, parts: ReadonlyArray<Part>, body: Json.JsonRecord): string => {
  const end = Math.floor(dice() * (parts.length + 1));
  const keepThrough = dice() < 0.5 ? end : Math.floor(dice() * (end + 1));
  const received = Continuation.collect(protocol, parts.slice(0, end), { keepThrough });
  const ready = parts
    .slice(0, end)
    .flatMap((part) => part.observation.calls)
    .filter((call) => call.phase === "ready" && call.executor === "runtime")
    .map((call) => ({
      attempt: 1,
      call: callKey(call.choice, call.ordinal),
      outcome: pick(dice, outcomes),
      known: dice(),
    }));
  const calls = ready.filter(({ known }) => known > 0.1);
  const results = calls
    .filter(({ outcome, known }) => outcome === "settled" && known > 0.4)
    .map(({ attempt, call }) => ({ attempt, call, output: pick<unknown>(dice, ["done", { a: 1 }, ["x"], "", null]) }));
  const before = JSON.stringify(body);
  const result = Continuation.build(protocol, { body, received: JSON.parse(JSON.stringify(received)), calls, results });
  const next = Result.isSuccess(result) ? result.success : assert.fail(result.failure.message);
  const problems = samples[protocol].check(next);
  assert.deepStrictEqual(problems, [], `cut at ${end}, kept ${keepThrough}: ${JSON.stringify(next)}`);
  assert.strictEqual(JSON.stringify(body), before, "the input is not changed");
  const kept = received.items.filter((item) => item.type === "call" && item.whole).length;
  return kept > 0 ? "calls" : received.items.some((item) => item.type === "text") ? "text" : "nothing";
};

/** A request that ends with the caller's own prefill is only repeated where nothing was kept: that is the caller's to send. */
const prefilled = (body: Json.JsonRecord): boolean => {
  const { contents, messages } = body.request === undefined ? body : (Json.record(body.request) ?? {});
  const last = Json.record(Json.list(messages ?? contents).at(-1));
  return last?.role === "assistant" || last?.role === "model";
};

const rounds = 400;
const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_122);

describe(`Continuation, seed ${seed}`, () => {
  for (const protocol of talkIds) {
    it(`${protocol}: no dangling call, no second result, no prefill, no repeated role, of ${rounds} answers cut anywhere`, () => {
      const dice = seeded(seed);
      const seen = new Set<string>();
      for (let round = 1; round <= rounds; round += 1) {
        const events = Answers.render(protocol, round, { content: blocks(dice) });
        const bytes = Buffer.concat(events.map(({ frame }) => Buffer.from(frame)));
        const parts = decoded(protocol, bytes);
        const body = pick(dice, samples[protocol].histories);
        if (prefilled(body)) {
          const all = Continuation.collect(protocol, parts);
          if (all.items.some((item) => item.type === "text")) holds(() => 0.999_999, protocol, parts, body);
        } else seen.add(holds(dice, protocol, parts, body));
      }
      assert.sameMembers([...seen], ["calls", "text", "nothing"], "every kind of cut was met");
    });
  }
});

describe("Continuation of recorded streams", () => {
  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const recording of recordings) {
    it(`${recording.file} goes on from 40 cuts`, () => {
      const { protocol } = recording;
      const parts = decoded(protocol, bytesOf(recording));
      if (Continuation.collect(protocol, parts).choices > 1) return;
      const dice = seeded(seed);
      for (let cut = 0; cut < 40; cut += 1) holds(dice, protocol, parts, samples[protocol].histories[0]);
    });
  }
});
