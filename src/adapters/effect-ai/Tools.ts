/**
 * Determines the effects of `effect/ai` tools, and runs the calls of a toolkit through ToolGuard.
 */
import { Cause, Context, Effect, Option, Queue, Schema, Stream } from "effect";
import { AiError, Tool, type Toolkit } from "effect/ai";
import { lookup } from "../../domain/HostedTools.ts";
import { label } from "../../domain/Limits.ts";
import { ToolEffect as Effects, type ToolBoundary } from "../../domain/SideEffects.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";
import { type GuardedTool, type ToolGuard, ToolRefused } from "../../runtime/tools/ToolGuard.ts";
import { streamUntilStopped, untilStopped } from "./StopSignal.ts";

/**
 * Declares the effect of a tool: `tool.annotate(ToolEffect, "read_only")`. Without this annotation, the annotations of `effect/ai` decide.
 * `Readonly` means read_only. `Destructive` or `Idempotent` mean mutating, whatever their value: an idempotent call may run twice, but a
 * replayed response may contain a call with other arguments. Without any annotation the effect is unknown.
 */
export class ToolEffect extends Context.Service<ToolEffect, Effects>()("effect-stream-recovery/effect-ai/ToolEffect") {}

/** Any tools, by name. */
export type AnyTools = Record<string, Tool.Any>;

/** A toolkit with its handlers. */
export type AnyToolkit = Toolkit.WithHandler<AnyTools>;

type Handled = Effect.Success<ReturnType<AnyToolkit["handle"]>>;
type HandlerResult = Stream.Success<Handled>;

/** The work of a call: decodes the input, runs the handler and emits all results. */
type Work = Effect.Effect<void, unknown, unknown>;

/** A tool of a toolkit, guarded. */
export type Guarded = GuardedTool<Work, void, unknown, unknown>;

/** Returns true if the provider itself runs the tool. */
export const isHosted = (tool: Tool.Any): boolean => Tool.isProviderDefined(tool) && !tool.requiresHandler;

/** Returns the effect of a tool, by its annotations. For a tool that the provider runs, the table of hosted tools is the fallback. */
export const effectOf = (tool: Tool.Any): Effects => {
  const declared = Option.getOrUndefined(Context.getOption(tool.annotations, ToolEffect));
  // The types allow any string here. A string that is not an effect counts as unknown.
  if (declared !== undefined) return isEffect(declared) ? declared : "unknown";
  if (Context.get(tool.annotations, Tool.Readonly)) return "read_only";
  const { mapUnsafe } = tool.annotations;
  if (mapUnsafe.has(Tool.Destructive.key) || mapUnsafe.has(Tool.Idempotent.key)) return "mutating";
  return isHosted(tool) ? (lookup(wireName(tool))?.effect ?? "unknown") : "unknown";
};

const isEffect = Schema.is(Effects);

/** Returns the name of a tool in requests to the provider. */
export const wireName = (tool: Tool.Any): string =>
  label(Tool.isProviderDefined(tool) ? tool.providerName : String(tool.name));

/**
 * Returns the boundaries of the tools in one request, guarded if the model resolves the calls itself.
 *
 * @param guard creates guarded boundaries; omitted if the caller resolves the calls, which then cannot be guarded
 */
export const boundaries = (
  tools: ReadonlyArray<Tool.Any>,
  guard: ToolGuard["Service"] | undefined,
): ReadonlyArray<ToolBoundary | Guarded> =>
  tools.map((tool) => {
    const name = wireName(tool);
    const effect = effectOf(tool);
    if (isHosted(tool)) return { name, executor: "provider", effect };
    return guard === undefined ? { name, executor: "runtime", effect } : guard.ofEffect(effect)(name, perform);
  });

const perform = (work: Work): Work => work;

/**
 * Claims the call that a toolkit has to handle. Returns its tool and reference, or `unguarded` before the first run. Returns `refused` for
 * a call that was not delivered or has started before.
 */
export type Claim = (
  name: string,
  id: string | undefined,
) => { readonly tool: Guarded; readonly reference: CallReference } | "unguarded" | "refused";

/**
 * Creates a toolkit whose handlers run only through the guard.
 *
 * @param toolkit the toolkit with its handlers
 * @param claim finds the call; it finds each call only once
 * @param signal the user's Stop, which interrupts the handlers
 */
export const guardToolkit = (toolkit: AnyToolkit, claim: Claim, signal: AbortSignal | undefined): AnyToolkit => {
  const handle = (name: string, params: unknown, id: string | undefined, options: unknown) => {
    const call = claim(name, id);
    const work: ReturnType<AnyToolkit["handle"]> = forwardCall(toolkit, name, params, id, options);
    if (call === "unguarded") return Effect.map(work, (results) => streamUntilStopped(results, signal));
    if (call === "refused") return refuse(name, "no such call was delivered, or the call has already started");
    return Effect.succeed(runInGuard(call.tool, call.reference, name, work, signal));
  };
  // The type of `handle` depends on the tools. The results pass through unchanged, so the cast is safe.
  return { tools: toolkit.tools, handle: handle as unknown as AnyToolkit["handle"] };
};

const forwardCall = (
  toolkit: AnyToolkit,
  name: string,
  params: unknown,
  id: string | undefined,
  options: unknown,
): ReturnType<AnyToolkit["handle"]> => {
  // The arguments come from the typed `handle` and go back to it unchanged, so the cast is safe.
  const args = [name, params, id, options] as unknown as Parameters<AnyToolkit["handle"]>;
  return toolkit.handle(...args);
};

/** Emits the results of a call that runs in the guard, as they arrive. The call settles after its last result. */
const runInGuard = (
  tool: Guarded,
  reference: CallReference,
  name: string,
  work: ReturnType<AnyToolkit["handle"]>,
  signal: AbortSignal | undefined,
) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const queue = yield* Queue.unbounded<HandlerResult, unknown>();
      const collect = Effect.flatMap(
        work,
        Stream.runForEach((result) => Queue.offer(queue, result)),
      );
      yield* untilStopped(tool.run(reference, collect), signal, reference).pipe(
        Effect.catchIf(
          (error): error is ToolRefused => error instanceof ToolRefused,
          (refused) => refuse(name, refused.message),
        ),
        Effect.matchCauseEffect({
          onFailure: (cause) => Queue.failCause(queue, cause),
          onSuccess: () => Queue.failCause(queue, Cause.fail(Cause.Done())),
        }),
        Effect.forkScoped({ startImmediately: true }),
      );
      return Stream.fromQueue(queue);
    }),
  );

const refuse = (tool: string, description: string) =>
  Effect.fail(
    AiError.make({
      module: "EffectAi",
      method: `${tool}.handle`,
      reason: new AiError.ToolConfigurationError({ toolName: tool, description }),
    }),
  );
