/**
 * Tells how the paths stand, over all workers: an outage that one of them has met is an outage of the gateway.
 */
import { Context, Effect, Layer, Option, Schema } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { type PathStatus, Paths } from "../../paths/Paths.ts";
import { WorkerBus } from "../workers/WorkerBus.ts";
import { query } from "../workers/WorkerMessage.ts";

/** Most paths that a worker tells of. */
const pathsMax = 4_096;

const Status = Schema.Struct({
  path: Schema.String.check(Schema.isMaxLength(2_048)),
  state: Schema.Literals(["up", "down", "returning"]),
  since: Milliseconds,
  reached: Schema.Boolean,
  probes: Schema.Natural,
  nextProbeAt: Schema.optionalKey(Milliseconds),
  code: Schema.optionalKey(Label),
  waiting: Schema.Natural,
  cooldowns: Schema.Array(
    Schema.Struct({
      model: Schema.optionalKey(Label),
      credential: Schema.optionalKey(Label),
      kind: Schema.Literals(["rate_limited", "overloaded"]),
      until: Milliseconds,
    }),
  ),
});

const listed = query("paths_listed", Schema.Null, Schema.Array(Status).check(Schema.isMaxLength(pathsMax)));

/** The probe of a path may take its connect clock. */
const tried = query("path_tried", Schema.String, Schema.Boolean, { replyMs: 20_000 });

/** How the paths of a gateway stand. */
export class PathBoard extends Context.Service<
  PathBoard,
  {
    readonly list: Effect.Effect<ReadonlyArray<PathStatus>>;
    /** Asks a path at once. Gives whether it is known. */
    readonly tryNow: (path: string) => Effect.Effect<boolean>;
  }
>()("effect-stream-recovery/gateway/PathBoard") {
  /** Of this process, and of the others that serve with it. */
  static readonly layer: Layer.Layer<PathBoard, never, Paths> = Layer.effect(
    PathBoard,
    Effect.gen(function* () {
      const paths = yield* Paths;
      const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
      if (bus === undefined) return alone(paths);
      yield* bus.replies(listed, () => Effect.sync(() => paths.list().slice(0, pathsMax)));
      yield* bus.replies(tried, (path) => paths.tryNow(path));
      return {
        list: Effect.map(bus.askOthers(listed, null), (all) =>
          merged([paths.list(), ...all.map(({ value }) => value)]),
        ),
        tryNow: (path) =>
          Effect.map(
            Effect.all([paths.tryNow(path), bus.askOthers(tried, path)], { concurrency: "unbounded" }),
            ([here, others]) => here || others.some(({ value }) => value),
          ),
      };
    }),
  );

  /** The board where there is one, or the paths of this process; undefined without any. */
  static readonly here: Effect.Effect<PathBoard["Service"] | undefined> = Effect.gen(function* () {
    const board = Option.getOrUndefined(yield* Effect.serviceOption(PathBoard));
    const paths = Option.getOrUndefined(yield* Effect.serviceOption(Paths));
    return board ?? (paths === undefined ? undefined : alone(paths));
  });
}

const alone = (paths: Pick<Paths["Service"], "list" | "tryNow">): PathBoard["Service"] => ({
  list: Effect.sync(() => paths.list()),
  tryNow: (path) => paths.tryNow(path),
});

const ranks = { down: 0, returning: 1, up: 2 } as const;

/** One row a path: as the worker says that sees it worst, with the waits of all of them. */
export const merged = (lists: ReadonlyArray<ReadonlyArray<PathStatus>>): ReadonlyArray<PathStatus> => {
  const byPath = Map.groupBy(lists.flat(), ({ path }) => path);
  return [...byPath.values()].flatMap((same) => {
    const [worst] = same.toSorted((a, b) => ranks[a.state] - ranks[b.state] || a.since - b.since);
    if (worst === undefined) return [];
    return [
      {
        ...worst,
        reached: same.some(({ reached }) => reached),
        waiting: same.reduce((sum, { waiting }) => sum + waiting, 0),
        cooldowns: longest(same.flatMap(({ cooldowns }) => cooldowns)),
      },
    ];
  });
};

type Cooldown = PathStatus["cooldowns"][number];

/** One row a scope: the wait that lasts longest. */
const longest = (cooldowns: ReadonlyArray<Cooldown>): ReadonlyArray<Cooldown> => {
  const byScope = new Map<string, Cooldown>();
  for (const it of cooldowns) {
    const scope = JSON.stringify([it.kind, it.model, it.credential]);
    if ((byScope.get(scope)?.until ?? 0) < it.until) byScope.set(scope, it);
  }
  return [...byScope.values()];
};
