/**
 * Plays recorded responses to clients that are killed and come back: each response begins with a comment or a line that says which one it is, so
 * that a client which got another one's is seen.
 */
import { readdirSync, readFileSync } from "node:fs";
import { assert } from "@effect/vitest";
import { Effect, Redacted, type Scope } from "effect";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { eventually, found, turn } from "../../Polling.ts";
import { decode } from "../../provider/Decoded.ts";
import { bytesOf, recordings } from "../../Recordings.ts";
import { hasLines } from "../../samples/index.ts";
import { bodies } from "../GatewayCases.ts";
import { again, ask, attach, type Client, type Sent, type Stage, stage, whole } from "./AttachCases.ts";

/** A recorded response. */
export interface Recorded {
  readonly name: string;
  readonly events: ReadonlyArray<Buffer>;
}

/** An event ends with an empty line, whatever its lines end with, or with its line. */
const eventsIn = (protocol: ProtocolId, bytes: Uint8Array): ReadonlyArray<Buffer> =>
  Buffer.from(bytes)
    .toString("latin1")
    .split(hasLines(protocol) ? /(?<=\n)/ : /(?<=\n\r?\n)/)
    .map((event) => Buffer.from(event, "latin1"));

/** Those that come to their end without an error: no repeat attaches to another one once it has ended. */
const wholeOnes = (protocol: ProtocolId, all: ReadonlyArray<{ readonly name: string; readonly bytes: Uint8Array }>) =>
  all.flatMap(({ bytes, name }): ReadonlyArray<Recorded> => {
    const { end, failure, parts } = decode(protocols.get(protocol), [bytes]);
    const fails = failure !== undefined || parts.some(({ observation }) => observation.failure !== undefined);
    return end.complete && !fails ? [{ name, events: eventsIn(protocol, bytes) }] : [];
  });

/** The recorded responses of the repository. */
export const ownOf = (protocol: ProtocolId): ReadonlyArray<Recorded> => {
  const folder = new URL(`../../fixtures/streams/${protocol}/`, import.meta.url);
  return wholeOnes(
    protocol,
    readdirSync(folder).map((name) => ({ name, bytes: readFileSync(new URL(name, folder)) })),
  );
};

/** Those beside it; none where the folder is missing. */
export const besideOf = (protocol: ProtocolId): ReadonlyArray<Recorded> =>
  wholeOnes(
    protocol,
    recordings
      .filter((recording) => recording.protocol === protocol)
      .map((recording) => ({ name: recording.file, bytes: bytesOf(recording) })),
  );

const token = (name: string) => ({
  name,
  token: Redacted.make(`${name}-${"x".repeat(16)}`),
  page: false,
  metrics: false,
});

/** The tokens of a gateway with two holders. */
export const holders = [token("red"), token("blue")];

/** The headers of who asks: a token of the gateway, and a key of the provider. */
export const holder = (name: "red" | "blue", key = "sk-one") => ({
  "x-recovery-token": `${name}-${"x".repeat(16)}`,
  authorization: `Bearer ${key}`,
});

const mine = holder("red");

/** A gateway in front of a provider that sends a recording, and whoever asks for it. */
export interface Play {
  readonly stage: Stage;
  readonly protocol: ProtocolId;
  readonly recorded: Recorded;
}

export const playOf = (
  protocol: ProtocolId,
  recorded: Recorded,
  lingerMs?: number,
): Effect.Effect<Play, never, Scope.Scope> =>
  Effect.map(
    stage((nth) => [Buffer.from(markOf(protocol, nth)), ...recorded.events], {
      tokens: holders,
      ...(lingerMs === undefined ? {} : { lingerMs }),
    }),
    (it) => ({ stage: it, protocol, recorded }),
  );

/** Says which response it is: a comment, or a line without content. */
const markOf = (protocol: ProtocolId, nth: number): string =>
  hasLines(protocol) ? `{"response":"","number":${nth}}\n` : `: response ${nth}\n\n`;

/** A client that was killed behind an event, and what it had. */
export interface Killed {
  readonly play: Play;
  readonly at: number;
  /** The number of its response among all that the provider was asked for. */
  readonly nth: number;
  readonly provider: Sent;
  readonly client: Client;
  readonly body: string;
  /** Where it stands in a failure's message. */
  readonly note: string;
}

/** The body of a protocol's request; with a word of its own it is another request. */
export const bodyOf = (protocol: ProtocolId, word: string): string => JSON.stringify({ ...bodies[protocol], word });

/** The same JSON with its keys in another order, and with white space. */
const respelt = (body: string): string =>
  JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(body)).reverse()), undefined, 2);

/** Waits until what the provider has sent has come as far as it comes: no more comes in twenty turns of the event loop. */
const settled = (client: Client) =>
  Effect.gen(function* () {
    for (let quiet = 0, had = 0; quiet < 20; quiet += 1) {
      if (client.got().byteLength !== had) quiet = 0;
      had = client.got().byteLength;
      yield* turn;
    }
  });

/** Asks, and kills the client behind so many events of the response. */
export const killed = (play: Play, at: number, { settles = false, headers = mine as Record<string, string> } = {}) =>
  Effect.gen(function* () {
    const { protocol, recorded, stage: it } = play;
    const nth = it.asked.length;
    const body = bodyOf(protocol, `${nth}`);
    const client = ask(it, protocol, headers, body);
    const provider = yield* it.nth(nth);
    if (at > 0) provider.send(at);
    if (at > recorded.events.length) provider.response.end();
    if (settles) yield* settled(client);
    client.leave();
    yield* whole(client);
    const one: Killed = { play, at, nth, provider, client, body, note: `${recorded.name}, event ${at}` };
    return one;
  });

/** Asks again. */
const back = ({ body, play }: Killed, headers: Record<string, string> = {}, as = body) =>
  ask(play.stage, play.protocol, { ...mine, ...headers }, as);

/** The bytes of a response. */
const bytesOfNth = ({ protocol, recorded }: Play, nth: number): Buffer =>
  Buffer.concat([Buffer.from(markOf(protocol, nth)), ...recorded.events]);

/** A client got a response to its last byte. */
const isWhole = (one: Killed, client: Client, nth = one.nth) =>
  Effect.gen(function* () {
    const got = yield* whole(client);
    assert.isFalse(got.broken, one.note);
    if (!got.body.equals(bytesOfNth(one.play, nth))) assert.fail(`${one.note}: ${got.body}`);
    return got;
  });

/** Nobody but the first has asked the provider. */
const isPaidOnce = ({ note, nth, play }: Killed): void => assert.lengthOf(play.stage.asked, nth + 1, note);

/** The run of a response, once it is in a state. */
const runOf = ({ play }: Killed, state: "left" | "ended") => play.stage.lingers(state);

/** A client that comes back, each in its way: what it asks, what it gets, and what that costs. */
export type Way = (one: Killed) => Effect.Effect<void>;

/** Ways that attach: one request at the provider. */
export const attaching: Readonly<Record<string, Way>> = {
  "at once": (one) =>
    Effect.gen(function* () {
      const second = back(one, again);
      one.provider.finish();
      yield* isWhole(one, second);
      isPaidOnce(one);
    }),
  "late, when the run has ended without it": (one) =>
    Effect.gen(function* () {
      yield* runOf(one, one.at > one.play.recorded.events.length ? "ended" : "left");
      one.provider.finish();
      yield* runOf(one, "ended");
      const got = yield* isWhole(one, back(one, again));
      assert.strictEqual(got.head?.headers["x-recovery-attached"], "0", one.note);
      isPaidOnce(one);
    }),
  "twice, killed once more in between": (one) =>
    Effect.gen(function* () {
      const second = back(one, again);
      one.provider.send(1);
      yield* settled(second);
      second.leave();
      yield* whole(second);
      const third = back(one, { "x-stainless-retry-count": "2" });
      one.provider.finish();
      yield* isWhole(one, third);
      isPaidOnce(one);
    }),
  "with its keys in another order": (one) =>
    Effect.gen(function* () {
      const second = back(one, { "x-recovery-attach": "1" }, respelt(one.body));
      one.provider.finish();
      yield* isWhole(one, second);
      isPaidOnce(one);
    }),
};

/** Comes back by its run's name, for the bytes that it has not had. */
export const byName: Way = (one) =>
  Effect.gen(function* () {
    const has = one.client.got().byteLength;
    const run = yield* runOf(one, one.at > one.play.recorded.events.length ? "ended" : "left");
    const second = attach(one.play.stage, run, { ...mine, "last-event-id": String(has) });
    one.provider.finish();
    const got = yield* whole(second);
    assert.isFalse(got.broken, one.note);
    const all = Buffer.concat([one.client.got(), got.body]);
    if (!all.equals(bytesOfNth(one.play, one.nth))) assert.fail(`${one.note}, has ${has}: ${got.body}`);
    isPaidOnce(one);
  });

/** Asks as somebody else while the run lingers, then comes back: nobody has another one's response. */
export const besideStrangers: Way = (one) =>
  Effect.gen(function* () {
    const { play } = one;
    const run = yield* runOf(one, one.at > play.recorded.events.length ? "ended" : "left");
    const other = { ...again, "x-recovery-attach": "1" };
    const strangers: ReadonlyArray<readonly [Record<string, string>, string]> = [
      [holder("red", "sk-two"), one.body],
      [holder("blue"), one.body],
      [mine, bodyOf(play.protocol, `another body ${one.nth}`)],
    ];
    for (const [index, [headers, body]] of strangers.entries()) {
      const nth = one.nth + 1 + index;
      const client = ask(play.stage, play.protocol, { ...headers, ...other }, body);
      (yield* play.stage.nth(nth)).finish();
      yield* isWhole(one, client, nth);
      if (headers === mine) continue;
      const named = yield* whole(attach(play.stage, run, headers));
      assert.strictEqual(named.head?.statusCode, 404, one.note);
    }
    const own = back(one, again);
    one.provider.finish();
    yield* isWhole(one, own);
    assert.lengthOf(play.stage.asked, one.nth + 1 + strangers.length, one.note);
  });

/** Comes back for a run that its user has stopped: it is given nothing of it. */
export const afterCancel: Way = (one) =>
  Effect.gen(function* () {
    const run = yield* runOf(one, one.at > one.play.recorded.events.length ? "ended" : "left");
    const { head } = yield* whole(attach(one.play.stage, run, mine, "DELETE"));
    assert.strictEqual(head?.statusCode, 204, one.note);
    yield* isPaidAnew(one);
  });

/** Comes back when the time of its run is over. */
export const tooLate: Way = (one) =>
  Effect.gen(function* () {
    yield* found(Effect.map(one.play.stage.attachable, ({ length }) => (length === 0 ? true : undefined)));
    yield* isPaidAnew(one);
  });

const isPaidAnew = (one: Killed) =>
  Effect.gen(function* () {
    const second = back(one, { ...again, "x-recovery-attach": "1" });
    (yield* one.play.stage.nth(one.nth + 1)).finish();
    yield* isWhole(one, second, one.nth + 1);
    yield* eventually(() => (one.provider.response.writableEnded || one.provider.isClosed() ? true : undefined));
  });

/** Two clients with the same request, both killed, both come back: each has one of the two responses, whole. */
export const inParallel = (play: Play, at: number) =>
  Effect.gen(function* () {
    const { asked } = play.stage;
    const nth = asked.length;
    const body = bodyOf(play.protocol, `both ${nth}`);
    const firsts: Array<Client> = [];
    for (const index of [0, 1]) {
      firsts.push(ask(play.stage, play.protocol, mine, body));
      (yield* play.stage.nth(nth + index)).send(at);
    }
    for (const client of firsts) client.leave();
    for (const client of firsts) yield* whole(client);
    const seconds = [0, 1].map(() => ask(play.stage, play.protocol, { ...mine, ...again }, body));
    for (const index of [0, 1]) asked[nth + index]?.finish();
    const got: Array<string> = [];
    for (const client of seconds) {
      const { body: bytes, broken } = yield* whole(client);
      assert.isFalse(broken, `${play.recorded.name}, event ${at}`);
      got.push(bytes.toString("latin1"));
    }
    const expected = [0, 1].map((index) => bytesOfNth(play, nth + index).toString("latin1"));
    assert.sameMembers(got, expected, `${play.recorded.name}, event ${at}`);
    assert.lengthOf(asked, nth + 2, `${play.recorded.name}, event ${at}`);
  });
