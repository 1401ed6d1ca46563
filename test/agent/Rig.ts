/**
 * Runs an agent against a provider that breaks, in a folder of its own, and reads what it left behind.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, Layer, Random, References } from "effect";
import { type AgentEvent, type AgentOptions, type LayerOptions, layer, open } from "../../src/agent/index.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";

/** A folder that is gone with its scope. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agent-test-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
);

/** How a rig differs from the plain one. */
export interface RigOptions extends Partial<Omit<AgentOptions, "watch">> {
  readonly script: FaultScriptInput;
  readonly protocol: NonNullable<AgentOptions["protocol"]>;
  /** Answers questions; default: go on where that is offered. */
  readonly ask?: LayerOptions["ask"];
  readonly at?: string;
  readonly watch?: (event: AgentEvent) => void;
}

/** Jitter 0: every wait is as short as it can be. */
const noJitter = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 };

const careful: LayerOptions["ask"] = ({ choices }) => {
  const wanted: ReadonlyArray<Choice> = ["continue", "it_ran", "retry", "accept"];
  return Effect.succeed(wanted.find((choice) => choices.includes(choice)) ?? "stop");
};

/** Opens an agent; gives it with its provider, its folders and everything that it has told. */
export const make = Effect.fnUntraced(function* (options: RigOptions) {
  const { ask = careful, script, watch, ...given } = options;
  const at = options.at ?? (yield* folder);
  const provider = yield* FaultProvider.make({ script });
  const told: Array<AgentEvent> = [];
  const services = yield* Layer.build(layer({ db: join(at, "runs.db"), leaseMs: 300, ask }));
  const agent = yield* open({
    chat: "test",
    folder: join(at, "chats"),
    dir: join(at, "box"),
    model: "fault-model",
    url: provider.url,
    confirm: () => Effect.succeed("parked" as const),
    continueText: "auto",
    ...given,
    watch: (event) => {
      told.push(event);
      watch?.(event);
    },
  }).pipe(Effect.provideContext(services));
  return { agent, at, box: join(at, "box"), provider, told };
});

/** What tests provide to a rig. */
export const played = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.scoped,
    Effect.provideService(Random.Random, noJitter),
    Effect.provideService(References.MinimumLogLevel, "None"),
  );
