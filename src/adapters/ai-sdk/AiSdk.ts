/**
 * Recovers the streams of the Vercel AI SDK (`ai` 7): wraps its language models and tools. The calls in the program stay the same.
 *
 * A call that fails ends its stream with the error `CallInterrupted`. The SDK does not retry this error, whatever `maxRetries` is. Set
 * `maxRetries` to 0 nevertheless, because it still applies to models that are not recovered. `streamRetries` has no effect.
 */
import type { LanguageModelMiddleware, ToolSet } from "ai";
import { Cause, Context, Effect, Exit, type Layer, ManagedRuntime } from "effect";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { ToolGuard, ToolRefused } from "../../runtime/tools/ToolGuard.ts";
import { CallRegistry } from "./CallRegistry.ts";
import { type LiveCall, type LiveTransform, makeDiscard } from "./Discard.ts";
import { HandlerFailed } from "./Handler.ts";
import { generate, type Host, type RecoverOptions, stream } from "./Model.ts";
import type { Model } from "./Parts.ts";
import { Repeats } from "./Repeats.ts";
import { type Dispatch, type GuardOptions, guardTools } from "./Tools.ts";

export { CallInterrupted } from "./CallInterrupted.ts";
export { applyRecovery, type Discard, discardKind, recoveryTransform } from "./Discard.ts";
export type { RecoverOptions } from "./Model.ts";
export type { GuardOptions } from "./Tools.ts";

/** Recovers models, and guards the tools that run for the models' calls. */
export interface Recovery {
  /**
   * Creates a model whose broken streams are recovered.
   *
   * @param model a model of specification v4; for older ones use `middleware` with the SDK's `wrapLanguageModel`
   * @returns a model with the same name, whose failures are `CallInterrupted`
   */
  readonly recover: (model: Model, options?: RecoverOptions) => Model;
  /**
   * Returns a middleware for `wrapLanguageModel` that does the same as `recover`. It must be the outermost middleware, because every
   * attempt runs the middlewares inside it again.
   */
  readonly middleware: (options?: RecoverOptions) => LanguageModelMiddleware;
  /**
   * Returns options for a `streamText` call that shows parts as they arrive and withdraws those of a broken attempt: `streamText({
   * ...recovery.live(model), prompt })`. The text and the messages of the result then contain no withdrawn parts. A stream to a web page
   * also needs `recoveryTransform`. Without the transform in these options, the call fails where it would have to withdraw parts.
   */
  readonly live: (model: Model, options?: RecoverOptions) => LiveOptions;
  /**
   * Guards a set of tools: a handler starts once, and only for a call that a recovered model has delivered.
   *
   * @param options the effect of each tool (`read_only`, `mutating`); a tool without one is `unknown`
   * @returns the set, of the same type; a call that may not start fails with `ToolRefused`, which the SDK sends to the model
   */
  readonly guardTools: <T extends ToolSet>(tools: T, options?: GuardOptions<T>) => T;
}

/** The options that `live` adds to a `streamText` call. */
export interface LiveOptions {
  readonly model: Model;
  readonly experimental_transform: LiveTransform;
}

/** A recovery that starts and stops its own services. */
export interface OwnedRecovery extends Recovery {
  /** Ends the calls in progress with rule `lifecycle_closed` and releases all resources. Later calls fail. */
  readonly close: () => Promise<void>;
}

/** Options of a recovery that starts its own services. */
export interface RecoveryOptions {
  /** Provides the processor and the tool guard. Default: an in-memory recorder, and questions get their default answer. */
  readonly layer?: Layer.Layer<StreamProcessor | ToolGuard>;
}

/** Creates a recovery on the services of an Effect program. */
export const make: Effect.Effect<Recovery, never, StreamProcessor | ToolGuard> = Effect.map(
  Effect.context<StreamProcessor | ToolGuard>(),
  (services) => recovery(() => Promise.resolve(services)),
);

/**
 * Creates a recovery for a program without Effect. Its services start with the first call.
 *
 * @returns a recovery; call its `close` when the program ends
 */
export const createRecovery = (options: RecoveryOptions = {}): OwnedRecovery => {
  const runtime = ManagedRuntime.make(options.layer ?? StreamProcessor.layerDefault);
  const closing = Effect.flatMap(StreamProcessor, (processor) => processor.close("this recovery was closed"));
  let started = false;
  const services = () => {
    started = true;
    return runtime.context();
  };
  return {
    ...recovery(services),
    close: async () => {
      if (started) await runtime.runPromise(closing);
      await runtime.dispose();
    },
  };
};

type Services = Context.Context<StreamProcessor | ToolGuard>;

const recovery = (services: () => Promise<Services>): Recovery => {
  const shared = { calls: new CallRegistry(), repeats: new Repeats() };
  const host = async (): Promise<Host> => ({ ...shared, services: await services() });
  const dispatch = dispatchOf(shared.calls, services);
  const recoverModel = (model: Model, options: RecoverOptions, live?: LiveCall): Model => ({
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doStream: async (params) =>
      stream(await host(), { model, params, options, ...(live === undefined ? {} : { live }) }),
    doGenerate: async (params) => generate(await host(), { model, params, options }),
  });
  return {
    recover: (model, options = {}) => recoverModel(model, options),
    live: (model, options = {}) => {
      const live: LiveCall = { attached: false };
      return { model: recoverModel(model, options, live), experimental_transform: makeDiscard(live) };
    },
    middleware: (options = {}) => ({
      specificationVersion: "v4",
      wrapStream: async ({ model, params }) => stream(await host(), { model, params, options }),
      wrapGenerate: async ({ model, params }) => generate(await host(), { model, params, options }),
    }),
    guardTools: (tools, options = {}) => guardTools(tools, options, dispatch),
  };
};

const dispatchOf =
  (calls: CallRegistry, services: () => Promise<Services>): Dispatch =>
  async (marked, call, handler) => {
    const context = await services();
    const reference = calls.take(marked.name, call);
    if (reference === undefined) {
      const message = `${marked.name}: expected a call that a recovered model delivered`;
      throw new ToolRefused({ reason: "unknown_call", tool: marked.name, message });
    }
    const guarded = marked.guardWith(Context.get(context, ToolGuard));
    const exit = await Effect.runPromiseExitWith(context)(guarded.run(reference, handler));
    if (Exit.isSuccess(exit)) return exit.value;
    const error = Cause.squash(exit.cause);
    throw error instanceof HandlerFailed ? error.cause : error;
  };
