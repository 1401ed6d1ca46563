/** Law L5 at a seam: a splice rewrites the terminal event of the continuation and never creates one. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Layer, Result, Stream } from "effect";
import { ProviderClient } from "../../src/client/ProviderClient.ts";
import * as Continuation from "../../src/provider/Continuation.ts";
import * as ProtocolSeam from "../../src/provider/ProtocolSeam.ts";
import { type ProtocolId, protocols } from "../../src/provider/Protocols.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import * as Seam from "../../src/stages/seam/Seam.ts";
import { FaultProvider } from "../../src/testing/faults/FaultProvider.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import { conversation, samples, seamIds } from "../samples/index.ts";

const content = [{ text: 20 }];
const whole = Array.from({ length: 20 }, (_, at) => `r1.${at}·`).join("");
const cut = { content, break: { kind: "end", at: "event", n: 14 } } as const;

const layers = Layer.merge(StreamProcessor.layerDefault, ProviderClient.layer());

/** Plays a run whose text may be continued, against a provider of the protocol. */
const played = <Id extends ProtocolId>(id: Id, answers: FaultScriptInput["answers"]) =>
  Effect.gen(function* () {
    const provider = yield* FaultProvider.make({ script: { answers: answers ?? [], after: "error" } });
    const client = yield* ProviderClient;
    const { run } = yield* StreamProcessor;
    const url = provider.endpoint(id);
    const body = conversation(id, "Tell me a story");
    const protocol = protocols.get(id);
    const collector = Continuation.collector(id);
    const seen = { text: "", terminals: 0, continued: 0, completed: false };
    const events = run({
      runId: "spliced",
      provider: { id, reasoning: false },
      tools: [],
      budget: { max_auto_retries: 1 },
      continueText: "auto",
      seam: Seam.of(ProtocolSeam.make<ProtocolId>({ protocol: id, body, url })),
      attempt: ({ bytes, delivery }) => client.stream({ protocol, url, headers: {}, body, bytes, delivery }),
      canContinue: ({ bytes, delivery, seam }) => {
        const received = collector.received();
        const next = Continuation.build(id, { body, received, calls: [], results: [], ...(seam && { seam }) });
        return client.stream({ protocol, url, headers: {}, body: Result.getOrThrow(next), bytes, delivery });
      },
      observe: (part) => part.observation,
    });
    const exit = yield* Effect.exit(
      Stream.runForEach(events, (event) =>
        Effect.sync(() => {
          if (event._tag === "Continued") seen.continued += 1;
          if (event._tag === "RunCompleted") seen.completed = true;
          if (event._tag !== "Part") return;
          collector.take(event.attempt, event.ordinal, event.part);
          seen.text += Continuation.textOf(event.part);
          if (event.part.observation.terminal || event.part.observation.terminal_at_end === true) seen.terminals += 1;
        }),
      ),
    );
    return { ...seen, isFailure: Exit.isFailure(exit), record: yield* (yield* RunRecorder).run("spliced") };
  }).pipe(Effect.scoped, Effect.provide(layers));

describe("L5 at a seam", () => {
  it("a protocol without a splice forbids to continue its text", () => {
    for (const id of protocols.ids.filter((id) => !seamIds.includes(id)))
      assert.strictEqual(protocols.get(id).seamRefusal(samples[id].bare), "no_seam", id);
  });

  for (const id of seamIds) {
    it.live(`${id}: a joined text is complete with its continuation's own finish, and has no other`, () =>
      Effect.gen(function* () {
        const { completed, continued, record, terminals, text } = yield* played(id, [cut, { goes_on: {} }]);
        assert.deepStrictEqual([text, completed, continued], [whole, true, 1]);
        assert.isAtLeast(terminals, 1);
        assert.deepStrictEqual(record?.attempts[1]?.seam, {
          at: record?.attempts[1]?.seam?.at,
          proof: "anchor",
          proven: true,
        });
        assert.strictEqual(record?.end?.state, "completed");
      }),
    );

    it.live(`${id}: a joined text whose continuation ends without its marker is a failure, and gets no marker`, () =>
      Effect.gen(function* () {
        const broken = { goes_on: {}, break: { kind: "end", at: "terminal" } } as const;
        const { completed, continued, isFailure, record, terminals, text } = yield* played(id, [cut, broken]);
        assert.deepStrictEqual([completed, continued, isFailure, terminals], [false, 1, true, 0]);
        assert.isTrue(whole.startsWith(text));
        assert.strictEqual(record?.end?.state, "stopped");
      }),
    );
  }
});
