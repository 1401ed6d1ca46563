/**
 * A response that is copied while its store fails at each write in each way that a store can: nothing leaves before what must be on
 * record first, text goes on, and a call does not (L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer, References } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import type { RelayEnding, RelayEvent } from "../../../src/adapters/relay/RelayReader.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { type Fault, faults, faulty } from "../../runtime/run/FaultyStore.ts";
import { failing, has } from "../../runtime/run/StoreBench.ts";
import { polled, Socket } from "./CopyCases.ts";
import { call, head, pass, planOf, role, type Step, scripted, shown, stop, text } from "./RelayCases.ts";

/** What was on record, and tried, when a write left. */
interface Known {
  readonly bytes: string;
  readonly tags: ReadonlyArray<string>;
  readonly tried: number;
}

/** When the run is another process's, in virtual milliseconds, and whether its response flows on then. */
interface Lost {
  readonly atMs: number;
  readonly flowsOn: boolean;
  readonly ending?: RelayEnding;
}

/** What goes wrong with the writes of these entries. */
interface Faults {
  readonly of: (entries: ReadonlyArray<Entry>) => Fault | undefined;
}

/** Copies a response over a store that fails at one write, or loses the run. */
const copied = (steps: ReadonlyArray<Step>, fault: Fault | Faults, at: number, lost?: Lost, plan = planOf()) =>
  Effect.gen(function* () {
    const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
    const store = faulty(memory, (write, _now, entries) => {
      if (typeof fault === "object") return fault.of(entries);
      return write === at ? fault : undefined;
    });
    const services = yield* Layer.build(
      StreamProcessor.layer.pipe(
        Layer.provide(Layer.merge(Layer.succeed(RunRecorder, store.recorder), UserDecisions.layerHeadless())),
        Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
      ),
    );
    const socket = new Socket();
    const writes: Array<Known> = [];
    const sink: Relay.RelaySink = {
      ...{ drained: socket.drained, isReady: socket.isReady, head: socket.head },
      write: (bytes) => {
        writes.push({ bytes: shown(bytes), tags: store.taken.map((entry) => entry._tag), tried: store.tried() });
        socket.write(bytes);
      },
    };
    const timed = yield* scripted(steps).timed;
    const transport = plan.streaming ? polled(timed) : timed;
    const events: Array<RelayEvent> = [];
    const copy = Relay.copy(
      plan,
      {
        ...{
          transport,
          budget: { max_auto_retries: 0 },
          flowsOn: lost?.flowsOn === true,
          ending: lost?.ending ?? "break",
        },
        onEvent: (event) => void events.push(event),
      },
      sink,
    );
    const ended = Effect.match(copy, { onSuccess: () => "end", onFailure: ({ rule }) => rule });
    const fiber = yield* Effect.forkScoped(Effect.provideContext(ended, services), { startImmediately: true });
    if (lost !== undefined) {
      yield* pass(lost.atMs / 1_000);
      for (const { run_id } of yield* memory.runs()) store.loses(run_id);
    }
    yield* pass(40);
    const exit = fiber.pollUnsafe();
    return { writes, events, text: socket.text, end: exit?._tag === "Success" ? exit.value : undefined };
  }).pipe(Effect.scoped);

/** The writes of a run of one response, and one more: its start, what is shown first, what comes behind, its end. */
const places = [1, 2, 3, 4, 5];

/** The write that puts what is shown first on record. */
const shownAt = 2;

describe("a response that is copied over a store with faults", () => {
  for (const [name, fault] of Object.entries(faults)) {
    it.effect(`shows its text behind the write of it where a write ${name}, and whole (L8)`, () =>
      Effect.gen(function* () {
        const bytes = [role, text("a"), text("b"), stop];
        for (const at of places) {
          const it = yield* copied([head, role, text("a"), 1_000, text("b"), stop, "end"], fault, at);
          const [first] = it.writes;
          assert.strictEqual(it.text, bytes.join(""), `write ${at}`);
          assert.strictEqual(it.end, "end", `write ${at}`);
          assert.isAtLeast(first?.tried ?? 0, shownAt, `write ${at}: shown before a write of it was tried`);
          if (at !== shownAt)
            assert.include(first?.tags ?? [], "FactsRaised", `write ${at}: shown before it was on record`);
        }
      }),
    );

    it.effect(
      `never gives a call to its client before it is on record where a write ${name}, nor its end (L8, L5)`,
      () =>
        Effect.gen(function* () {
          for (const at of places) {
            const it = yield* copied([head, role, text("a"), 1_000, call, stop, "end"], fault, at);
            const given = it.writes.filter(({ bytes }) => bytes.includes("tool_calls"));
            for (const { tags } of given)
              assert.include(tags, "CallHandedOver", `write ${at}: given before it was on record`);
            assert.strictEqual(it.text.includes(stop), given.length === 1, `write ${at}`);
            assert.strictEqual(it.end === "end", given.length === 1, `write ${at}`);
          }
        }),
    );
  }
});

describe("a response whose run another process takes over while it is copied", () => {
  const flows = [head, role, text("a"), 2_000, text("b"), 2_000, stop, "end"] as const;
  const none: Fault = (made) => made;

  it.effect("goes on to its clean end where nobody else can show it, and is not said to be complete (L7)", () =>
    Effect.gen(function* () {
      for (const ending of ["break", "tell", "as_provider"] as const) {
        for (const atMs of [1_000, 3_000]) {
          const it = yield* copied(flows, none, 0, { atMs, flowsOn: true, ending });
          assert.strictEqual(it.text, [role, text("a"), text("b"), stop].join(""), `${ending} at ${atMs}`);
          assert.strictEqual(it.end, "end", `${ending} at ${atMs}`);
          const tags = it.events.map(({ _tag }) => _tag);
          assert.deepStrictEqual(tags, ["AttemptStarted", "RunInterrupted"]);
        }
      }
    }),
  );

  it.effect("breaks where another process may show it", () =>
    Effect.gen(function* () {
      const it = yield* copied(flows, none, 0, { atMs: 1_000, flowsOn: false });
      assert.deepStrictEqual([it.text, it.end], [[role, text("a")].join(""), "lifecycle_closed"]);
    }),
  );

  it.effect("breaks in front of its call, and where its provider breaks (L6, L5)", () =>
    Effect.gen(function* () {
      const lost = { atMs: 1_000, flowsOn: true };
      const calling = yield* copied([head, role, text("a"), 2_000, call, stop, "end"], none, 0, lost);
      assert.deepStrictEqual([calling.text, calling.end], [[role, text("a")].join(""), "lifecycle_closed"]);
      const broken = yield* copied([head, role, text("a"), 2_000, text("b"), "end"], none, 0, lost);
      assert.deepStrictEqual([broken.text, broken.end], [[role, text("a"), text("b")].join(""), "lifecycle_closed"]);
    }),
  );

  /** Every write behind the start of a run is refused: another process has it. */
  const fenced: Faults = { of: (entries) => (has(entries, "RunStarted") ? undefined : failing("fenced")) };

  it.effect("does not begin to flow where the very write of its first text finds the loss (L6)", () =>
    Effect.gen(function* () {
      const it = yield* copied(flows, fenced, 0, { atMs: 0, flowsOn: true });
      assert.deepStrictEqual([it.text, it.end], ["", "lifecycle_closed"]);
    }),
  );

  it.effect("does not flow on as a document, whose calls nobody has seen (L6)", () =>
    Effect.gen(function* () {
      const json = { ...head, headers: [["Content-Type", "application/json"]] as const };
      const calls = '"tool_calls":[{"id":"c","type":"function","function":{"name":"pay","arguments":"{}"}}]';
      const document = `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"content":null,${calls}}}]}`;
      const plain = planOf({ stream: false });
      const lost = { atMs: 1_000, flowsOn: true };
      const control = yield* copied(
        [json, document, "end"],
        { of: () => undefined },
        0,
        { ...lost, atMs: 30_000 },
        plain,
      );
      assert.deepStrictEqual([control.text, control.end], [document, "end"]);
      const late = faults["is slow"] ?? none;
      const slow: Fault = () => Effect.andThen(late(Effect.void), failing("fenced")(Effect.void));
      for (const faulted of [fenced, { of: (all) => (has(all, "RunStarted") ? undefined : slow) } satisfies Faults]) {
        const it = yield* copied([json, document, "end"], faulted, 0, lost, plain);
        assert.deepStrictEqual([it.text, it.end], ["", "lifecycle_closed"]);
      }
      // One that is longer than its limit is streamed as it comes.
      const long = [`{"choices":[{"message":{"content":"${"x".repeat(9 * 1024 * 1024)}`, "x", 2_000, `",${calls}}}]}`];
      const it = yield* copied([json, ...long, "end"], { of: () => undefined }, 0, lost, plain);
      assert.notInclude(it.text.slice(-200), "pay");
      assert.strictEqual(it.end, "lifecycle_closed");
    }),
  );

  it.effect("never ends as its provider did where its call is kept back (L5)", () =>
    Effect.gen(function* () {
      const gemini = (part: object, more: object = {}) =>
        `data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: "model", parts: [part] }, ...more }] })}\r\n\r\n`;
      const calling = gemini({ functionCall: { name: "pay", args: {} } }, { finishReason: "STOP" });
      const url = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse";
      const plan = planOf({ contents: [] }, url);
      const steps = [head, gemini({ text: "a" }), 2_000, calling, "end"] as const;
      const refused = (why: "fenced" | "unavailable"): Faults => ({
        of: (entries) => (has(entries, "CallHandedOver") ? failing(why) : undefined),
      });
      for (const flowsOn of [false, true]) {
        for (const [faulted, atMs] of [
          [{ of: () => undefined }, 1_000],
          [refused("fenced"), 30_000],
          [refused("unavailable"), 30_000],
        ] as const) {
          const it = yield* copied(steps, faulted, 0, { atMs, flowsOn, ending: "as_provider" }, plan);
          assert.notInclude(it.text, "pay");
          assert.notStrictEqual(it.end, "end", `flowsOn ${flowsOn} at ${atMs}`);
        }
      }
    }),
  );
});
