/** Plays one turn of a runtime against one fault, on a separate server, and records the text that the user would see. */
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
  ConformanceThrough,
  ConformanceTool,
} from "./ConformanceRuntime.ts";
import type { ConformanceCell } from "./ConformanceScoreboard.ts";
import { judgeTurn, type PlayedTurn } from "./TurnJudge.ts";

/** Maximum text on a screen, in UTF-16 code units. Further text is not shown. */
export const screenCharactersMax = 1_000_000;

/** Maximum tool runs that are recorded. */
export const toolRunsMax = 1_000;

/** Maximum wait for an aborted turn to end before it is abandoned, in milliseconds. */
const graceMs = 1_000;

/** Maximum wait for the log to record the end of the last request, in milliseconds. The server sees a close later than its client. */
const logMs = 1_000;

/**
 * Time that a client gets to read before its connection breaks, in milliseconds. A reset discards bytes that the client's kernel has not
 * delivered yet, and that would be a different fault.
 */
const readMs = 100;

/** Length of the silence that the fault `silence` plays, and time limit of a turn, in milliseconds; the gateway under test. */
export interface TurnOptions {
  readonly silenceMs: number;
  readonly limitMs: number;
  readonly through: ConformanceThrough | undefined;
}

/** Plays one turn of a runtime against one fault, and judges it. */
export const playTurn = Effect.fn("Conformance.turn")(
  function* <R>(
    runtime: ConformanceRuntime<R>,
    fault: ConformanceFault,
    protocol: ProtocolId,
    { limitMs, silenceMs, through }: TurnOptions,
  ) {
    const provider = yield* FaultProvider.make({
      script: fault.script(protocol, silenceMs),
      beforeBreak: () => Effect.sleep(readMs),
      ...(through === undefined ? {} : { port: through.port }),
    }).pipe(
      Effect.catchTag("FaultScriptError", Effect.die), // the scripts belong to this package
    );
    const screen = makeScreen();
    const ran: Array<unknown> = [];
    const clock = yield* Clock.Clock;
    const started = clock.currentTimeMillisUnsafe();
    const seen = yield* failAfter(limitMs, (signal) =>
      runtime.turn(taskOf(through ?? provider, fault, protocol, screen, ran, signal)),
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

/** Runs a turn. At the limit the turn is aborted, and if it still does not end, it is abandoned. */
const failAfter = <R>(
  limitMs: number,
  start: (signal: AbortSignal) => ReturnType<ConformanceRuntime<R>["turn"]>,
  controller: AbortController = new AbortController(),
): Effect.Effect<TurnExit, never, R> =>
  Effect.gen(function* () {
    const turn = Effect.suspend(() => {
      const started = start(controller.signal);
      // A rejection is a failure of the turn. A defect is acceptable here, because `outcomeOf` treats defects and errors alike.
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
  { headers = {}, url }: { readonly url: string; readonly headers?: ConformanceTask["headers"] },
  fault: ConformanceFault,
  protocol: ProtocolId,
  screen: ConformanceScreen,
  ran: Array<unknown>,
  signal: AbortSignal,
): ConformanceTask => ({
  protocol,
  origin: url,
  base_url: `${url}${answerProtocol(protocol).basePath}`,
  endpoint: `${url}${answerProtocol(protocol).path}`,
  headers,
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
