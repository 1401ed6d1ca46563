/** Combines the state of paths over all workers: if one worker sees an outage, the board shows the path as down. */
import { Context, Effect, Layer, Option, Schema } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { type PathStatus, Paths } from "../../paths/Paths.ts";
import { query } from "../workers/SignedWire.ts";
import { WorkerSockets } from "../workers/WorkerSockets.ts";

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

/** Asks a worker to probe a path. A probe may take as long as the path's connect timeout, so the query's timeout is long. */
const tried = query("path_tried", Schema.String, Schema.Boolean, 20_000);

/** Lists and probes the paths of a gateway, over all its workers. */
export class PathBoard extends Context.Service<
  PathBoard,
  {
    readonly list: Effect.Effect<ReadonlyArray<PathStatus>>;
    /** Probes a path at once. Returns true if the path is known. */
    readonly tryNow: (path: string) => Effect.Effect<boolean>;
  }
>()("effect-stream-recovery/gateway/PathBoard") {
  /** Combines the paths of this process and of its sibling workers. */
  static readonly layer: Layer.Layer<PathBoard, never, Paths> = Layer.effect(
    PathBoard,
    Effect.gen(function* () {
      const paths = yield* Paths;
      const sockets = Option.getOrUndefined(yield* Effect.serviceOption(WorkerSockets));
      if (sockets === undefined) return makeLocalBoard(paths);
      yield* sockets.serveQuery(listed, () => Effect.sync(() => paths.list().slice(0, pathsMax)));
      yield* sockets.serveQuery(tried, (path) => paths.tryNow(path));
      return {
        list: Effect.map(sockets.askOthers(listed, null), (all) =>
          mergePaths([paths.list(), ...all.map(({ value }) => value)]),
        ),
        tryNow: (path) =>
          Effect.map(
            Effect.all([paths.tryNow(path), sockets.askOthers(tried, path)], { concurrency: "unbounded" }),
            ([here, others]) => here || others.some(({ value }) => value),
          ),
      };
    }),
  );

  /** Returns the board if there is one, or else the paths of this process. Returns undefined if there are neither. */
  static readonly here: Effect.Effect<PathBoard["Service"] | undefined> = Effect.gen(function* () {
    const board = Option.getOrUndefined(yield* Effect.serviceOption(PathBoard));
    const paths = Option.getOrUndefined(yield* Effect.serviceOption(Paths));
    return board ?? (paths === undefined ? undefined : makeLocalBoard(paths));
  });
}

const makeLocalBoard = (paths: Pick<Paths["Service"], "list" | "tryNow">): PathBoard["Service"] => ({
  list: Effect.sync(() => paths.list()),
  tryNow: (path) => paths.tryNow(path),
});

const ranks = { down: 0, returning: 1, up: 2 } as const;

/** Merges the lists into one row per path: the worst state that any worker reports, and the waiting runs of all workers. */
export const mergePaths = (lists: ReadonlyArray<ReadonlyArray<PathStatus>>): ReadonlyArray<PathStatus> => {
  const byPath = Map.groupBy(lists.flat(), ({ path }) => path);
  return [...byPath.values()].flatMap((same) => {
    const [worst] = same.toSorted((a, b) => ranks[a.state] - ranks[b.state] || a.since - b.since);
    if (worst === undefined) return [];
    return [
      {
        ...worst,
        reached: same.some(({ reached }) => reached),
        waiting: same.reduce((sum, { waiting }) => sum + waiting, 0),
        cooldowns: keepLongest(same.flatMap(({ cooldowns }) => cooldowns)),
      },
    ];
  });
};

type Cooldown = PathStatus["cooldowns"][number];

/** Keeps the cooldown that ends last for each scope. */
const keepLongest = (cooldowns: ReadonlyArray<Cooldown>): ReadonlyArray<Cooldown> => {
  const byScope = new Map<string, Cooldown>();
  for (const it of cooldowns) {
    const scope = JSON.stringify([it.kind, it.model, it.credential]);
    if ((byScope.get(scope)?.until ?? 0) < it.until) byScope.set(scope, it);
  }
  return [...byScope.values()];
};
