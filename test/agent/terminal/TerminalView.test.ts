/**
 * What a person sees: withdrawn text leaves a terminal, and a pipe is told of it.
 */
import { assert, describe, it } from "@effect/vitest";
import type { AgentEvent } from "../../../src/agent/index.ts";
import { TerminalView } from "../../../src/agent/terminal/TerminalView.ts";
import { harmless, wrapped } from "../../../src/agent/tools/PlainText.ts";
import { Screen } from "./Screen.ts";

const drawn = (events: ReadonlyArray<AgentEvent>, isTerminal: boolean, columns = 40, rows = 12): string => {
  const screen = new Screen(columns, rows);
  const write = (text: string) => screen.write(text);
  const view = new TerminalView(() => ({ write, isTerminal, columns, rows, colours: false }));
  for (const event of events) view.watch(event);
  return screen.text;
};

const text = (attempt: number, ordinal: number, words: string): AgentEvent => ({
  _tag: "Text",
  attempt,
  ordinal,
  text: words,
});
const started: AgentEvent = { _tag: "StepStarted", run: "r", step: 1, resumed: false };
const tool: ReadonlyArray<AgentEvent> = [
  { _tag: "ToolStarted", tool: "shell", title: "shell ls" },
  { _tag: "ToolEnded", tool: "shell", output: "a\nb", failed: false },
];

describe("The view on a terminal", () => {
  it("erases withdrawn text, over several rows, and says what it was", () => {
    const long = "word ".repeat(20).trim();
    const events = [
      started,
      text(1, 1, long),
      { _tag: "Withdrawn", attempt: 1, keep_through: 0 } as const,
      text(2, 1, "new"),
    ];
    assert.strictEqual(
      drawn(events, true),
      "⤺ withdrawn: “word word word word word\n  word word word word word word word…”\nnew",
    );
  });

  it("keeps what is not withdrawn: tools that ran, and text before the kept part's end", () => {
    const events = [
      started,
      text(1, 1, "kept "),
      ...tool,
      text(1, 3, "gone"),
      { _tag: "Withdrawn", attempt: 1, keep_through: 2 } as const,
      text(2, 1, "new"),
    ];
    assert.strictEqual(drawn(events, true), "kept\n▸ shell ls\n  ✓ a (+1 lines)\n⤺ withdrawn: “gone”\nnew");
  });

  it("writes lines that stood below the withdrawn text again", () => {
    const events = [
      started,
      text(1, 1, "gone"),
      { _tag: "Retrying", mode: "replay", message: "again", delay_ms: 1 } as const,
      { _tag: "Withdrawn", attempt: 1, keep_through: 0 } as const,
      text(2, 1, "new"),
    ];
    assert.strictEqual(drawn(events, true), "⤺ withdrawn: “gone”\n↻ again\nnew");
  });

  it("does not touch what has left the screen", () => {
    const events = [
      started,
      text(1, 1, "line\n".repeat(30)),
      { _tag: "Withdrawn", attempt: 1, keep_through: 0 } as const,
    ];
    assert.match(drawn(events, true), /line\nline\n⤺ withdrawn/);
  });

  it("lets no model steer the terminal", () => {
    assert.strictEqual(drawn([started, text(1, 1, "a\u001b[2Jb\u001b]0;title\u0007c\rd")], true), "ab]0;titlecd");
    assert.strictEqual(harmless("\u009b31mred"), "31mred");
  });
});

describe("The view in a pipe", () => {
  it("takes nothing back and says so", () => {
    const events = [
      started,
      text(1, 1, "gone"),
      { _tag: "Withdrawn", attempt: 1, keep_through: 0 } as const,
      text(2, 1, "new"),
    ];
    assert.strictEqual(drawn(events, false), "gone\n⤺ withdrawn: “gone”\nnew");
  });
});

describe("Lines", () => {
  it("break between words, and keep their indent", () => {
    assert.strictEqual(wrapped("  1  stop  one two three", 14, 5), "  1  stop  one\n     two three");
  });
});
