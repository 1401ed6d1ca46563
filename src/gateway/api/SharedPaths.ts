/**
 * Lets the workers of `serve --workers` keep the waits that providers announce together: a credential that one of them was told to slow
 * down with waits at all of them.
 *
 * Whether a path is up each worker finds out by itself: a probe is a connection and no request. Requests that are let go together behind
 * a wait are so at each worker.
 */
import { Effect, Layer, Option, Schema } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { Paths } from "../../paths/Paths.ts";
import { WorkerBus } from "../workers/WorkerBus.ts";
import { notice } from "../workers/WorkerMessage.ts";

const Refused = Schema.Struct({
  path: Schema.String.check(Schema.isMaxLength(2_048)),
  /** A digest that is the same in all workers. */
  credential: Label,
  model: Schema.UndefinedOr(Label),
  kind: Schema.Literals(["rate_limited", "overloaded"]),
  waitMs: Milliseconds,
});

/** A provider has announced a wait. */
const refused = notice("path_refused", Refused);

const isSendable = Schema.is(Refused);

/** Puts what all workers hear in the place of what this one does, where there are several. */
export const layer: Layer.Layer<Paths> = Layer.effect(
  Paths,
  Effect.gen(function* () {
    const own = yield* Paths.make;
    const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
    if (bus === undefined) return own;
    yield* bus.on(refused, ({ credential, kind, model, path, waitMs }) =>
      own.refused({ path, credential, model }, { kind, waitMs, onlyThis: false }),
    );
    return {
      ...own,
      refused: (scope, refusal) => {
        own.refused(scope, refusal);
        const { kind, onlyThis, waitMs } = refusal;
        const word = { path: scope.path, credential: scope.credential, model: scope.model, kind, waitMs };
        if (!onlyThis && isSendable(word)) bus.tell(refused, word);
      },
    };
  }),
);
