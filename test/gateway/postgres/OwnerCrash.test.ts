/**
 * Kills the gateway that drives runs (kill -9, a process of its own) while clients read those runs at another one, by its address.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { freePort } from "../../../scripts/programs/FreePort.ts";
import type { AttachableRun } from "../../../src/gateway/api/Traffic.ts";
import { type Served, serve } from "../../cli/ServeProcess.ts";
import { eventually, polled } from "../../Polling.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { again, ask, attach, type Client, eventsOf, providerOf, runOf, whole } from "../attach/AttachCases.ts";
import { bodies, send } from "../GatewayCases.ts";
import { credential, type Node, node } from "./Nodes.ts";

const protocol = "openai-chat";
const events = eventsOf(protocol);
const all = Buffer.concat(events);

/** Events of a response that have come when its gateway dies: reasoning and text, and no end. */
const before = 4;

const bodyOf = (user: string): string => JSON.stringify({ ...bodies[protocol], user });

/** Starts the gateway that is going to die. */
const owning = (db: string, upstream: string) =>
  Effect.flatMap(freePort, (port) =>
    serve([
      ...["--port", String(port), "--advertise", `http://127.0.0.1:${port}`, "--db", db, "--lease-ms", "1000"],
      ...["--openai-url", `${upstream}/v1`, "--linger-ms", "60000"],
    ]),
  );

const killed = ({ child, exited }: Served): Effect.Effect<unknown> => {
  child.kill("SIGKILL");
  return Effect.promise(() => exited);
};

/** Waits until a client has so many bytes. */
const has = ({ got }: Client, bytes: number) => eventually(() => (got().byteLength >= bytes ? true : undefined));

/** Waits until a gateway knows that the client of a run has left. */
const isLeft = ({ url }: Pick<Served, "url">, run: string) =>
  polled(
    Effect.map(
      Effect.promise(() => send(`${url}/recovery/api/streams`)),
      ({ text }) => {
        const runs: ReadonlyArray<AttachableRun> = JSON.parse(text).streams;
        return runs.find(({ run_id, state }) => run_id === run && state === "left");
      },
    ),
  );

/** Waits until a run is on record: a gateway that is killed within a second of its request may never have written it (L8). */
const isRecorded = ({ recorder }: Node, run: string) => polled(Effect.orDie(recorder.run(run)));

/** Waits until a run has ended on record, as any gateway sees it. */
const endOf = ({ recorder }: Node, run: string) =>
  polled(Effect.map(Effect.orDie(recorder.run(run)), (record) => (record?.end === undefined ? undefined : record)));

/** What a client has is the response from a byte on, each byte once, and it is not taken for whole. */
const isCut = (what: string, { body, broken }: { readonly body: Buffer; readonly broken: boolean }, from = 0) => {
  assert.isTrue(broken, `${what}: no end that was never given`);
  assert.deepStrictEqual(body, all.subarray(from, from + body.byteLength), what);
  assert.isBelow(from + body.byteLength, all.byteLength, what);
};

describe("clients that read at another gateway while that of their runs is killed", () => {
  it.live(
    "are told by a break, have no byte twice and no end that was none; their repeats are runs of their own, as after any crash",
    () =>
      Effect.gen(function* () {
        const db = yield* Databases.empty;
        const provider = yield* providerOf(events);
        const owner = yield* owning(db, provider.at);
        const other = yield* node(db, provider.at, { leaseMs: 1_000, advertise: "http://127.0.0.1:1" });
        const shown = Buffer.concat(events.slice(0, before)).byteLength;
        const begun = Effect.fnUntraced(function* (user: string, nth: number) {
          const client = ask(owner, protocol, credential, bodyOf(user));
          const sent = yield* provider.nth(nth);
          sent.send(before);
          yield* has(client, shown);
          return { client, sent, run: yield* runOf(client) };
        });
        const named = yield* begun("by its run's name", 0);
        const asking = yield* begun("by asking again", 1);
        const ending = yield* begun("at its end", 2);
        // One reads on behind the byte that it has, one from the first byte, each in the place of the client that was there.
        named.client.leave();
        asking.client.leave();
        yield* isLeft(owner, asking.run);
        const byName = attach(other, named.run, { ...credential, "last-event-id": String(shown - 7) });
        const byAsking = ask(other, protocol, { ...credential, ...again }, bodyOf("by asking again"));
        const atEnd = attach(other, ending.run, { ...credential, "last-event-id": "0" });
        yield* Effect.all([has(byName, 7), has(byAsking, shown), has(atEnd, shown)], { discard: true });
        // Its end may or may not arrive before the kill.
        ending.sent.finish();
        for (const run of [named.run, asking.run]) yield* isRecorded(other, run);
        yield* killed(owner);
        const [cutByName, cutByAsking, last] = yield* Effect.all([whole(byName), whole(byAsking), whole(atEnd)], {
          concurrency: 3,
        });
        isCut("by its name", cutByName, shown - 7);
        isCut("by asking again", cutByAsking);
        assert.strictEqual(cutByAsking.head?.headers["x-recovery-attached"], "0");
        if (last.broken) isCut("at its end", last);
        else assert.deepStrictEqual(last.body, all);
        // The other gateway decides what the dead one has left. Nothing is sent again for a client that is gone.
        for (const run of [named.run, asking.run]) {
          const { end, incidents } = yield* endOf(other, run);
          assert.deepInclude(end, { state: "stopped", reason: "process_lost", assumed: true });
          assert.lengthOf(incidents, 0, "nothing is decided about a run whose record may be incomplete");
        }
        assert.lengthOf(provider.asked, 3);
        const repeat = ask(other, protocol, { ...credential, ...again }, bodyOf("by asking again"));
        (yield* provider.nth(3)).finish();
        const got = yield* whole(repeat);
        assert.isFalse(got.broken);
        assert.deepStrictEqual(got.body, all);
        assert.isUndefined(got.head?.headers["x-recovery-attached"], "a run of its own");
        assert.notStrictEqual(got.head?.headers["x-recovery-run"], asking.run);
        const gone = yield* whole(attach(other, named.run, credential));
        assert.strictEqual(gone.head?.statusCode, 404);
        assert.strictEqual(gone.head?.headers["x-recovery-refused"], "stream");
      }).pipe(Effect.scoped),
  );
});
