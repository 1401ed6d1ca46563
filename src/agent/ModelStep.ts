/**
 * Plays one model request with its recoveries: makes the options of `StreamProcessor.run`, and takes the run's events.
 */
import { Deferred, Effect, Result, Stream } from "effect";
import { ProviderClient } from "../client/index.ts";
import * as ProtocolSeam from "../provider/ProtocolSeam.ts";
import { type Part, protocols } from "../provider/Protocols.ts";
import type { RunCompleted, RunEvent, RunInterrupted } from "../runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../runtime/contract/RunOptions.ts";
import type { TextSeam } from "../seam/TextSeam.ts";
import type { Watcher } from "./AgentEvent.ts";
import type { ChatState } from "./conversation/ChatState.ts";
import type { Chat } from "./conversation/Entry.ts";
import { endpoint, headers } from "./Endpoint.ts";
import type { Toolbox } from "./Toolbox.ts";

/** What a step is played with. */
export interface StepOptions {
  readonly chat: Chat;
  readonly state: ChatState;
  readonly toolbox: Toolbox;
  readonly watch: Watcher;
  /** The environment variable that holds the key. */
  readonly keyEnv: string;
  /** Whether a response whose text broke off is continued without asking. */
  readonly continueText: "ask" | "auto";
  /** Whether a response is taken as it comes, or only once it is proven whole. */
  readonly reveal: "live" | "on_complete";
}

/** One request of a chat. */
export interface ModelStep {
  readonly options: RunOptions<Part, unknown, never>;
  /** Takes the run's events to their end. */
  readonly play: (
    events: Stream.Stream<RunEvent<Part>, RunInterrupted>,
  ) => Effect.Effect<RunCompleted | undefined, RunInterrupted>;
}

/**
 * Makes a step.
 *
 * @param run the run's id: a new one for `StreamProcessor.run`, that of the open run for `takeUp`
 */
export const make = Effect.fn("Step.make")(function* (run: string, given: StepOptions) {
  const { chat, continueText, toolbox, state } = given;
  const client = yield* ProviderClient;
  const reached = new Gates();
  const attempt = (context: AttemptContext) =>
    Stream.unwrap(
      Effect.gen(function* () {
        // Behind the gate the state holds everything that was handed over and withdrawn before this attempt.
        yield* reached.wait(context.attempt);
        const body = yield* state.begin(entryOf(run, context));
        if (Result.isFailure(body)) return yield* body.failure;
        return client.stream({
          protocol: protocols.get(chat.protocol),
          url: endpoint(chat.protocol, chat.url, chat.model),
          headers: headers(chat.protocol, given.keyEnv),
          body: body.success,
          bytes: context.bytes,
          delivery: context.delivery,
        });
      }),
    );
  const step: ModelStep = {
    options: {
      runId: run,
      provider: { id: chat.protocol, model: chat.model },
      tools: toolbox.guarded,
      transcript: state.openRun?.transcript ?? "",
      canContinue: attempt,
      continueText,
      reveal: given.reveal,
      seam: () => seamOf(given),
      attempt,
      observe: (part) => part.observation,
    },
    play: (events) => play(events, run, given, reached),
  };
  return step;
});

/** What the text of the open run goes on with. A run begins in the journal before its first part. */
const seamOf = ({ chat, state }: StepOptions): TextSeam<Part> => {
  const { model, protocol } = chat;
  const url = endpoint(protocol, chat.url, model);
  return state.openRun?.seam(url) ?? ProtocolSeam.make({ protocol, body: state.body, url })();
};

const entryOf = (run: string, { attempt, calls, request, seam }: AttemptContext) => ({
  _tag: "Attempt" as const,
  run,
  attempt,
  request,
  calls: calls.map(({ attempt, call, outcome }) => ({ attempt, call, outcome })),
  ...(seam === undefined ? {} : { seam }),
});

const play = (
  events: Stream.Stream<RunEvent<Part>, RunInterrupted>,
  run: string,
  { toolbox, state, watch }: StepOptions,
  reached: Gates,
): Effect.Effect<RunCompleted | undefined, RunInterrupted> => {
  let completed: RunCompleted | undefined;
  const take = (event: RunEvent<Part>): Effect.Effect<void> => {
    switch (event._tag) {
      case "AttemptStarted":
        watch({ _tag: "AttemptStarted", attempt: event.attempt, mode: event.mode });
        return reached.open(event.attempt);
      case "Part": {
        const { attempt, calls = [], ordinal, part } = event;
        const kept = part.observation.keep_alive ? Effect.void : state.add(partEntry(run, attempt, ordinal, part));
        return Effect.andThen(
          Effect.map(kept, () => show(part, attempt, ordinal, watch)),
          Effect.forEach(calls, toolbox.run, { discard: true }),
        );
      }
      case "AttemptDiscarded": {
        const { attempt, keep_through } = event;
        return Effect.map(state.add({ _tag: "Discard", run, attempt, keep_through }), () =>
          watch({ _tag: "Withdrawn", attempt, keep_through }),
        );
      }
      case "QuestionAnswered":
        return Effect.map(judgeUnknown(event.choice, run, state), () =>
          watch({ _tag: "Answered", choice: event.choice }),
        );
      case "CallVerified": {
        const { attempt, call, tool, verdict } = event;
        return Effect.map(state.add({ _tag: "Judged", run, attempt, call, verdict }), () =>
          watch({ _tag: "Judged", tool, verdict }),
        );
      }
      case "RetryScheduled": {
        const { delay_ms, message, mode } = event;
        watch({ _tag: "Retrying", mode, message, delay_ms });
        return Effect.void;
      }
      case "Waiting":
      case "Continued":
        return Effect.void;
      case "QuestionAsked":
        watch({ _tag: "Asked", question: event.question });
        return Effect.void;
      case "RunCompleted":
        completed = event;
        return Effect.void;
    }
  };
  return Effect.map(Stream.runForEach(events, take), () => completed);
};

/** What a part shows. It is written down before. */
const show = ({ content }: Part, attempt: number, ordinal: number, watch: Watcher): void => {
  for (const { choice, kind, text } of content) {
    if (choice !== 0) continue;
    if (kind === "text" && text !== "") watch({ _tag: "Text", attempt, ordinal, text });
    if (kind === "reasoning") watch({ _tag: "Reasoning", attempt, ordinal, text });
  }
};

const partEntry = (run: string, attempt: number, ordinal: number, { event: { data, event, id } }: Part) => ({
  _tag: "Part" as const,
  run,
  attempt,
  ordinal,
  event,
  data,
  ...(id === undefined ? {} : { id }),
});

/** A person's answer about calls of unknown outcome counts for all of them. */
const judgeUnknown = (choice: string, run: string, state: ChatState): Effect.Effect<void> => {
  if (choice !== "it_ran" && choice !== "it_did_not_run") return Effect.void;
  return Effect.forEach(
    state.openRun?.unknown ?? [],
    ({ attempt, call }) => state.add({ _tag: "Judged", run, attempt, call, verdict: choice }),
    { discard: true },
  );
};

/** One gate for each attempt: it opens when the consumer has come to the attempt's start. */
class Gates {
  readonly #gates = new Map<number, Deferred.Deferred<void>>();

  wait(attempt: number): Effect.Effect<void> {
    return Deferred.await(this.#gate(attempt));
  }

  open(attempt: number): Effect.Effect<void> {
    return Effect.asVoid(Deferred.succeed(this.#gate(attempt), undefined));
  }

  #gate(attempt: number): Deferred.Deferred<void> {
    const gate = this.#gates.get(attempt) ?? Deferred.makeUnsafe<void>();
    this.#gates.set(attempt, gate);
    return gate;
  }
}
