/**
 * Guards the agent's tools, runs the calls of the model through the guard, and writes down what they did before it is used.
 */
import { Cause, Effect, Exit } from "effect";
import type { ReadyCall } from "../runtime/contract/ToolCall.ts";
import { type GuardedTool, ToolGuard, type ToolRefused } from "../runtime/tools/ToolGuard.ts";
import type { Watcher } from "./AgentEvent.ts";
import type { StartedCall } from "./conversation/ChatRun.ts";
import type { ChatState } from "./conversation/ChatState.ts";
import type { CallVerdict } from "./conversation/Entry.ts";
import type { AgentTool, ToolOutput } from "./tools/AgentTool.ts";

/** The input of a guarded tool is the call with its argument text: the journal needs both. */
type Guarded = GuardedTool<ReadyCall, ToolOutput, never, never>;

/** The tools of a chat. */
export interface Toolbox {
  /** What `StreamProcessor.run` takes. */
  readonly guarded: ReadonlyArray<Guarded>;
  /** Runs a call to its end. The model gets the error of a failed call; a call that may not start is not run. */
  readonly run: (call: ReadyCall) => Effect.Effect<void>;
  /** Says whether a call without a result happened, by the journal and by the tool itself. */
  readonly verify: (call: Pick<ToolGuard.UnknownCall, "attempt" | "call" | "tool">) => CallVerdict | "unknown";
}

/** Guards tools. */
export const make = Effect.fn("Toolbox.make")(function* (
  tools: ReadonlyArray<AgentTool>,
  state: ChatState,
  watch: Watcher,
) {
  const guard = yield* ToolGuard;
  const byName = new Map(tools.map((tool) => [tool.name, tool]));

  const verify: Toolbox["verify"] = (call) => {
    const openRun = state.openRun;
    if (openRun === undefined) return "unknown";
    if (openRun.resultOf(call) !== undefined) return "it_ran";
    const started = openRun.startOf(call);
    // Its tool writes a line before it does anything: without that line it did nothing.
    return started === undefined ? "it_did_not_run" : (byName.get(call.tool)?.verify?.(started) ?? "unknown");
  };

  const guarded = new Map(
    tools.map((tool): readonly [string, Guarded] => [
      tool.name,
      guard.ofEffect(tool.effect)(tool.name, (call: ReadyCall) => handle(tool, call, state), {
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
          return Effect.map(state.add({ _tag: "Result", ...keyOf(call), output, failed: true }), () =>
            watch({ _tag: "ToolEnded", tool: call.tool, output, failed: true }),
          );
        }
        watch({ _tag: "ToolStarted", tool: tool.name, title: tool.title(call.input ?? "") });
        return Effect.map(Effect.exit(guardedTool.run(call, call)), (exit) => watch(toolEnd(tool.name, exit)));
      }),
  };
  return toolbox;
});

/** The handler: a line before it begins, the work, a line with its result, and only then the result itself. */
const handle = (tool: AgentTool, call: ReadyCall, state: ChatState): Effect.Effect<ToolOutput> =>
  Effect.gen(function* () {
    const input = call.input ?? "";
    const before = tool.before?.(input);
    const called: StartedCall = { ...keyOf(call), tool: tool.name, input, ...(before === undefined ? {} : { before }) };
    yield* state.add({ _tag: "Started", run: call.run_id, ...called });
    const given = yield* tool.run(input);
    yield* state.add({ _tag: "Result", ...keyOf(call), ...given });
    return given;
  });

const keyOf = ({ attempt, call, run_id }: ReadyCall) => ({ run: run_id, attempt, call });

const toolEnd = (tool: string, exit: Exit.Exit<ToolOutput, ToolRefused>) => {
  if (Exit.isSuccess(exit)) return { _tag: "ToolEnded", tool, ...exit.value } as const;
  const refused = Cause.findErrorOption(exit.cause);
  const message =
    refused._tag === "Some" ? refused.value.message : `${tool}: it was cut off, and may have taken effect`;
  return { _tag: "ToolRefused", tool, message } as const;
};
