/**
 * Simulates a person who gives each run a scripted answer.
 */
import { Context, Effect, Layer } from "effect";
import type { Choice } from "../../../domain/Decision.ts";
import type { RunRecorder } from "../../../recorder/RunRecorder.ts";
import { UserDecisions } from "../../../runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../runtime/StreamProcessor.ts";
import type { ToolGuard } from "../../../runtime/tools/ToolGuard.ts";

/** Holds the scripted answer of each run. `retry` is given once; later questions get `stop`. */
export class ScriptedPerson extends Context.Service<
  ScriptedPerson,
  { readonly expect: (runId: string, answer: Choice) => Effect.Effect<void> }
>()("effect-stream-recovery/cli/ScriptedPerson") {}

const person = Layer.effectContext(
  Effect.sync(() => {
    const answers = new Map<string, Choice>();
    return Context.make(ScriptedPerson, {
      expect: (runId: string, answer: Choice) => Effect.sync(() => void answers.set(runId, answer)),
    }).pipe(
      Context.add(UserDecisions, {
        ask: (question) =>
          Effect.sync(() => {
            const answer = answers.get(question.run_id) ?? "stop";
            if (answer === "retry") answers.delete(question.run_id);
            return answer;
          }),
      }),
    );
  }),
);

/** A processor over the given recorder, with a scripted person. */
export const layer: Layer.Layer<StreamProcessor | ToolGuard | ScriptedPerson | UserDecisions, never, RunRecorder> =
  StreamProcessor.layer.pipe(Layer.provideMerge(person));
