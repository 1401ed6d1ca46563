/**
 * Every measured client with the gateway while a healthy response is held: the gateway sends what the client counts as progress,
 * and nothing that it shows.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect } from "effect";
import { Answers } from "../../../src/testing/index.ts";
import { serverOf } from "../../Servers.ts";
import { front } from "../GatewayCases.ts";
import { play } from "./StandIn.ts";
import { type StandIn, standIns } from "./StandIns.ts";

/** Events that keep the client waiting before the rest of the response comes. */
const counted = 3;

/** Interval of the gateway's keep-alives, in milliseconds. */
const keepAliveMs = 20;

/** The client announces that it waits one second for a head, so the gateway withholds it for half of that. */
const impatient = { "x-stainless-timeout": "1" };

/** A provider that stops in the middle of its response until the test continues it. */
const slowProvider = (
  { protocol }: StandIn,
  content: Answers.AnswerOptions["content"],
  goesOn: Deferred.Deferred<void>,
) =>
  Effect.gen(function* () {
    const frames = Answers.render(protocol, 1, content === undefined ? {} : { content }).map(({ frame }) => frame);
    const half = Math.ceil(frames.length / 2);
    let requests = 0;
    const url = yield* serverOf((request, response) => {
      requests += 1;
      request.resume().on("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const frame of frames.slice(0, half)) response.write(frame);
        void Effect.runPromise(Deferred.await(goesOn)).then(() => response.end(frames.slice(half).join("")));
      });
    });
    return { url, requests: () => requests };
  });

const held = (client: StandIn, reveal: "live" | "on_complete", content: Answers.AnswerOptions["content"]) =>
  Effect.gen(function* () {
    const goesOn = yield* Deferred.make<void>();
    const provider = yield* slowProvider(client, content, goesOn);
    const { url } = yield* front(provider.url, { reveal, keepAliveMs });
    const patient = { ...client, headers: { ...client.headers, ...impatient } };
    const screen = yield* Effect.promise(() =>
      play(patient, url, (count) => {
        if (count >= counted) Deferred.doneUnsafe(goesOn, Effect.void);
      }),
    );
    return { ...screen, seen: provider.requests() };
  }).pipe(Effect.scoped);

describe.concurrent("measured clients while a response is held", () => {
  for (const client of standIns) {
    it.live(`${client.name}, on_complete: waits for a slow text and gets it whole`, () =>
      Effect.gen(function* () {
        const text = Array.from({ length: 4 }, (_, n) => `r1.${n}·`).join("");
        assert.deepStrictEqual(yield* held(client, "on_complete", [{ text: 4 }]), {
          ...{ text, error: undefined, requests: 1, seen: 1 },
        });
      }),
    );

    it.live(`${client.name}, live: waits for a long call`, () =>
      Effect.gen(function* () {
        const call = [{ tool: "shell", input: { command: "x".repeat(200) } }];
        assert.deepStrictEqual(yield* held(client, "live", call), {
          ...{ text: "", error: undefined, requests: 1, seen: 1 },
        });
      }),
    );
  }
});
