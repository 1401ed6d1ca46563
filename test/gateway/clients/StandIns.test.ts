/**
 * Every client's measured rule with the gateway: the cost and the result of its turn if the provider breaks once or without end.
 * These tests need no agents; `npm run agents` plays the real ones.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { Answers, FaultProvider, type FaultScript } from "../../../src/testing/index.ts";
import { front } from "../GatewayCases.ts";
import { play, type Screen } from "./StandIn.ts";
import { type StandIn, standIns } from "./StandIns.ts";

type Answer = NonNullable<FaultScript.FaultScriptInput["answers"]>[number];

const content: NonNullable<Answer["content"]> = [{ text: 6 }];

const inText =
  (kind: "rst" | "end") =>
  ({ protocol }: StandIn): Answer => {
    const events = Answers.render(protocol, 1, { content });
    const last = events.findIndex(({ serials }) => serials.includes("r1.2·"));
    return { content, break: { kind, at: "event", n: last + 1 } };
  };

/** The faults of a provider. */
const faults: Readonly<Record<string, (client: StandIn) => Answer>> = {
  reset: () => ({ break: { kind: "rst", at: "before_head" } }),
  "text cut": inText("rst"),
  "text clean end": inText("end"),
  "in-stream overload": () => ({ content: [{ text: 3 }, { error: "overloaded" }] }),
  "server error": () => ({ status: 500 }),
};

/** The faults after shown text. */
const shown = ["text cut", "text clean end"];

interface Turn extends Screen {
  readonly seen: number;
}

/** Plays a turn against a provider, through the gateway if one is given. */
const turn = (client: StandIn, answers: ReadonlyArray<Answer>, program: GatewayProgram | undefined) =>
  Effect.gen(function* () {
    const provider = yield* FaultProvider.make({ script: { answers: [...answers] } });
    const url = program === undefined ? provider.url : (yield* front(provider.url, program)).url;
    const screen = yield* Effect.promise(() => play(client, url));
    return { ...screen, seen: (yield* provider.log).length } satisfies Turn;
  }).pipe(Effect.scoped, Effect.orDie);

const whole = Array.from({ length: 6 }, (_, n) => `r2.${n}·`).join("");

/** Plays the turn of every fault at once, because a turn only waits for its own retries. */
const everyFault = (play: (title: string, fault: (client: StandIn) => Answer) => Effect.Effect<void>) =>
  Effect.forEach(Object.entries(faults), ([title, fault]) => play(title, fault), { concurrency: "unbounded" });

describe.concurrent("measured clients with the gateway", () => {
  for (const client of standIns) {
    describe(client.name, () => {
      it.live("on_complete: a fault that happens once is invisible, and costs one additional request", () =>
        everyFault((title, fault) =>
          Effect.gen(function* () {
            const got = yield* turn(client, [fault(client), { content }], { reveal: "on_complete" });
            const right = { text: whole, error: undefined, requests: 1, seen: 2 };
            assert.deepStrictEqual({ title, ...got }, { title, ...right });
          }),
        ),
      );

      const mended =
        client.mends === undefined ? [] : client.mends === "cuts" ? shown : [...shown, "in-stream overload"];
      for (const title of mended) {
        it.live(`live: ${title} once is left to the client, which recovers it as it does without the gateway`, () =>
          Effect.gen(function* () {
            const fault = faults[title];
            if (fault === undefined) return assert.fail(title);
            const { error, text } = yield* turn(client, [fault(client), { content }], { reveal: "live" });
            assert.isUndefined(error);
            assert.isTrue(text.endsWith(whole));
          }),
        );
      }

      if (client.keepsText === true)
        it.live("live: shown text that breaks once ends the turn with its reason, and is not shown twice", () =>
          everyFault((title, fault) =>
            Effect.gen(function* () {
              if (![...shown, "in-stream overload"].includes(title)) return;
              const { error, text } = yield* turn(client, [fault(client), { content }], { reveal: "live" });
              assert.deepStrictEqual({ title, text }, { title, text: "r1.0·r1.1·r1.2·" });
              assert.match(error ?? "", /stream-recovery gateway/, title);
            }),
          ),
        );

      for (const reveal of ["live", "on_complete"] as const) {
        it.live(`${reveal}: an endless fault ends the turn cheaply, with its reason`, () =>
          everyFault((title, fault) =>
            Effect.gen(function* () {
              const direct = yield* turn(client, [fault(client)], undefined);
              const { error, seen } = yield* turn(client, [fault(client)], { reveal });
              // The gateway's own tries may cost four requests per request of the client.
              const most = client.requestsMax ?? Math.max(direct.seen, 4);
              assert.isAtMost(seen, most, `${title}: requests`);
              const left = reveal === "live" && client.looksMending === true && shown.includes(title);
              const either = title === "in-stream overload" && client.looksMending === true;
              const reason = left
                ? /connection reset/
                : either
                  ? /stream-recovery gateway|connection reset/
                  : /stream-recovery gateway/;
              assert.match(error ?? "", reason, `${title}: the reason`);
            }),
          ),
        );
      }
    });
  }
});
