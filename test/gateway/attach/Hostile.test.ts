/** What is asked of a run's stream by who must not have it, in every spelling, and what races for it. */
import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { eventually, found } from "../../Polling.ts";
import { bodies, paths, send } from "../GatewayCases.ts";
import { again, ask, attach, type Client, eventsOf, type Stage, stage, whole } from "./AttachCases.ts";
import { holder, holders } from "./RecordedCases.ts";

const protocol = "openai-chat" as const;
const events = eventsOf(protocol);
const mine = holder("red");

/** The bytes of a response: its first event says which one it is. */
const eventsOfNth = (nth: number): ReadonlyArray<Buffer> => [Buffer.from(`: response ${nth}\n\n`), ...events];
const bytesOfNth = (nth: number): string => Buffer.concat(eventsOfNth(nth)).toString();

/** A gateway with two tokens, and a run whose client has left behind some events. */
const left = (program = {}) =>
  Effect.gen(function* () {
    const it = yield* stage(eventsOfNth, { tokens: holders, ...program });
    const first = ask(it, protocol, mine);
    const provider = yield* it.nth(0);
    provider.send(4);
    yield* Effect.promise(() => first.head);
    first.leave();
    const run = yield* it.lingers("left");
    return { ...it, provider, run };
  });

/** The run is as it was: nobody has cancelled it, reads it or has asked the provider for anything. */
const isUntouched = ({ asked, attachable, provider, run }: Effect.Success<ReturnType<typeof left>>, note: string) =>
  Effect.gen(function* () {
    const runs = yield* attachable;
    assert.deepStrictEqual(
      runs.map(({ attached, run_id, state }) => `${run_id} ${state} ${attached}`),
      [`${run} left 0`],
      note,
    );
    assert.lengthOf(asked, 1, note);
    assert.isFalse(provider.isClosed(), note);
  });

/** Sends a request whose target is written byte for byte, and reads the whole answer. */
const raw = ({ url }: Pick<Stage, "url">, method: string, target: string): Effect.Effect<string> =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        const { hostname, port } = new URL(url);
        const socket = connect(Number(port), hostname);
        let got = "";
        socket.on("data", (chunk) => {
          got += chunk.toString("latin1");
        });
        socket.on("error", () => undefined);
        socket.on("close", () => resolve(got));
        const own = Object.entries(mine).map(([name, value]) => `${name}: ${value}`);
        const head = [`${method} ${target} HTTP/1.1`, `host: ${hostname}:${port}`, "connection: close", ...own];
        socket.write(Buffer.from(`${head.join("\r\n")}\r\n\r\n`));
      }),
  );

const statusIn = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

/** Other spellings of a run's address, and addresses near it. */
const spellings = (run: string): ReadonlyArray<string> => {
  const at = "/recovery/streams";
  const escaped = [...Buffer.from(run)].map((byte) => `%${byte.toString(16)}`).join("");
  const names = [
    ...["", "/", ".", "..", "%2e", "%2e%2e", "%", "%zz", "%00", "*", "__proto__", "constructor", "toString"],
    ...[escaped, `%${run}`, `${run}%`, `${run}%00`, `${run}%20`, `${run}%0d%0aset-cookie:%20a=b`, `${run}.`],
    ...[`${run}/`, `${run}/.`, `${run}/..`, `${run}/../${run}`, `${run}%2f`, `${run}\\`, `${run};x=1`, `${run}#x`],
    ...[`./${run}`, `../streams/${run}`, `x/../${run}`, `%2e/${run}`, `/${run}`, `%2f${run}`, `\\${run}`],
    ...[run.toUpperCase(), run.slice(0, -1), `${run}0`, `${run},${run}`, `${run}é`, `ｇ${run.slice(1)}`, "гw_1", "🦊"],
    ...["a".repeat(10_000), run.repeat(200), "%61".repeat(3_000), "../".repeat(2_000)],
  ];
  const near = [
    ...[
      at,
      `/Recovery/streams/${run}`,
      `/recovery/Streams/${run}`,
      `/recovery//streams/${run}`,
      `//recovery/streams/${run}`,
    ],
    ...[
      `/recovery%2fstreams/${run}`,
      `/%72ecovery/streams/${run}`,
      `/recovery/streams%2f${run}`,
      `/./recovery/streams/${run}`,
    ],
    ...[`/live/recovery/streams/${run}`, `/on_complete/recovery/streams/${run}`, `/u/openai/recovery/streams/${run}`],

    ...[`http://127.0.0.1/recovery/streams/${run}`, `/recovery/stream/${run}`, `/recovery/api/streams/${run}`],
  ];
  return [...names.map((name) => `${at}/${name}`), ...near];
};

describe("A run's address", () => {
  it.live(
    "is the one that is written: in every other spelling there is nothing, nothing is stopped and nothing leaves",
    () =>
      Effect.gen(function* () {
        const it = yield* left();
        for (const target of spellings(it.run))
          for (const method of ["GET", "HEAD", "DELETE"]) {
            const note = `${method} ${target.slice(0, 80)}`;
            const leaves = eventually(() => (it.asked.length > 1 ? "it has left for the provider" : undefined));
            const answer = yield* Effect.raceFirst(raw(it, method, target), leaves);
            const status = statusIn(answer);
            assert.isTrue(status >= 400 && status < 500, `${note}: ${answer.slice(0, 200)}`);
            assert.notInclude(answer, "response 0", note);
            assert.notInclude(answer.toLowerCase(), "set-cookie", note);
            yield* isUntouched(it, note);
          }
        const got = yield* raw(it, "HEAD", `/recovery/streams/${it.run}?a=b`);
        assert.strictEqual(statusIn(got), 200);
      }),
  );

  it.live(
    "is nothing to who shows another token or credential: they are told what they are told of no run at all",
    () =>
      Effect.gen(function* () {
        const it = yield* left();
        const { authorization, ...token } = mine;
        const strangers: ReadonlyArray<Record<string, string>> = [
          holder("blue"),
          holder("red", "sk-two"),
          holder("red", "SK-ONE"),
          holder("red", ""),
          token,
          { ...mine, "x-api-key": "sk-one" },
          { ...token, "x-api-key": "sk-one" },
          { ...mine, "openai-organization": "other" },
        ];
        for (const headers of strangers)
          for (const method of ["GET", "HEAD", "DELETE"]) {
            const note = `${method} ${JSON.stringify(headers)}`;
            const found = yield* whole(attach(it, it.run, headers, method));
            const none = yield* whole(attach(it, "gw_none", headers, method));
            assert.strictEqual(found.head?.statusCode, 404, note);
            assert.deepStrictEqual(found.body, none.body, note);
            const heads = [found, none].map(({ head }) => head?.rawHeaders.filter((value) => !/GMT$/.test(value)));
            assert.deepStrictEqual(heads[0], heads[1], note);
            yield* isUntouched(it, note);
          }
        const without = yield* whole(attach(it, it.run, { authorization }));
        assert.strictEqual(without.head?.statusCode, 401);
        yield* isUntouched(it, "no token");
      }),
  );

  it.live("accepts as Last-Event-ID only a number of bytes that were sent", () =>
    Effect.gen(function* () {
      const it = yield* left();
      const sent = Buffer.concat(eventsOfNth(0).slice(0, 4)).byteLength;
      const wrong = [
        "+1",
        "-0",
        "1.0",
        "1e1",
        "0x1",
        "1,1",
        "1 1",
        "NaN",
        "Infinity",
        "null",
        "9".repeat(12),
        "9".repeat(400),
      ];
      for (const at of [...wrong, String(sent + 1)])
        for (const method of ["GET", "HEAD"]) {
          const got = yield* whole(attach(it, it.run, { ...mine, "last-event-id": at }, method));
          assert.strictEqual(got.head?.statusCode, 400, `${method} ${at}`);
          yield* isUntouched(it, `${method} ${at}`);
        }
    }),
  );
});

/** What clients got, without those that lost their place. */
const bodiesOf = (clients: ReadonlyArray<Client>) =>
  Effect.map(
    Effect.forEach(clients, (client) => whole(client)),
    (all) => all.filter(({ broken }) => !broken).map(({ body }) => body.toString()),
  );

describe("Those that race for a run", () => {
  it.live("are twenty equal repeats: one attaches, each other one has a response of its own", () =>
    Effect.gen(function* () {
      const it = yield* left();
      const repeats = Array.from({ length: 20 }, () => ask(it, protocol, { ...mine, ...again }));
      yield* it.nth(19);
      for (const sent of it.asked) sent.finish();
      const got = yield* bodiesOf(repeats);
      assert.lengthOf(it.asked, 20);
      assert.sameMembers(
        got,
        Array.from({ length: 20 }, (_, nth) => bytesOfNth(nth)),
      );
    }),
  );

  it.live("are twenty that read it by its name: the last one has every byte, each other one breaks", () =>
    Effect.gen(function* () {
      const it = yield* left();
      const readers = Array.from({ length: 20 }, () => attach(it, it.run, mine));
      yield* found(Effect.map(it.attachable, ([one]) => ((one?.attached ?? 0) >= 20 ? true : undefined)));
      it.provider.finish();
      assert.deepStrictEqual(yield* bodiesOf(readers), [bytesOfNth(0)]);
      assert.lengthOf(it.asked, 1);
    }),
  );

  it.live(
    "are its user's Stop, said twice at once, and a repeat: one end on record, and no byte of it to the repeat",
    () =>
      Effect.gen(function* () {
        const it = yield* left();
        const stops = [attach(it, it.run, mine, "DELETE"), attach(it, it.run, mine, "DELETE")];
        const statuses = (yield* Effect.forEach(stops, (stop) => whole(stop))).map(({ head }) => head?.statusCode);
        assert.sameMembers(statuses, [204, 404]);
        assert.strictEqual((yield* whole(attach(it, it.run, mine, "DELETE"))).head?.statusCode, 404);
        for (const method of ["GET", "HEAD"])
          assert.strictEqual((yield* whole(attach(it, it.run, mine, method))).head?.statusCode, 404);
        const repeat = ask(it, protocol, { ...mine, "x-recovery-attach": "1" });
        (yield* it.nth(1)).finish();
        assert.deepStrictEqual(yield* bodiesOf([repeat]), [bytesOfNth(1)]);
        const ends = yield* it.until((runs) =>
          runs.every(({ end }) => end) ? runs.map(({ end }) => end?.reason) : undefined,
        );
        assert.deepStrictEqual(ends, ["tool_calls", "user_cancelled"]);
        yield* eventually(() => (it.provider.isClosed() ? true : undefined));
      }),
  );

  it.live("come behind the end of a run that was stopped afterwards: it stays completed, and is forgotten", () =>
    Effect.gen(function* () {
      const it = yield* left();
      it.provider.finish();
      yield* it.lingers("ended");
      assert.strictEqual((yield* whole(attach(it, it.run, mine, "DELETE"))).head?.statusCode, 204);
      assert.strictEqual((yield* whole(attach(it, it.run, mine))).head?.statusCode, 404);
      assert.lengthOf(yield* it.attachable, 0);
      assert.strictEqual((yield* it.runs)[0]?.end?.state, "completed");
    }),
  );
});

describe("A response that becomes too long while its client is away", () => {
  it.live("is refused to it by its name, is nothing to others, and its repeat has a run of its own", () =>
    Effect.gen(function* () {
      const long = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(1024 * 1024)}"}}]}\n\n`);
      const it = yield* stage(
        (nth) => [
          ...eventsOfNth(nth).slice(0, 4),
          ...Array.from({ length: nth === 0 ? 9 : 0 }, () => long),
          ...events.slice(3),
        ],
        { tokens: holders },
      );
      const first = ask(it, protocol, mine);
      const provider = yield* it.nth(0);
      provider.send(4);
      yield* Effect.promise(() => first.head);
      first.leave();
      const run = yield* it.lingers("left");
      provider.send(9);
      yield* found(Effect.map(it.attachable, ({ length }) => (length === 0 ? true : undefined)));
      for (const method of ["GET", "HEAD", "DELETE"]) {
        const own = yield* whole(attach(it, run, mine, method));
        assert.strictEqual(own.head?.statusCode, 410, method);
        assert.strictEqual(own.head?.headers["x-recovery-refused"], "evicted", method);
        assert.strictEqual((yield* whole(attach(it, run, holder("blue"), method))).head?.statusCode, 404, method);
      }
      const repeat = ask(it, protocol, { ...mine, ...again, "x-recovery-attach": "1" });
      (yield* it.nth(1)).finish();
      assert.deepStrictEqual(yield* bodiesOf([repeat]), [bytesOfNth(1)]);
      // Nobody can have it any more: it is not paid for to its end.
      yield* eventually(() => (provider.isClosed() ? true : undefined));
      assert.strictEqual(
        yield* it.until((runs) => runs.find((it) => it.run_id === run)?.end?.reason),
        "user_cancelled",
      );
    }),
  );
});

describe("A word about lingering or attaching", () => {
  const body = JSON.stringify(bodies[protocol]);
  const saying = ({ url }: Pick<Stage, "url">, words: ReadonlyArray<string>) => {
    const flat = ["host", new URL(url).host, "content-type", "application/json", ...words];
    return send(`${url}${paths[protocol]}`, { body, headers: [...flat, "content-length", String(body.length)] });
  };

  it.live("that is nonsense is refused by a plain 400, and nothing leaves", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const lingers = [
        "",
        "-1",
        "-0",
        "+1",
        "1.5",
        "1e3",
        "0x10",
        "NaN",
        "Infinity",
        "true",
        "1;2",
        "1, 2",
        "1 0",
        "\u00b2",
      ];
      const attaches = ["", "-1", "01", "2", "yes", "true", "1, 0", "1 1", "gw_1", "\u00b9"];
      const wrong: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
        ...lingers.map((value) => ["linger", ["x-recovery-linger", value]] as const),
        ...attaches.map((value) => ["attach", ["x-recovery-attach", value]] as const),
        ["linger", ["x-recovery-linger", "5", "X-Recovery-Linger", "6"]],
        ["attach", ["x-recovery-attach", "1", "X-Recovery-Attach", "0"]],
      ];
      for (const [reason, words] of wrong) {
        const got = yield* Effect.promise(() => saying(it, words));
        assert.strictEqual(got.status, 400, words.join());
        assert.strictEqual(got.headers["x-recovery-refused"], reason, words.join());
      }
      assert.lengthOf(it.asked, 0);
      assert.lengthOf(yield* it.runs, 0);
    }),
  );

  it.live("that asks for more than is permitted has as much as is permitted, however large it is", () =>
    Effect.gen(function* () {
      const it = yield* stage(events, { lingerMs: 0, lingerMaxMs: 5_000 });
      const values = ["5001", "4294967296", "9007199254740993", "9".repeat(400), `${"0".repeat(400)}7`];
      for (const [index, value] of values.entries()) {
        const got = saying(it, ["x-recovery-linger", value]);
        (yield* it.nth(index)).finish();
        const { headers } = yield* Effect.promise(() => got);
        assert.strictEqual(headers["x-recovery-linger"], value.startsWith("0") ? "7" : "5000", value);
      }
    }),
  );

  it.live("that asks to attach where there is nothing to attach to has a run of its own", () =>
    Effect.gen(function* () {
      const it = yield* stage(events, { lingerMs: 0 });
      const got = saying(it, ["x-recovery-attach", "1"]);
      (yield* it.nth(0)).finish();
      assert.strictEqual((yield* Effect.promise(() => got)).text, Buffer.concat(events).toString());
    }),
  );
});
