/**
 * The questions of the reference agent: a retry that may repeat a call says which, and is asked for twice.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { StartedCall } from "../../../src/agent/conversation/ChatRun.ts";
import * as Prompter from "../../../src/agent/terminal/Prompter.ts";
import type { Question } from "../../../src/recorder/Question.ts";

const question = (more: Partial<Question["decision"]> = {}): Question => ({
  run_id: "c-1",
  revision: 1,
  incident: "c-1/1",
  rule: "tool_outcome_unknown",
  message: "The process ended in the middle of the answer.",
  choices: ["retry", "it_ran", "accept", "stop"],
  may_repeat: more.may_repeat ?? [],
  default_choice: "stop",
  asked_at: 0,
  decision: {
    action: "ask_user",
    rule: "tool_outcome_unknown",
    delay_ms: 0,
    policy_version: "1",
    because: [],
    calls: [
      { call: "0.0", tool: "shell", phase: "dispatched" },
      { call: "0.1", tool: "write_file", phase: "handed_over" },
    ],
    ...more,
  },
});

const shell: StartedCall = { attempt: 1, call: "0.0", tool: "shell", input: '{"command":"pay \u001b[2J --now"}' };

/** Answers with what was typed; gives the answer, what was printed, and what was not read. */
const play = (
  given: Question,
  typed: ReadonlyArray<string>,
  called: (call: string) => StartedCall | undefined = (call) => (call === "0.0" ? shell : undefined),
) =>
  Effect.gen(function* () {
    const left = [...typed];
    const printed: Array<string> = [];
    const line = (text: string) => void printed.push(text);
    const lines = { next: Effect.sync(() => left.shift()), forget: () => undefined, close: () => undefined };
    const desk: Prompter.PrompterOptions = {
      lines,
      line,
      prompt: () => {},
      typed: () => {},
      isTerminal: false,
      called,
    };
    const choice = yield* Prompter.ask(desk, given);
    return { choice, printed: printed.join("\n"), left };
  });

describe("a question whose retry may run a call again", () => {
  const risky = question({ may_repeat: ["0.0", "0.1"] });

  it.effect("names tool, command and call, and leaves nothing in it that steers a terminal", () =>
    Effect.gen(function* () {
      const { printed } = yield* play(risky, ["stop"]);
      const named = 'shell {"command":"pay --now"} (call 0.0); write_file (call 0.1)';
      assert.include(printed, `? The process ended in the middle of the answer. A retry may run again: ${named}.`);
      assert.notInclude(printed, "\u001b");
    }),
  );

  it.effect("asks twice: no, Enter and nonsense repeat nothing", () =>
    Effect.gen(function* () {
      for (const doubt of ["no", "2", ""]) {
        const { choice, left, printed } = yield* play(risky, ["retry", doubt, "stop", "never read"]);
        assert.strictEqual(choice, "stop", doubt);
        assert.deepStrictEqual(left, ["never read"]);
        assert.include(printed, '? Run again: shell {"command":"pay --now"} (call 0.0); write_file (call 0.1)?');
      }
      const { choice, printed } = yield* play(risky, ["1", "retry", "yes"]);
      assert.strictEqual(choice, "retry");
      assert.include(printed, "type a number from 1 to 2, or a word");
    }),
  );

  it.effect("stays open where the input ends between the two", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* play(risky, ["retry"])).choice, "parked");
    }),
  );

  it.effect("names what it can of an unknown call, and counts the rest", () =>
    Effect.gen(function* () {
      const calls = Array.from({ length: 9 }, (_, n) => `7.${n}`);
      const { choice, printed } = yield* play(question({ may_repeat: calls, calls: [] }), ["retry", "y"]);
      assert.strictEqual(choice, "retry");
      assert.include(printed, "a tool (call 7.5); 3 more calls");
    }),
  );

  it.effect("is asked for once where nothing can run again, or no retry is offered", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* play(question(), ["retry"])).choice, "retry");
      const none: Question = { ...risky, choices: ["it_ran", "stop"] };
      const { choice, printed } = yield* play(none, ["it_ran"]);
      assert.strictEqual(choice, "it_ran");
      assert.notInclude(printed, "may run again");
    }),
  );
});
