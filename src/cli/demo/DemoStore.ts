/**
 * Records the demo's runs in the store. If the store cannot be opened, records them in memory, because a disk problem must not fail a demo.
 */
import { Console, type Context, Effect, Layer, Option, Random, type Scope } from "effect";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import type { Retention } from "../../recorder/retention/Retention.ts";
import { defaultFile } from "../../recorder/sql/sqlite/SqlFile.ts";
import * as RunStore from "../../recorder/store/RunStore.ts";
import { failing } from "../command/CommandFailed.ts";
import { errorText, readRetention, storeNameProblem } from "../command/Store.ts";
import * as Screen from "../terminal/Screen.ts";

/** The store in which a demo records its runs, and the screen that prints them. */
export interface DemoStore {
  readonly recorder: Context.Context<RunRecorder>;
  /** The file or server; undefined if the runs are lost when this process ends. */
  readonly file: string | undefined;
  /** Creates a run id from a name and a suffix that is unique to this demo. */
  readonly runId: (name: string) => string;
  readonly screen: Screen.Screen;
}

/** Length of the demo's suffix, in base-36 digits. */
const suffixDigits = 5;

/**
 * Opens the store of a demo.
 *
 * @param db the `--db` value
 * @param kept false to record in memory, for demos with too many runs to keep
 */
export const open = Effect.fnUntraced(function* (db: Option.Option<string>, kept: boolean) {
  const named = Option.getOrUndefined(db);
  const file = kept ? (named ?? defaultFile()) : RunStore.inMemory;
  const foreign = file === RunStore.inMemory ? undefined : storeNameProblem(file);
  if (foreign !== undefined) return yield* failing("demo")("refused", foreign);
  const retention = readRetention();
  if (typeof retention === "string") return yield* failing("demo")("refused", retention);
  const opened = file === RunStore.inMemory ? undefined : yield* openFile(file, retention);
  const number = yield* Random.nextIntBetween(0, 36 ** suffixDigits);
  const suffix = number.toString(36).padStart(suffixDigits, "0");
  return {
    recorder: opened ?? (yield* Layer.build(RunRecorder.layerMemory())),
    file: opened === undefined ? undefined : file,
    runId: (name: string) => `${name}-${suffix}`,
    screen: yield* Screen.make(named),
  } satisfies DemoStore;
});

const openFile = (
  file: string,
  retention: Retention,
): Effect.Effect<Context.Context<RunRecorder> | undefined, never, Scope.Scope> =>
  Effect.catchTag(Layer.build(RunStore.layer({ file, retention })), "RecorderError", (error) =>
    Effect.as(Console.error(`demo: runs are kept in memory only: ${errorText(error, file)}`), undefined),
  );

/** Lists the commands that show the runs again; empty if the runs are lost when this process ends. */
export const listNextCommands = ({ file, screen }: DemoStore, runId: string | undefined): string => {
  if (file === undefined) return "";
  const { ink, type } = screen;
  const commands = [
    "runs list",
    ...(runId === undefined ? [] : [`runs show ${runId}`, `runs export ${runId}`]),
    "backtest",
  ];
  return [
    `These runs are on record in ${file}. Look at them now or after a restart:`,
    "",
    ...commands.map((command) => `  ${ink("strong", type(command))}`),
  ].join("\n");
};
