/**
 * Guards the agent's tools, runs the calls of the model through the guard, and writes what they did before it is used.
 */
import { Cause, Effect, Exit } from "effect";
import type { ReadyCall } from "../runtime/contract/ToolCall.ts";
import { type GuardedTool, ToolGuard, type ToolRefused } from "../runtime/tools/ToolGuard.ts";
import type { Watcher } from "./AgentEvent.ts";
import type { Called } from "./conversation/ChatRun.ts";
import type { Transcript } from "./conversation/ChatState.ts";
import type { Verdict } from "./conversation/Entry.ts";
import type { AgentTool, ToolOutput } from "./tools/AgentTool.ts";

/** A guarded tool takes the call with its argument text: the journal needs both. */
type Guarded = GuardedTool<ReadyCall, ToolOutput, never, never>;

/** The tools of a chat. */
export interface Toolbox {
  /** What `StreamProcessor.run` takes. */
  readonly guarded: ReadonlyArray<Guarded>;
  /** Runs a call to its end. What went wrong is told to the model; a call that may not start is not run. */
  readonly run: (call: ReadyCall) => Effect.Effect<void>;
  /** Says of a call without a result whether it happened, by the journal and by the tool itself. */
  readonly verify: (call: Pick<ToolGuard.UnknownCall, "attempt" | "call" | "tool">) => Verdict | "unknown";
}

/** Guards tools. */
export const make = Effect.fn("Toolbox.make")(function* (
  tools: ReadonlyArray<AgentTool>,
  transcript: Transcript,
  watch: Watcher,
) {
  const guard = yield* ToolGuard;
  const byName = new Map(tools.map((tool) => [tool.name, tool]));

  const verify: Toolbox["verify"] = (call) => {
    const answering = transcript.answering;
    if (answering === undefined) return "unknown";
    if (answering.resultOf(call) !== undefined) return "it_ran";
    const started = answering.startOf(call);
    // Its tool writes a line before it does anything: without that line it did nothing.
    return started === undefined ? "it_did_not_run" : (byName.get(call.tool)?.verify?.(started) ?? "unknown");
  };

  const guarded = new Map(
    tools.map((tool): readonly [string, Guarded] => [
      tool.name,
      guard.ofEffect(tool.effect)(tool.name, (call: ReadyCall) => handled(tool, call, transcript), {
        verify: (call) => Effect.sync(() => verify(call)),
      }),
    ]),
  );

  const toolbox: Toolbox = {
    guarded: [...guarded.values()],
    verify,
    run: (call) =>
      Effect.suspend(() => {
        const tool = byName.get(call.tool);
        const guardedTool = guarded.get(call.tool);
        if (tool === undefined || guardedTool === undefined) {
          const output = `There is no tool ${call.tool}.`;
          transcript.add({ _tag: "Result", ...calledOf(call), output, failed: true });
          watch({ _tag: "ToolEnded", tool: call.tool, output, failed: true });
          return Effect.void;
        }
        watch({ _tag: "ToolStarted", tool: tool.name, title: tool.title(call.input ?? "") });
        return Effect.map(Effect.exit(guardedTool.run(call, call)), (exit) => watch(toldOf(tool.name, exit)));
      }),
  };
  return toolbox;
});

/** The handler: a line before it begins, the work, a line with its result, and only then the result itself. */
const handled = (tool: AgentTool, call: ReadyCall, transcript: Transcript): Effect.Effect<ToolOutput> =>
  Effect.gen(function* () {
    const input = call.input ?? "";
    const before = tool.before?.(input);
    const called: Called = { ...calledOf(call), tool: tool.name, input, ...(before === undefined ? {} : { before }) };
    transcript.add({ _tag: "Started", run: call.run_id, ...called });
    const given = yield* tool.run(input);
    transcript.add({ _tag: "Result", ...calledOf(call), ...given });
    return given;
  });

const calledOf = ({ attempt, call, run_id }: ReadyCall) => ({ run: run_id, attempt, call });

const toldOf = (tool: string, exit: Exit.Exit<ToolOutput, ToolRefused>) => {
  if (Exit.isSuccess(exit)) return { _tag: "ToolEnded", tool, ...exit.value } as const;
  const refused = Cause.findErrorOption(exit.cause);
  const message =
    refused._tag === "Some" ? refused.value.message : `${tool}: it was cut off, and may have taken effect`;
  return { _tag: "ToolRefused", tool, message } as const;
};
