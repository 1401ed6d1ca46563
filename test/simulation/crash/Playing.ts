/**
 * Plays the provider and the tools of a story in each of its processes.
 */
import { type Clock, Context, Effect, Stream } from "effect";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import type { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../../runtime/Scripted.ts";
import type { Item, Story } from "./Story.ts";

export const runId = "r";

/** The facts of a story, independent of the record. */
export interface World {
  readonly story: Story;
  readonly screen: Array<{ readonly attempt: number; readonly name: string }>;
  /** Handlers that were started, by the name of their call: `c0.2` is item 2 of response 0. */
  readonly started: Array<string>;
  /** A person's answers, in order. */
  readonly answers: Array<Choice>;
  readonly problems: Array<string>;
  attempts: number;
  refusals: number;
  /** True if the caller was told that the response is complete. */
  completed: boolean;
  readonly log: Array<string>;
}

export const begin = (story: Story): World => ({
  story,
  screen: [],
  started: [],
  answers: [],
  problems: [],
  attempts: 0,
  refusals: 0,
  completed: false,
  log: [],
});

/** A process that can die. */
export interface Process {
  readonly context: Context.Context<StreamProcessor | ToolGuard>;
  /** Stops once the process is dead. */
  readonly clock: Clock.Clock;
  readonly isDead: () => boolean;
  /** Stops everything in the process. */
  readonly silence: Effect.Effect<void>;
}

/** The store that all processes share. */
export type Recorder = RunRecorder["Service"];

/** Reads the run's record. */
export const read = (recorder: Recorder) => Effect.orDie(recorder.run(runId));

/** The story's provider: the first request gets response 0, each continuation the next one, and a cursor resumes after its part. */
export const providerOf = (process: Process, world: World, recorder: Recorder) => ({
  attempt: (context: AttemptContext): Stream.Stream<S.ScriptedPart, S.ProviderBroke> =>
    Stream.unwrap(
      Effect.map(read(recorder), (record) => {
        const broken = world.story.breaks[world.attempts];
        world.attempts += 1;
        const at = context.cursor?.match(/^[tcr](\d+)\.(\d+)$/);
        const continued = record?.attempts.filter(({ mode }) => mode === "continue").length ?? 0;
        const response = context.request === "first" ? 0 : at ? Number(at[1]) : continued;
        const from = at ? Number(at[2]) + 1 : 0;
        const items = responseOf(world, response)
          .map((item, n) => [item, `${response}.${n}`] as const)
          .slice(from);
        const steps = items.slice(0, broken?.after).flatMap(([item, name]) => stepsOf(item, name));
        const ending = broken === undefined ? [S.done] : broken.failure === "clean_end" ? [] : [S.fail(broken.failure)];
        const end =
          broken !== undefined && broken.after >= items.length && broken.failure === "clean_end" ? [S.done] : ending;
        const whole = S.scripted([S.start, ...steps, ...end]).attempt(context);
        return Stream.mapEffect(whole, (part) => (process.isDead() ? Effect.never : Effect.succeed(part)));
      }),
    ),
});

/** The content of a response. A continuation beyond the story gets a short text. */
export const responseOf = ({ story }: World, response: number): ReadonlyArray<Item> =>
  story.responses[response] ?? [{ kind: "text", wait: 0, handlerMs: 0 }];

const stepsOf = ({ kind, wait }: Item, name: string): ReadonlyArray<S.Step> => {
  const step = {
    text: S.text("x"),
    reasoning: S.reasoning("x"),
    call: S.callReady("bash", Number(name.split(".")[1]), name),
  }[kind];
  const named = "part" in step ? { part: { ...step.part, name: `${kind[0]}${name}` } } : step;
  return wait === 0 ? [named] : [S.wait(wait), named];
};

/** The run's one tool, and the runtime that runs the calls of a part. */
export const toolsOf = (process: Process, world: World) => {
  const handler = (name: string) =>
    Effect.suspend(() => {
      if (process.isDead()) return Effect.never;
      world.started.push(name);
      world.log.push(`starts ${name}`);
      const [response = 0, item = 0] = name.slice(1).split(".").map(Number);
      const ms = responseOf(world, response)[item]?.handlerMs ?? 0;
      const slept = ms === 0 ? Effect.void : Effect.sleep(ms);
      return Effect.andThen(
        slept,
        Effect.suspend(() => (process.isDead() ? Effect.never : Effect.succeed("ran"))),
      );
    });
  const { guarded, verify } = world.story;
  const plain = { name: "bash", executor: "runtime", effect: "mutating" } as const;
  const did = (id: string) => (world.started.includes(`c${id}`) ? ("it_ran" as const) : ("it_did_not_run" as const));
  const tool = Context.get(process.context, ToolGuard).mutating(
    "bash",
    handler,
    verify ? { verify: ({ id }) => Effect.sync(() => did(id)) } : {},
  );
  const one: ToolGuard.Tool = guarded ? tool : plain;
  return {
    tool: one,
    start: (event: Extract<RunEvent<S.ScriptedPart>, { readonly _tag: "Part" }>) =>
      Effect.forEach(
        event.calls ?? [],
        (call) => Effect.ignore(guarded ? tool.run(call, event.part.name) : handler(event.part.name)),
        { discard: true },
      ),
  };
};
