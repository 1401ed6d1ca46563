/**
 * Plays one turn of a runtime against one fault, on a server of its own, and sees what the user would see.
 */
import { Cause, Clock, Effect, Exit, Fiber, Option } from "effect";
import type { ProtocolId } from "../../provider/Protocols.ts";
import { answerProtocol } from "../answers/Answers.ts";
import { FaultProvider } from "../faults/FaultProvider.ts";
import { type ConformanceFault, conformanceTool } from "./ConformanceFault.ts";
import type {
  ConformanceReport,
  ConformanceRuntime,
  ConformanceScreen,
  ConformanceTask,
  ConformanceTool,
} from "./ConformanceRuntime.ts";
import type { ConformanceCell } from "./ConformanceScoreboard.ts";
import { judgeTurn, type PlayedTurn } from "./TurnJudge.ts";

/** Longest text that a screen holds, in UTF-16 code units; further text is not shown. */
export const screenCharactersMax = 1_000_000;

/** Most runs of tools that are noted. */
export const toolRunsMax = 1_000;

/** How long an aborted turn may take to end before it is abandoned, in milliseconds. */
const graceMs = 1_000;

/** How long the log may take to record the end of the last request, in milliseconds: the server sees a close after its client. */
const logMs = 1_000;

/**
 * How long a client may read before its connection breaks, in milliseconds: a reset drops the bytes that the client's kernel
 * has not handed over, and the fault would be another one.
 */
const readMs = 100;

/** How a turn is played. */
export interface TurnOptions {
  readonly silenceMs: number;
  /** How long a turn may take, in milliseconds. */
  readonly limitMs: number;
}

/**
 * Plays a turn and judges it.
 *
 * @param runtime the runtime that is judged
 * @param fault the fault of the provider
 * @param protocol the protocol of the turn
 */
export const playTurn = Effect.fn("Conformance.turn")(
  function* <R>(
    runtime: ConformanceRuntime<R>,
    fault: ConformanceFault,
    protocol: ProtocolId,
    { limitMs, silenceMs }: TurnOptions,
  ) {
    const provider = yield* Effect.orDie(
      // Cannot fail: the scripts are this package's own, and any free port will do.
      FaultProvider.make({ script: fault.script(protocol, silenceMs), beforeBreak: () => Effect.sleep(readMs) }),
    );
    const screen = makeScreen();
    const ran: Array<unknown> = [];
    const clock = yield* Clock.Clock;
    const started = clock.currentTimeMillisUnsafe();
    const seen = yield* within(limitMs, (signal) =>
      runtime.turn(taskOf(provider, fault, protocol, screen, ran, signal)),
    );
    const milliseconds = clock.currentTimeMillisUnsafe() - started;
    yield* provider
      .until((rows) => (rows.some(({ outcome }) => outcome === "open") ? undefined : true))
      .pipe(Effect.timeoutOption(logMs));
    const turn: PlayedTurn = {
      ...outcomeOf(seen, screen.text(), ran),
      milliseconds,
      log: yield* provider.log,
    };
    const cell: ConformanceCell = judgeTurn(fault, protocol, turn);
    return cell;
  },
  (effect) => Effect.scoped(effect),
);

type TurnExit = Option.Option<Exit.Exit<ConformanceReport | undefined | void, unknown>>;

/** Runs a turn; past the limit it is aborted, and abandoned where it does not end. */
const within = <R>(
  limitMs: number,
  start: (signal: AbortSignal) => ReturnType<ConformanceRuntime<R>["turn"]>,
  controller: AbortController = new AbortController(),
): Effect.Effect<TurnExit, never, R> =>
  Effect.gen(function* () {
    const turn = Effect.suspend(() => {
      const started = start(controller.signal);
      // A rejection is the turn's failure; `outcomeOf` reads defects and errors alike.
      return Effect.isEffect(started) ? started : Effect.promise(() => started);
    });
    const fiber = yield* Effect.forkDetach(turn, { startImmediately: true });
    const stop = Effect.andThen(
      Effect.sync(() => controller.abort(new Error(`the turn took longer than ${limitMs} ms`))),
      Effect.forkDetach(Fiber.interrupt(fiber)),
    );
    const exit = yield* Fiber.await(fiber).pipe(
      Effect.timeoutOption(limitMs),
      Effect.onInterrupt(() => stop),
    );
    if (Option.isSome(exit)) return exit;
    yield* stop;
    yield* Effect.timeoutOption(Fiber.await(fiber), graceMs);
    return Option.none();
  });

const outcomeOf = (
  seen: TurnExit,
  shown: string,
  ran: ReadonlyArray<unknown>,
): Pick<PlayedTurn, "text" | "tools" | "ended" | "error"> => {
  if (Option.isNone(seen)) return { text: shown, tools: ran, ended: "hung" };
  if (Exit.isFailure(seen.value)) {
    const error = Cause.squash(seen.value.cause);
    return { text: shown, tools: ran, ended: "error", error: messageOf(error) };
  }
  const report = seen.value.value ?? {};
  return {
    text: report.text ?? shown,
    tools: [...ran, ...(report.tools ?? [])].slice(0, toolRunsMax),
    ended: report.ended ?? "ok",
    ...(report.error === undefined ? {} : { error: report.error }),
  };
};

const messageOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error);

const taskOf = (
  provider: FaultProvider["Service"],
  fault: ConformanceFault,
  protocol: ProtocolId,
  screen: ConformanceScreen,
  ran: Array<unknown>,
  signal: AbortSignal,
): ConformanceTask => ({
  protocol,
  origin: provider.url,
  base_url: `${provider.url}${answerProtocol(protocol).basePath}`,
  endpoint: provider.endpoint(protocol),
  api_key: "a key of the conformance kit",
  model: "fault-model",
  // Each turn has its own prompt, because a runtime may remember earlier requests.
  prompt: `Book room A 12 for tonight, then say so. (${protocol}, ${fault.id})`,
  tools: [toolOf(ran)],
  screen,
  signal,
});

const toolOf = (ran: Array<unknown>): ConformanceTool => ({
  name: conformanceTool,
  description: "Books a room for a night. Booking it twice costs twice.",
  parameters: {
    type: "object",
    properties: {
      room: { type: "string" },
      night: { type: "string" },
      serial: { type: "string" },
      end: { type: "string" },
    },
  },
  execute: (input) => {
    if (ran.length < toolRunsMax) ran.push(input);
    return Promise.resolve("booked");
  },
});

const makeScreen = (): ConformanceScreen => {
  let text = "";
  return {
    write: (more) => {
      text = (text + more).slice(0, screenCharactersMax);
    },
    replace: (by) => {
      text = by.slice(0, screenCharactersMax);
    },
    text: () => text,
  };
};
