/**
 * Plays the provider of a scenario. It answers the request that it gets: the same request again gives the same response from its
 * first serial, a continuation gives a new response, and a cursor resumes after the part that it names.
 */
import { Effect, Exit, Stream } from "effect";
import type { Failure } from "../../../src/domain/Failure.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import type { Calm } from "../Calm.ts";
import { Edges } from "../Edges.ts";
import type { Journal, Part, SourceEnd } from "../Journal.ts";
import type { AttemptScript, PartStep, Scenario, Step } from "../Scenario.ts";
import type { Network } from "./Network.ts";
import { pause } from "./VirtualTime.ts";

/** The provider's error, which must reach the caller unchanged (law L12). */
export class ProviderBroke {
  readonly _tag = "ProviderBroke";
  readonly failure: Failure;
  constructor(failure: Failure) {
    this.failure = failure;
  }
}

/** A whole response, for every attempt beyond the scenario's scripts. */
const whole: AttemptScript = {
  steps: [{ say: "start" }, { say: "text" }, { say: "terminal" }],
  closes: 0,
  factoryThrows: false,
};

/** Names the response of a part and the position within it. */
export const cursorOf = (part: Part): string | undefined => part.serial;

/** Plays the provider of a scenario. After the calm every response is whole. */
export const provider = (scenario: Scenario, journal: Journal, calm: Calm, network: Network) => {
  const edges = new Edges(scenario.world.edges);
  let kept = 0;
  let continuations = 0;
  let request = "first";
  return (context: AttemptContext): Stream.Stream<Part, ProviderBroke> => {
    const { attempt, mode, cursor, calls, route, seam } = context;
    if (context.request === "first") request = "first";
    if (context.request === "continue" && mode === "continue") request = `continuation ${++continuations}`;
    if (context.request === "continue" && mode === "replay") request = `continuation ${continuations}`;
    const [of, read] = context.request === "resume" && cursor !== undefined ? splitSerial(cursor) : [request, 0];
    const met = network.meets();
    if (met !== undefined) kept += 1;
    const script = met ?? (calm.isOn ? undefined : scenario.attempts[attempt - 1 - kept]) ?? whole;
    journal.add({ what: "opened", context: { attempt, mode, request: context.request, cursor, calls, route, seam } });
    if (script.factoryThrows) {
      const error = new Error("the factory threw");
      journal.add({ what: "source_ended", attempt, end: { how: "factory_threw", error } });
      journal.add({ what: "closed", attempt });
      throw error;
    }
    return new Response({ journal, calm, edges, context }, of, read).play(script);
  };
};

/** Splits a serial into its response and its number. */
export const splitSerial = (serial: string): readonly [response: string, number: number] => {
  const at = serial.lastIndexOf("#");
  return [serial.slice(0, at), Number(serial.slice(at + 1))];
};

/** The surroundings of a response. */
interface Stage {
  readonly journal: Journal;
  readonly calm: Calm;
  readonly edges: Edges;
  readonly context: AttemptContext;
}

class Response {
  readonly #journal: Journal;
  readonly #calm: Calm;
  readonly #edges: Edges;
  readonly #context: AttemptContext;
  readonly #of: string;
  #serial: number;
  /** True after the marker. */
  #marked = false;

  constructor({ calm, context, edges, journal }: Stage, of: string, read: number) {
    this.#journal = journal;
    this.#calm = calm;
    this.#edges = edges;
    this.#context = context;
    this.#of = of;
    this.#serial = read;
  }

  play(script: AttemptScript): Stream.Stream<Part, ProviderBroke> {
    const { attempt } = this.#context;
    const closing = Effect.andThen(
      script.closes !== "hang" ? pause(script.closes) : this.#calm.clocksWork ? Effect.never : this.#calm.forever,
      Effect.sync(() => this.#journal.add({ what: "closed", attempt })),
    );
    return Stream.fromIterable(script.steps).pipe(
      Stream.flatMap((step) => this.#step(step)),
      Stream.concat(Stream.suspend(() => (this.#calm.isOn && !this.#marked ? this.#say([terminal]) : Stream.empty))),
      Stream.onExit((exit) => (Exit.isSuccess(exit) ? this.#ends({ how: "clean" }) : Effect.void)),
      Stream.ensuring(closing),
    );
  }

  #step(step: Step): Stream.Stream<Part, ProviderBroke> {
    if ("say" in step) return this.#say([step]);
    if ("chunk" in step) return this.#say(step.chunk);
    if ("wait" in step) return silently(this.#calm.pause(step.wait));
    if ("stubborn" in step) return silently(Effect.uninterruptible(this.#calm.pause(step.stubborn)));
    if ("bytes" in step) {
      const count = this.#edges.number("bytes", step.bytes);
      return silently(Effect.sync(() => this.#context.bytes(count)));
    }
    if ("delivery" in step) return silently(Effect.sync(() => this.#context.delivery(step.delivery)));
    if ("never" in step) return this.#calm.clocksWork ? Stream.never : silently(this.#calm.forever);
    if (this.#calm.isOn) return Stream.empty;
    if ("fail" in step) {
      const error = new ProviderBroke(this.#edges.failure(step.fail));
      return Stream.unwrap(Effect.as(this.#ends({ how: "failed", error }), Stream.fail(error)));
    }
    if ("die" in step) {
      const error = new Error("the source died");
      return Stream.unwrap(Effect.as(this.#ends({ how: "died", error }), Stream.die(error)));
    }
    return Stream.fromEffect(Effect.andThen(this.#ends({ how: "interrupted" }), Effect.interrupt));
  }

  #say(steps: ReadonlyArray<PartStep>): Stream.Stream<Part, never> {
    return Stream.suspend(() => {
      const parts = steps.map((step) => this.#part(this.#calm.isOn && step.say === "error" ? terminal : step));
      this.#journal.add({ what: "emitted", attempt: this.#context.attempt, parts });
      return Stream.fromArray(parts);
    });
  }

  #part(step: PartStep): Part {
    const { attempt } = this.#context;
    const says = this.#edges.says(observationOf(step, attempt));
    if (says.terminal || says.terminal_at_end === true) this.#marked = true;
    if (says.quiet) return { serial: undefined, attempt, says };
    this.#serial += 1;
    return { serial: `${this.#of}#${this.#serial}`, attempt, says };
  }

  #ends(end: SourceEnd): Effect.Effect<void> {
    return Effect.sync(() => this.#journal.add({ what: "source_ended", attempt: this.#context.attempt, end }));
  }
}

const terminal: PartStep = { say: "terminal" };

const silently = (effect: Effect.Effect<unknown>): Stream.Stream<never> => Stream.drain(Stream.fromEffect(effect));

const observationOf = (step: PartStep, attempt: number): Observation.Observation => {
  switch (step.say) {
    case "start":
      return Observation.lifecycle;
    case "ping":
      return Observation.ping;
    case "usage":
      return { ...Observation.none, quiet: true, usage: { input_tokens: 10, output_tokens: 1 } };
    case "text":
      return Observation.text(4);
    case "reasoning":
      return Observation.reasoning(3);
    case "terminal":
      return Observation.terminal("stop");
    case "terminal_at_end":
      return { ...(step.text ? Observation.text(2) : Observation.none), terminal_at_end: true, finish: "STOP" };
    case "error":
      return { ...Observation.failed(step.failure), terminal: step.terminal };
    case "call": {
      const { phase, ordinal, id, tool, executor } = step;
      // The arguments name the call, so that a handler knows which call it ran for.
      const input = phase === "ready" ? { input: `${attempt}/0.${ordinal}` } : {};
      return Observation.calls([{ choice: 0, ordinal, id, tool, executor, phase, ...input }]);
    }
  }
};
