/**
 * A run that breaks behind a settled call, on real sockets: its continuation is the request that was built, and the tool
 * ran once.
 */
import { createHash } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Random, References, Result, Stream } from "effect";
import { ProviderClient } from "../../../src/client/index.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import type { Part, ProtocolId } from "../../../src/provider/Protocols.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import { protocols } from "../../client/Protocols.ts";
import { samples } from "../../samples/index.ts";

/** Jitter 0: every wait is as short as it can be. */
const noJitter = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 };

const script = {
  answers: [
    {
      content: [{ reasoning: 1 }, { text: 1 }, { tool: "bash", input: { cmd: "ls" } }],
      break: { kind: "rst", at: "terminal" },
    },
    { content: [{ text: 1 }] },
  ],
} as const;

const played = (protocol: ProtocolId) =>
  Effect.scoped(
    Effect.gen(function* () {
      const settled = yield* Deferred.make<void>();
      const server = yield* FaultProvider.make({ script, beforeBreak: () => Deferred.await(settled) });
      const client = yield* ProviderClient.make();
      const processor = yield* StreamProcessor;
      const guard = yield* ToolGuard;
      const ran: Array<unknown> = [];
      const bash = guard.mutating("bash", (input: string | undefined) =>
        Effect.as(
          Effect.sync(() => ran.push(input)),
          "3 files",
        ),
      );
      const collector = Continuation.collector(protocol);
      const results: Array<Continuation.CallResult> = [];
      const sent: Array<object> = [];
      const modes: Array<string> = [];
      const open = (attempt: AttemptContext) => {
        const next = Continuation.build(protocol, {
          body: samples[protocol].question("hi"),
          received: collector.received(),
          calls: attempt.calls,
          results,
        });
        const body = attempt.request === "first" ? samples[protocol].question("hi") : Result.getOrThrow(next);
        sent.push(body);
        let ordinal = 0;
        return client
          .stream({
            protocol: protocols[protocol],
            url: server.endpoint(protocol),
            body,
            delivery: attempt.delivery,
          })
          .pipe(
            Stream.map((part) => {
              ordinal += 1;
              collector.take(attempt.attempt, ordinal, part);
              return part;
            }),
          );
      };
      yield* processor
        .run<Part, unknown, never>({
          provider: { id: "p", model: "m", reasoning: false },
          tools: [bash],
          canContinue: open,
          attempt: open,
          observe: (part) => part.observation,
        })
        .pipe(
          Stream.runForEach((event) => {
            if (event._tag === "AttemptStarted") modes.push(event.mode);
            if (event._tag !== "Part") return Effect.void;
            return Effect.forEach(event.calls ?? [], (call) =>
              Effect.gen(function* () {
                const output = yield* bash.run(call, call.input);
                results.push({ attempt: call.attempt, call: call.call, output });
                yield* Deferred.succeed(settled, undefined);
              }),
            );
          }),
        );
      return { log: yield* server.log, modes, ran, sent };
    }),
  ).pipe(
    Effect.provideService(Random.Random, noJitter),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provide(StreamProcessor.layerDefault),
  );

const hash = (body: object | undefined): string => createHash("sha256").update(JSON.stringify(body)).digest("hex");

describe("A run continues with the built request", () => {
  for (const protocol of ["anthropic-messages", "openai-responses", "google-gemini"] as const) {
    it.live(protocol, () =>
      Effect.gen(function* () {
        const { log, modes, ran, sent } = yield* played(protocol);
        assert.deepStrictEqual(modes, ["first", "continue"]);
        assert.lengthOf(ran, 1);
        assert.deepStrictEqual(
          log.map((row) => row.body_hash),
          sent.map(hash),
        );
        assert.deepStrictEqual(samples[protocol].check(sent[1]), []);
        const text = JSON.stringify(sent[1]);
        assert.include(text, "3 files");
        assert.notInclude(text, Continuation.goOn);
      }),
    );
  }
});
