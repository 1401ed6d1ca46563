/**
 * Kills the client of every recorded response at its events, and brings it back in every way: where it may attach, the provider has
 * one request and the client every byte; where it may not, it has a run of its own, and nobody has another one's bytes.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { protocols } from "../GatewayCases.ts";
import {
  afterCancel,
  attaching,
  besideOf,
  besideStrangers,
  byName,
  inParallel,
  killed,
  ownOf,
  type Play,
  playOf,
  type Recorded,
  tooLate,
  type Way,
} from "./RecordedCases.ts";

/** Events of a response that are all played. */
const manyEvents = 40;

/** Does something behind the events of each response: before the first one, and with the end behind the last one too. */
const atEvery = (
  [protocol, all, lingerMs]: readonly [(typeof protocols)[number], ReadonlyArray<Recorded>, number?],
  does: (play: Play, at: number) => Effect.Effect<void>,
) =>
  Effect.gen(function* () {
    assert.isAbove(all.length, 0, "there are recordings");
    for (const recorded of all) {
      const one = Effect.gen(function* () {
        const play = yield* playOf(protocol, recorded, lingerMs);
        const { length } = recorded.events;
        // The first event says which response it is. Between the first and the last events of a long response, every third is like the rest.
        const isPlayed = (at: number) => at < manyEvents / 2 || at > length - manyEvents / 2 || at % 3 === 0;
        for (let at = 0; at <= length + 1; at += 1) if (isPlayed(at)) yield* does(play, at);
      });
      yield* Effect.scoped(one);
    }
  });

const way =
  (does: Way, options?: { readonly settles: boolean }) =>
  (play: Play, at: number): Effect.Effect<void> =>
    Effect.flatMap(killed(play, at, options), does);

const settles = { settles: true };

describe("A client that is killed at the events of a recorded response", () => {
  for (const protocol of protocols) {
    const own = ownOf(protocol);

    for (const [how, does] of Object.entries(attaching))
      it.live(`comes back ${how}: ${protocol}, one request and every byte`, () =>
        atEvery([protocol, own], way(does, settles)),
      );

    it.live(`comes back by its run's name for the bytes that it has not had: ${protocol}`, () =>
      atEvery([protocol, own], way(byName, settles)),
    );

    it.live(`comes back while others ask for the same: ${protocol}, nobody has another one's bytes`, () =>
      atEvery([protocol, own], way(besideStrangers)),
    );

    it.live(`comes back beside another one of the same request: ${protocol}, each has one of the two responses`, () =>
      atEvery([protocol, own], inParallel),
    );

    it.live(`comes back after a cancel: ${protocol}, a request of its own`, () =>
      atEvery([protocol, own], way(afterCancel)),
    );

    it.live(`comes back too late: ${protocol}, a request of its own`, () => atEvery([protocol, own, 1], way(tooLate)));

    const beside = besideOf(protocol);
    if (beside.length === 0) it.skip(`no recordings of ${protocol} are beside the repository`, () => undefined);
    else {
      const ways = [...Object.values(attaching), byName];
      it.live(`comes back to ${beside.length} recordings of a real provider: ${protocol}, in turn in every way`, () =>
        atEvery([protocol, beside], (play, at) => {
          const does = ways[at % ways.length];
          return does === undefined ? Effect.void : way(does, settles)(play, at);
        }),
      );
    }
  }
});
