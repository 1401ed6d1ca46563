/**
 * Plays a minute of agents over real sockets: a real client, a real provider, and a listener between them that goes away.
 */
import { Clock, Context, Effect, Layer, Logger, Stream } from "effect";
import { Door } from "../../src/cli/demo/stage/Door.ts";
import { ProviderClient } from "../../src/client/index.ts";
import * as OpenAiChat from "../../src/provider/openai-chat/Decode.ts";
import type { Part } from "../../src/provider/Protocols.ts";
import { textOf } from "../../src/provider/stream/Content.ts";
import type { AttemptContext, RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import { Dice } from "../../test/simulation/Dice.ts";
import { Diary, type RunEntry, type SentRequest } from "./Diary.ts";

/** The parameters of a play. */
export interface RealPlay {
  readonly agents: number;
  readonly ms: number;
  readonly seed: number;
}

const asker = { path: 0, key: 0, model: 0 };

/** Every answer: a few text deltas, slow enough to be cut. */
const answer = { content: [{ text: 8 }], delay_ms: 60, head_delay_ms: 100 } as const;

/** Returns the milliseconds since the play began. */
type Now = () => number;

/** Plays it and returns the observations. */
export const play = ({ agents, ms, seed }: RealPlay): Promise<Diary> =>
  Effect.gen(function* () {
    const diary = new Diary();
    const clock = yield* Clock.Clock;
    const from = clock.currentTimeMillisUnsafe();
    const now: Now = () => clock.currentTimeMillisUnsafe() - from;
    const server = yield* FaultProvider.make({ script: { answers: [answer], after: "repeat" } });
    const door = yield* Door.make(server.port);
    const context = yield* Layer.build(StreamProcessor.layerDefault);
    const client = yield* ProviderClient.make();
    const url = server.endpoint("openai-chat").replace(server.url, door.url);
    const processor = Context.get(context, StreamProcessor);
    const one = (number: number) =>
      playLife({ diary, client, processor, url, now }, new Dice(seed * 7919 + number), number, ms);
    yield* Effect.forkScoped(playWeather(door, diary, now, new Dice(seed), ms));
    yield* Effect.forEach(
      Array.from({ length: agents }, (_, number) => number),
      one,
      {
        concurrency: "unbounded",
        discard: true,
      },
    );
    return diary;
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([])), Effect.runPromise);

/** Lets the listener accept connections for four to eight seconds, then closes it for three to ten, repeatedly. */
const playWeather = Effect.fnUntraced(function* (door: Door, diary: Diary, now: Now, dice: Dice, ms: number) {
  while (now() < ms - 12_000) {
    yield* Effect.sleep(dice.between(4_000, 8_000));
    const left = now();
    diary.departures.push({ path: 0, at: left });
    yield* door.shut;
    yield* Effect.sleep(dice.between(3_000, 10_000));
    yield* door.open;
    const at = now();
    const waiting = [...diary.runs.values()].filter((it) => it.end === "open" && it.waitsFrom !== undefined);
    diary.returns.push({ path: 0, at, awayMs: at - left, kind: "refused", waiting });
  }
});

interface Home {
  readonly diary: Diary;
  readonly client: ProviderClient["Service"];
  readonly processor: StreamProcessor["Service"];
  readonly url: string;
  readonly now: Now;
}

const playLife = Effect.fnUntraced(function* (home: Home, dice: Dice, agent: number, ms: number) {
  yield* Effect.sleep(dice.between(0, 1_000));
  for (let turn = 1; home.now() < ms; turn += 1) {
    yield* askProvider(home, `a${agent}.${turn}`);
    yield* Effect.sleep(dice.between(200, 2_000));
  }
});

const askProvider = Effect.fnUntraced(function* ({ client, diary, now, processor, url }: Home, run: string) {
  const entry = diary.begin(run, asker, "on_complete", now());
  let texts: Array<string> = [];
  const options: RunOptions<Part, unknown, never> = {
    runId: run,
    provider: { id: "real", model: "m", reasoning: false },
    tools: [],
    attempt: (attempt) => exchange(client, url, entry, attempt, now),
    observe: (part) => part.observation,
    reveal: "on_complete",
    budget: { max_outage_ms: "forever" },
  };
  const failed = yield* Stream.runForEach(processor.run(options), (event) =>
    Effect.sync(() => {
      if (event._tag === "AttemptStarted") texts = [];
      if (event._tag === "Waiting") entry.waitsFrom ??= now();
      if (event._tag === "Waiting") entry.waits += 1;
      if (event._tag === "RetryScheduled") entry.decisions += 1;
      if (event._tag === "Part" && textOf(event.part.content) !== "") texts.push(textOf(event.part.content));
    }),
  ).pipe(Effect.match({ onSuccess: () => undefined, onFailure: (error) => error }));
  entry.to = now();
  entry.waitsFrom = undefined;
  entry.end = failed === undefined ? "whole" : "lost";
  entry.why =
    failed === undefined ? "" : `${failed.reason} ${failed.rule} ${failed.failure.kind} ${failed.failure.code ?? ""}`;
  entry.rule = failed?.rule;
  entry.twice = texts.filter((text, at) => texts.indexOf(text) !== at);
  entry.missing = failed === undefined && texts.length !== answer.content[0].text ? [`${texts.length} texts`] : [];
});

/** Sends one attempt and records its outcome. */
const exchange = (
  client: ProviderClient["Service"],
  url: string,
  entry: RunEntry,
  { bytes, delivery }: AttemptContext,
  now: Now,
) => {
  const at = now();
  entry.connects += 1;
  let sent: SentRequest | undefined;
  return client
    .stream({
      protocol: OpenAiChat.protocol,
      url,
      body: { stream: true, run: entry.run },
      bytes,
      delivery: (it) => {
        if (it !== "not_sent" && sent === undefined) {
          sent = {
            ...asker,
            at: now(),
            from: at,
            run: entry.run,
            reached: true,
            answered: false,
            refused: false,
            cut: "no",
          };
          entry.requests.push(sent);
          entry.waitsFrom = undefined;
        }
        if (it === "accepted" && sent !== undefined) sent.answered = true;
        delivery(it);
      },
    })
    .pipe(
      Stream.tapError(() =>
        Effect.sync(() => {
          if (sent?.answered === true) sent.cut = "broke";
        }),
      ),
    );
};
