/**
 * A further protocol is one folder and one line in a registry: the toy's folder is this one, its line stands below. It is
 * played whole, cut and gone on with, through the decoder, the relay, the continuation and the fault provider.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Exit, Random, References, Result, Stream } from "effect";
import { fetchTransport } from "../../../src/adapters/fetch/Transport.ts";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { RelayInterrupted } from "../../../src/adapters/relay/RelayInterrupted.ts";
import { recognise } from "../../../src/adapters/relay/RelayPlan.ts";
import { ProviderClient } from "../../../src/client/index.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import { protocols, registry, type WireProtocol } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { Answers, FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { suite } from "../ProtocolSuite.ts";
import { toy } from "./Protocol.ts";
import { toyAnswers } from "./Responses.ts";

/** The one line: the toy behind the package's own. */
const five = registry<string>([...protocols.ids.map((id): WireProtocol => protocols.get(id)), toy]);

suite(toy, {
  folder: new URL("./", import.meta.url),
  files: {
    "whole.sse": {
      end: "complete",
      text: 10,
      reasoning: 2,
      calls: ["bash"],
      inputs: [{ cmd: "ls" }],
      finish: "tool",
    },
  },
  error: 'data: {"t":"error","message":"no"}\n\n',
});

const noJitter = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 };

const quiet = <A, E>(effect: Effect.Effect<A, E, StreamProcessor | ToolGuard>) =>
  effect.pipe(
    Effect.provideService(Random.Random, noJitter),
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provide(StreamProcessor.layerDefault),
  );

const request = { turns: [{ role: "user", say: "hi" }], stream: true };

/** Relays one request to a provider that plays a script; what its client gets, and how it ends. */
const relayed = (script: FaultScriptInput) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make({ script, protocols: [toyAnswers] });
    const url = server.endpoint(toyAnswers);
    const plan = recognise({ method: "POST", url, headers: [], body: JSON.stringify(request) }, {}, five);
    if (plan === undefined) return assert.fail("the toy's address is claimed");
    assert.strictEqual(plan.protocol, toy);
    const answer = yield* Relay.open(plan, { transport: fetchTransport(globalThis.fetch, {}) });
    let bytes = "";
    const read: Effect.Effect<void, RelayInterrupted> = Effect.flatMap(answer.read, (next) => {
      if (next === undefined) return Effect.void;
      bytes += Buffer.concat(next).toString();
      return read;
    });
    const end = yield* Effect.exit(read);
    return { bytes, end, requests: (yield* server.log).length };
  }).pipe(Effect.scoped, quiet);

/** The bytes of an answer as the fault provider writes it. */
const written = (number: number, content: ReadonlyArray<{ readonly text: number }>): string =>
  Answers.render(toyAnswers, number, { content })
    .map(({ frame }) => String(frame))
    .join("");

const text = [{ text: 3 }];

describe("a protocol of one folder and one line", () => {
  it("is named beside the others, and its address is nobody else's", () => {
    assert.deepStrictEqual(five.ids, [...protocols.ids, "toy"]);
    assert.strictEqual(five.get("toy"), toy);
    assert.throws(() => five.get("morse"), /expected one of .*toy, got morse/);
    const url = "https://toy.example/v1/talk";
    assert.isUndefined(recognise({ method: "POST", url, headers: [], body: JSON.stringify(request) }));
    assert.isUndefined(recognise({ method: "POST", url, headers: [], body: "{}" }, {}, five), "no body of the toy's");
  });

  it.live("is relayed whole, byte for byte", () =>
    Effect.gen(function* () {
      const { bytes, end, requests } = yield* relayed({ answers: [{ content: text }] });
      assert.isTrue(Exit.isSuccess(end));
      assert.deepStrictEqual([bytes, requests], [written(1, text), 1]);
    }),
  );

  it.live("is asked for again where it was cut before anything was shown", () =>
    Effect.gen(function* () {
      const broken = { content: text, break: { kind: "end", at: "event", n: 1 } } as const;
      const { bytes, end, requests } = yield* relayed({ answers: [broken, { content: text }] });
      assert.isTrue(Exit.isSuccess(end));
      assert.deepStrictEqual([bytes, requests], [written(2, text), 2]);
    }),
  );

  it.live("breaks where text was shown, and the gateway says so in its words", () =>
    Effect.gen(function* () {
      const broken = { content: text, break: { kind: "end", at: "event", n: 2 } } as const;
      const { bytes, end, requests } = yield* relayed({ answers: [broken] });
      assert.strictEqual(requests, 1);
      assert.include(bytes, '"say"');
      const error = Exit.isFailure(end) ? end.cause.reasons.find((it) => it._tag === "Fail")?.error : undefined;
      if (!(error instanceof RelayInterrupted)) return assert.fail("the run is interrupted");
      const decoder = Decoder.make(toy);
      const words = toy.givenUp.ending("it broke", undefined, { id: error.run_id });
      decoder.push(new TextEncoder().encode(words.map((write) => write.text).join("")));
      assert.deepStrictEqual(decoder.failure, { kind: "server_error", in_band: true });
    }),
  );

  it.live("goes on behind a settled call: what was shown stands in the next request, and the tool ran once", () =>
    quiet(Effect.scoped(continued)),
  );
});

const continued = Effect.gen(function* () {
  const settled = yield* Deferred.make<void>();
  const content = [{ reasoning: 1 }, { text: 2 }, { tool: "bash", input: { cmd: "ls" } }];
  const script: FaultScriptInput = {
    answers: [{ content, break: { kind: "rst", at: "terminal" } }, { content: [{ text: 1 }] }],
  };
  const server = yield* FaultProvider.make({
    script,
    protocols: [toyAnswers],
    beforeBreak: () => Deferred.await(settled),
  });
  const client = yield* ProviderClient.make();
  const guard = yield* ToolGuard;
  const ran: Array<unknown> = [];
  const bash = guard.mutating("bash", (input: string | undefined) =>
    Effect.as(
      Effect.sync(() => ran.push(input)),
      "3 files",
    ),
  );
  const collector = Continuation.collector(toy.id);
  const results: Array<Continuation.CallResult> = [];
  const modes: Array<string> = [];
  let sent: unknown = request;
  const open = ({ attempt, calls, delivery, request: mode }: AttemptContext) => {
    const input = { body: request, received: collector.received(), calls, results };
    if (mode !== "first") sent = Result.getOrThrow(Continuation.buildIn(toy, input));
    let ordinal = 0;
    return client
      .stream({ protocol: toy, url: server.endpoint(toyAnswers), body: sent, delivery })
      .pipe(Stream.tap((part) => Effect.sync(() => collector.take(attempt, ++ordinal, part))));
  };
  const run = (yield* StreamProcessor).run<Part, unknown, never>({
    provider: { id: "toy", model: "m", reasoning: false },
    tools: [bash],
    canContinue: open,
    attempt: open,
    observe: toy.observe,
  });
  yield* Stream.runForEach(run, (event) => {
    if (event._tag === "AttemptStarted") modes.push(event.mode);
    if (event._tag !== "Part") return Effect.void;
    return Effect.forEach(event.calls ?? [], ({ attempt, call, ...signal }) =>
      Effect.gen(function* () {
        const output = yield* bash.run({ ...signal, attempt, call }, signal.input);
        results.push({ attempt, call, output });
        yield* Deferred.succeed(settled, undefined);
      }),
    );
  });
  assert.deepStrictEqual(modes, ["first", "continue"]);
  assert.lengthOf(ran, 1);
  assert.deepStrictEqual(sent, {
    ...request,
    turns: [
      ...request.turns,
      { role: "toy", say: "r1.1·r1.2·", calls: [{ tool: "bash", input: ran[0] }] },
      { role: "tool", say: "3 files" },
    ],
  });
  assert.lengthOf(yield* server.log, 2);
});
