/** A response that is copied to a sink: the same bytes as one that is read, in the step in which they leave, and none while it drains. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, type Fiber, Random } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { Presence } from "../../../src/stages/output/Presence.ts";
import { seeded } from "../../Seeded.ts";
import { polled, Socket } from "./CopyCases.ts";
import { call, head, layer, pass, planOf, reset, role, type Step, scripted, settle, stop, text } from "./RelayCases.ts";

/** Copies a request to a socket in the background. */
const copying = (
  socket: Socket,
  options: Partial<Relay.RelayOptions>,
  ...attempts: ReadonlyArray<ReadonlyArray<Step>>
) =>
  Effect.gen(function* () {
    const script = scripted(...attempts);
    const copied = Relay.copy(planOf(), { ...options, transport: polled(yield* script.timed) }, socket);
    const fiber = yield* Effect.forkScoped(Effect.match(copied, endings), { startImmediately: true });
    return { fiber, seen: script.seen };
  });

const endings = { onSuccess: () => "end", onFailure: ({ rule }: { readonly rule: string }) => rule };

const endOf = (fiber: Fiber.Fiber<string, unknown>): string | undefined => {
  const exit = fiber.pollUnsafe();
  return exit?._tag === "Success" ? exit.value : undefined;
};

const pieces = (count: number): Array<string> => Array.from({ length: count }, (_, at) => text(`${at} `));

describe.concurrent("a response that is copied", () => {
  it.effect("to a socket that must drain behind every write: nothing is lost, doubled or moved", () =>
    Effect.gen(function* () {
      const socket = new Socket(() => true);
      const steps = pieces(12).flatMap((piece): Array<Step> => [piece, 100]);
      const { fiber } = yield* copying(socket, {}, [head, role, ...steps, stop, "end"]);
      for (let round = 0; round < 40; round += 1) {
        yield* pass(0.5);
        socket.drains();
      }
      assert.strictEqual(socket.text, role + pieces(12).join("") + stop);
      assert.strictEqual(endOf(fiber), "end");
      assert.strictEqual(socket.overrun, 0);
      assert.isAbove(socket.writes, 2);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("to a socket that never drains is not shown, and read no further (L4, L11)", () =>
    Effect.gen(function* () {
      const socket = new Socket(() => true);
      const { fiber, seen } = yield* copying(socket, {}, [head, role, 1_000, ...pieces(500), stop, "end"]);
      yield* pass(5);
      assert.isTrue(socket.text.length <= (role + pieces(500).join("")).length / 2);
      assert.isUndefined(endOf(fiber));
      assert.isAtLeast(seen.reads, 1);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("counts as shown what the socket took, and not what waits for its drain (L4)", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const shownAt = (fills: boolean) =>
        Effect.gen(function* () {
          const socket = new Socket();
          if (fills) socket.fills();
          yield* copying(socket, {}, [head, role, text("a"), "silence"]);
          yield* pass(2);
          assert.strictEqual(socket.text, fills ? "" : role + text("a"));
          assert.isTrue(yield* socket.response?.cancel ?? Effect.succeed(false));
          yield* pass(1);
          const record = yield* recorder.run(socket.response?.run_id ?? "");
          return record?.incidents.map((incident) => incident.facts.shown);
        });
      assert.deepStrictEqual(yield* shownAt(true), ["nothing"]);
      assert.deepStrictEqual(yield* shownAt(false), ["text"]);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("is recorded before its first text is written (L8)", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      const socket = new Socket();
      const { fiber } = yield* copying(socket, {}, [head, role, text("a"), 1_000, reset()]);
      yield* pass(3);
      assert.strictEqual(endOf(fiber), "text_shown");
      const record = yield* recorder.run(socket.response?.run_id ?? "");
      assert.deepStrictEqual(
        record?.incidents.map((incident) => incident.facts.shown),
        ["text"],
      );
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("leaves as one array where its events came apart, and as views where copying them would be long", () =>
    Effect.gen(function* () {
      const arrays: Array<number> = [];
      const socket = new Socket();
      const sink = { ...sinkOf(socket), write: (bytes: ReadonlyArray<Uint8Array>) => void arrays.push(bytes.length) };
      for (const size of [20, 20_000]) {
        const { transport } = scripted([head, role, text("x".repeat(size)), text("y".repeat(size)), stop, "end"]);
        yield* Relay.copy(planOf(), { transport: polled(transport), reveal: "on_complete" }, sink);
      }
      assert.strictEqual(arrays[0], 1);
      assert.isAbove(arrays[1] ?? 0, 1);
      assert.lengthOf(arrays, 2);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("keeps its client waiting by comments, each a period behind what left last, and none while it drains", () =>
    Effect.gen(function* () {
      const socket = new Socket();
      const options = { keepAliveMs: 1_000 };
      yield* copying(socket, options, [head, role, 10_500, text("a"), stop, "end"]);
      yield* pass(4);
      assert.strictEqual(socket.text, ": keep-alive\n\n".repeat(4));
      const full = new Socket(() => true);
      yield* copying(full, options, [head, role, 10_500, text("a"), stop, "end"]);
      yield* pass(4);
      assert.strictEqual(full.text, ": keep-alive\n\n");
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect(
    "is read no further than its client takes it: of 16 MiB never more than a few chunks are on their way (L11)",
    () =>
      Effect.gen(function* () {
        const size = 64 * 1024;
        const count = 256;
        const socket = new Socket(() => true);
        let taken = 0;
        const chunk = text("x".repeat(size));
        const { transport } = scripted([head, role, ...Array.from({ length: count }, () => chunk), stop, "end"]);
        const counting = polled(transport, (bytes) => {
          taken += bytes;
        });
        const fiber = yield* Effect.forkScoped(
          Effect.match(Relay.copy(planOf(), { transport: counting }, socket), endings),
          { startImmediately: true },
        );
        let most = 0;
        for (let round = 0; round < 4 * count && endOf(fiber) === undefined; round += 1) {
          yield* settle;
          most = Math.max(most, taken - socket.text.length);
          socket.drains();
        }
        assert.strictEqual(endOf(fiber), "end");
        assert.strictEqual(taken, socket.text.length);
        assert.isAbove(taken, count * size);
        assert.isAtMost(most, 3 * chunk.length);
      }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("gives a response up that broke, before the break is told", () =>
    Effect.gen(function* () {
      const script = scripted([head, role, text("a"), reset()]);
      const told: Array<number> = [];
      const onEvent = ({ _tag }: { readonly _tag: string }) =>
        void (_tag === "RunInterrupted" && told.push(script.seen.aborted));
      const options = { transport: polled(yield* script.timed), onEvent };
      const copy = Relay.copy(planOf(), options, new Socket());
      const fiber = yield* Effect.forkScoped(Effect.match(copy, endings), { startImmediately: true });
      yield* pass(3);
      assert.strictEqual(endOf(fiber), "text_shown");
      assert.deepStrictEqual([...told, script.seen.aborted], [1, 1]);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );

  it.effect("fails as a defect where the socket throws, and the run is over", () =>
    Effect.gen(function* () {
      const { transport } = scripted([head, role, text("a"), stop, "end"]);
      const socket = new Socket();
      const broken = { ...sinkOf(socket), write: () => assert.fail("closed in the middle of a write") };
      const exit = yield* Effect.exit(Relay.copy(planOf(), { transport: polled(transport) }, broken));
      assert.match(String(exit), /closed in the middle/);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  );
});

const sinkOf = ({ drained, head: begins, isReady, write }: Socket): Relay.RelaySink => ({
  ...{ drained, isReady, write },
  head: begins,
});

/** What a seed plays: the attempts, the client's comings and goings, and the bytes behind which its socket must drain. */
const played = (seed: number) => {
  const next = seeded(seed);
  const pick = <A>(of: ReadonlyArray<A>): A => of[Math.floor(next() * of.length)] as A;
  const attempts = Array.from({ length: 3 }, () => {
    const steps: Array<Step> = [head, role];
    for (let left = Math.floor(next() * 8); left > 0; left -= 1)
      steps.push(next() < 0.1 ? call : text(`${Math.floor(next() * 1e6)}`), 250 * (1 + Math.floor(next() * 8)));
    const refused = 'data: {"error":{"code":"context_length_exceeded","message":"too long"}}\n\n';
    return [
      ...steps,
      ...pick<ReadonlyArray<Step>>([[stop, "end"], [stop, "end"], [reset()], ["end"], [refused, "end"]]),
    ];
  });
  const options = {
    reveal: pick(["live", "on_complete"] as const),
    head: pick(["first", "content", { withinMs: 3_000 }] as const),
    ending: pick(["break", "tell", "as_provider"] as const),
    ...(next() < 0.5 ? { keepAliveMs: 1_000 } : {}),
  };
  const goes = next() < 0.3 ? 2 + Math.floor(next() * 10) : undefined;
  const drains = Array.from({ length: 200 }, () => (next() < 0.4 ? 1 + Math.floor(next() * 6) : 0));
  return { attempts, options, goes, drains };
};

/** Half seconds that a schedule takes at most. */
const ticks = 130;

const schedule = (seed: number, way: "open" | "copy") =>
  Effect.gen(function* () {
    const { attempts, drains, goes, options } = played(seed);
    const script = scripted(...attempts);
    const presence = new Presence();
    let tick = 0;
    let drainsAt: number | undefined;
    let blocks = 0;
    const socket = new Socket(({ text: all }) => {
      const block = Math.floor(all.length / 100);
      const ticksFull = block > blocks ? (drains[block] ?? 0) : 0;
      blocks = block;
      if (ticksFull > 0) drainsAt = tick + ticksFull;
      return ticksFull > 0;
    });
    const all = { ...options, presence, transport: polled(yield* script.timed), budget: { max_auto_retries: 2 } };
    const read = Effect.gen(function* () {
      const response = yield* Relay.open(planOf(), all);
      for (;;) {
        const bytes = yield* response.read;
        if (bytes === undefined) return;
        socket.write(bytes);
        yield* socket.drained;
      }
    });
    const ran = way === "open" ? read : Relay.copy(planOf(), all, socket);
    const fiber = yield* Effect.forkScoped(Effect.match(ran, endings), { startImmediately: true });
    for (; tick < ticks && endOf(fiber) === undefined; tick += 1) {
      if (tick === goes) presence.markAway();
      if (goes !== undefined && tick === goes + 4) presence.markPresent();
      if (drainsAt === tick) socket.drains();
      yield* settle;
      yield* pass(0.5);
    }
    assert.strictEqual(socket.overrun, 0, `seed ${seed}`);
    return { text: socket.text, end: endOf(fiber), opened: script.seen.opened };
  }).pipe(Effect.scoped, Random.withSeed(`copy-${seed}`), Effect.provide(layer));

describe.concurrent("schedules of drains, absences, keep-alives and breaks", () => {
  for (let first = 1; first <= 200; first += 50)
    it.effect(`a copy has the bytes of a response that is read: seeds ${first} to ${first + 49}`, () =>
      Effect.gen(function* () {
        for (let seed = first; seed < first + 50; seed += 1) {
          const opened = yield* schedule(seed, "open");
          assert.deepStrictEqual(yield* schedule(seed, "copy"), opened, `seed ${seed}`);
        }
      }),
    );
});
