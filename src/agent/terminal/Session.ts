/**
 * Talks with a person: reads typed lines, cancels on Ctrl-C, and returns how the last turn ended.
 */
import { Deferred, Effect, type Scope } from "effect";
import type { Agent } from "../Agent.ts";
import type { TurnEnd } from "../AgentEvent.ts";
import type { AgentError } from "../conversation/AgentError.ts";
import type { LineReader } from "./LineReader.ts";

/** What a session does: send one text, end an open turn, or read typed lines. */
export type Task =
  | { readonly _tag: "say"; readonly text: string }
  | { readonly _tag: "resume" }
  | { readonly _tag: "talk" };

/** The agent and the terminal of a session. */
export interface SessionOptions {
  readonly agent: Agent;
  readonly task: Task;
  readonly lines: LineReader;
  /** Shows that something can be typed. */
  readonly prompt: () => void;
  /** A line was typed. */
  readonly typed: (text: string) => void;
  readonly line: (text: string) => void;
}

/** How a session ended: as its last turn did, or left by Ctrl-C. */
export type SessionEnd = TurnEnd["how"] | "left";

/** Plays a session to its end. */
export const play = (options: SessionOptions): Effect.Effect<SessionEnd, AgentError> =>
  Effect.gen(function* () {
    const left = Deferred.makeUnsafe<"left">();
    const pressed = yield* interrupts(options, left);
    return yield* Effect.raceFirst(converse(options, pressed), Deferred.await(left));
  }).pipe(Effect.scoped);

const converse = (options: SessionOptions, pressed: Pressed): Effect.Effect<SessionEnd, AgentError> =>
  Effect.gen(function* () {
    const { agent, lines, prompt, task, typed: taken } = options;
    if (task._tag === "say") return (yield* agent.say(task.text)).how;
    if (task._tag === "resume") return (yield* agent.goOn).how;
    let last: TurnEnd["how"] = agent.isOpen() ? (yield* agent.goOn).how : "done";
    while (last !== "parked") {
      prompt();
      const typed = yield* lines.next;
      taken(typed ?? "");
      if (typed === undefined) return last;
      if (typed.trim() === "") continue;
      pressed.times = 0;
      last = (yield* agent.say(typed)).how;
    }
    return last;
  });

/** How often Ctrl-C was pressed since the last turn began. */
interface Pressed {
  times: number;
}

/**
 * Ctrl-C once cancels the running request in the user's name, twice leaves; an open turn then stays on record. Earlier listeners
 * for Ctrl-C are put back afterwards.
 */
export const interrupts = (
  { agent, line }: { readonly agent: Pick<Agent, "cancel">; readonly line: (text: string) => void },
  left: Deferred.Deferred<"left">,
): Effect.Effect<Pressed, never, Scope.Scope> =>
  Effect.gen(function* () {
    const pressed: Pressed = { times: 0 };
    const services = yield* Effect.context<never>();
    const once = Effect.map(agent.cancel, (cancelled) =>
      line(cancelled ? "· cancelling; Ctrl-C again leaves" : "· Ctrl-C again leaves"),
    );
    const listener = () => {
      pressed.times += 1;
      if (pressed.times === 1) Effect.runForkWith(services)(once);
      else if (pressed.times === 2) Deferred.doneUnsafe(left, Effect.succeed("left"));
      else process.exit(130);
    };
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const before = process.listeners("SIGINT");
        process.removeAllListeners("SIGINT");
        process.on("SIGINT", listener);
        return before;
      }),
      (before) =>
        Effect.sync(() => {
          process.removeListener("SIGINT", listener);
          for (const it of before) process.on("SIGINT", it);
        }),
    );
    return pressed;
  });
