/**
 * `stream-recovery conformance`: breaks an SDK's streams on this machine, once with the bare SDK and once with this package.
 */
import { Console, Effect, Option, References, Runtime, Schema } from "effect";
import { Argument, Command, Flag } from "effect/cli";
import type { ProtocolId } from "../provider/Protocols.ts";
import { type ConformanceOptions, runConformance, silenceMsDefault } from "../testing/conformance/Conformance.ts";
import { type ConformanceFaultId, conformanceFaults } from "../testing/conformance/ConformanceFault.ts";
import type { ConformanceRuntime } from "../testing/conformance/ConformanceRuntime.ts";
import { type ConformanceScoreboard, isSafe } from "../testing/conformance/ConformanceScoreboard.ts";
import { conformanceTable } from "../testing/conformance/Table.ts";
import { failing } from "./command/CommandFailed.ts";
import { type SubjectName, subjectNames, subjects, type WithUsSettings } from "./conformance/Subjects.ts";
import * as Progress from "./terminal/Progress.ts";

const fail = failing("conformance");

/**
 * In a column with this package, text was repeated, a tool ran too often or with cut arguments, or a truncation was taken for success. The
 * exit code is 1.
 */
export class UnsafeColumn extends Schema.TaggedError<UnsafeColumn>()("UnsafeColumn", {
  reason: Schema.Literal("unsafe"),
  runtimes: Schema.NonEmptyArray(Schema.String),
}) {
  override readonly [Runtime.errorExitCode] = 1;
  override readonly [Runtime.errorReported] = false;
}

const boolean = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false));

/** Default port of the kit's provider behind a gateway. */
const upstreamPortDefault = 4010;

const settings = {
  subject: Argument.Literals("sdk", subjectNames).pipe(
    Argument.withDescription(`The SDK to test: ${subjectNames.join(", ")}`),
  ),
  withUs: boolean("with-us", "Play only the column with this package"),
  withoutUs: boolean("without-us", "Play only the column of the bare SDK"),
  both: boolean("both", "Play both columns (default)"),
  protocol: Flag.String("protocol").pipe(
    Flag.withDescription("Only protocols whose name contains this (chat, responses, messages, gemini)"),
    Flag.atLeast(0),
  ),
  only: Flag.String("only").pipe(
    Flag.withDescription(
      `Only these faults; repeat it, or separate several with commas: ${conformanceFaults.map(({ id }) => id).join(", ")}`,
    ),
    Flag.atLeast(0),
  ),
  answer: Flag.Literals("answer", ["stop", "retry"]).pipe(
    Flag.withDescription(
      "With this package: the answer if a question asks to withdraw shown text and request it again",
    ),
    Flag.withDefault("stop" as const),
  ),
  silence: Flag.Int("silence").pipe(
    Flag.withDescription("Length of the long silence, in milliseconds; a turn may take three times as long"),
    Flag.withDefault(silenceMsDefault),
    Flag.filter(
      (ms) => ms >= 1 && ms <= silenceMsMax,
      (ms) => `Expected 1 to ${silenceMsMax}, got ${ms}`,
    ),
  ),
  reveal: Flag.Literals("reveal", ["live", "on_complete"]).pipe(
    Flag.withDescription(
      "With this package: show text as it arrives (live), or only when the response is complete (on_complete)",
    ),
    Flag.withDefault("live" as const),
  ),
  through: Flag.String("through").pipe(
    Flag.withDescription(
      "Address of a running gateway to put between the SDK and the kit's provider, for example http://127.0.0.1:8787; it must forward to --upstream-port",
    ),
    Flag.optional,
  ),
  upstreamPort: Flag.Int("upstream-port").pipe(
    Flag.withDescription("With --through: the port on 127.0.0.1 to which the gateway forwards"),
    Flag.withDefault(upstreamPortDefault),
  ),
  header: Flag.String("header").pipe(
    Flag.withDescription('With --through: a header that the gateway expects, as "name: value"; repeat it for several'),
    Flag.atLeast(0),
  ),
  json: boolean("json", "Print the scoreboards as one JSON document instead of a table"),
};

/** Maximum silence, in milliseconds: ten minutes, the SDKs' own timeout. */
const silenceMsMax = 600_000;

/** The `conformance` command: plays the fault matrix against an SDK and prints which column recovers, duplicates or truncates. */
export const conformanceCommand = Command.make("conformance", settings, (asked) =>
  Effect.gen(function* () {
    const faults = yield* parseFaults(asked.only);
    const columns = yield* makeColumns(asked);
    const protocols = yield* parseProtocols(columns, asked.protocol);
    const through = yield* parseThrough(asked);
    const boards = yield* play(columns, faults, protocols, { silenceMs: asked.silence, ...through });
    yield* Console.log(asked.json ? JSON.stringify(boards, null, 2) : conformanceTable(boards));
    yield* failUnsafe(boards);
  }).pipe(
    Effect.catchTags({
      MissingPackage: ({ message }) => fail("refused", message),
      FaultListenError: ({ message }) => fail("refused", `--upstream-port: ${message}`),
    }),
    // The table reports every break. Only defects are logged.
    Effect.provideService(References.MinimumLogLevel, "Error"),
  ),
).pipe(
  Command.withDescription(
    "Break the streams of an SDK on this machine and count the results: recovered, text twice, tools run twice or with cut arguments, silent truncation, false aborts, requests paid. Exit code 1 if a column with this package is unsafe, 2 if an option or a package is missing",
  ),
  Command.withExamples([
    {
      command: "stream-recovery conformance openai",
      description: "Play two columns: the bare SDK, and the SDK with this package",
    },
    {
      command: "stream-recovery conformance openai --without-us --through http://127.0.0.1:8787 --upstream-port 4010",
      description: "Test your own gateway, which forwards to 127.0.0.1:4010",
    },
    {
      command: "stream-recovery conformance ai-sdk --with-us --protocol messages --only text_cut,call_then_cut --json",
      description: "Play some cells of one column and print JSON",
    },
  ]),
);

/** Suffix of a column's name if its SDK runs with this package. */
const withUsMark = " with this package";

/** Fails if a column with this package is unsafe. A column of a bare SDK may be unsafe. */
export const failUnsafe = (boards: ReadonlyArray<ConformanceScoreboard>): Effect.Effect<void, UnsafeColumn> => {
  const unsafe = boards.filter((board) => board.runtime.endsWith(withUsMark) && !isSafe(board));
  const [first, ...rest] = unsafe.map(({ runtime }) => runtime);
  return first === undefined
    ? Effect.void
    : Effect.fail(new UnsafeColumn({ reason: "unsafe", runtimes: [first, ...rest] }));
};

const parseFaults = (only: ReadonlyArray<string>) => {
  const names = only.flatMap((list) => list.split(",")).filter((name) => name !== "");
  const unknown = names.find((name) => conformanceFaults.every(({ id }) => id !== name));
  return unknown === undefined
    ? Effect.succeed(conformanceFaults.map(({ id }) => id).filter((id) => names.length === 0 || names.includes(id)))
    : fail("refused", `--only: unknown fault "${unknown}"`);
};

const makeColumns = Effect.fnUntraced(function* (asked: {
  readonly subject: SubjectName;
  readonly withUs: boolean;
  readonly withoutUs: boolean;
  readonly both: boolean;
  readonly reveal: WithUsSettings["reveal"];
  readonly answer: WithUsSettings["answer"];
  readonly silence: number;
}) {
  const { answer, both, reveal, silence, subject, withUs, withoutUs } = asked;
  const all = both || withUs === withoutUs;
  const bare = all || withoutUs ? [yield* subjects[subject].bare(subject)] : [];
  const settings = { answer, reveal, stallMs: Math.ceil(silence * stallOfSilence) };
  const ours = all || withUs ? [yield* subjects[subject].withUs(`${subject}${withUsMark}`, settings)] : [];
  return [...bare, ...ours];
});

/**
 * Timeouts of the columns with this package, as a multiple of the silence in the fault `silence`. They are longer than that silence, and
 * expire well before a turn counts as hung.
 */
const stallOfSilence = 1.5;

const parseProtocols = (columns: ReadonlyArray<ConformanceRuntime>, asked: ReadonlyArray<string>) => {
  const names = asked.flatMap((list) => list.split(",")).filter((name) => name !== "");
  const spoken = [...new Set(columns.flatMap(({ protocols }) => protocols))];
  const chosen = spoken.filter((protocol) => names.length === 0 || names.some((name) => protocol.includes(name)));
  return chosen.length > 0
    ? Effect.succeed(chosen)
    : fail("refused", `--protocol: expected a part of ${spoken.join(", ")}, got "${names.join(",")}"`);
};

/** SDKs whose columns send the headers of `--header`. */
const sendsHeaders: ReadonlyArray<SubjectName> = ["openai", "anthropic", "ai-sdk"];

const parseThrough = Effect.fnUntraced(function* (asked: {
  readonly subject: SubjectName;
  readonly through: Option.Option<string>;
  readonly upstreamPort: number;
  readonly header: ReadonlyArray<string>;
}) {
  if (Option.isNone(asked.through))
    return asked.header.length === 0 ? {} : yield* fail("refused", "--header: expected only with --through");
  const given = asked.through.value;
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    return yield* fail("refused", `--through: expected an http or https URL, got "${given}"`);
  if (asked.header.length > 0 && !sendsHeaders.includes(asked.subject))
    return yield* fail(
      "refused",
      `--header: expected one of ${sendsHeaders.join(", ")} as the SDK, got ${asked.subject}`,
    );
  const headers: Record<string, string> = {};
  for (const text of asked.header) {
    const [, name, value] = /^([!#$%&'*+\-.^_`|~\w]+):\s*(.*)$/.exec(text) ?? [];
    if (name === undefined || value === undefined)
      return yield* fail("refused", `--header: expected "name: value", got "${text}"`);
    headers[name] = value;
  }
  return { through: { url: given.replace(/\/+$/, ""), port: asked.upstreamPort, headers } };
});

/** Runs the columns one after another, so that none competes with another for the machine. */
const play = Effect.fnUntraced(function* (
  columns: ReadonlyArray<ConformanceRuntime>,
  faults: ReadonlyArray<ConformanceFaultId>,
  protocols: ReadonlyArray<ProtocolId>,
  options: Pick<ConformanceOptions, "silenceMs" | "through">,
) {
  const progress = Progress.make(process.stderr, columns.length * faults.length * protocols.length);
  const boards: Array<ConformanceScoreboard> = [];
  for (const column of columns) {
    const board = yield* runConformance(column, {
      faults,
      protocols,
      ...options,
      onCell: ({ fault, letter, protocol, requests }) =>
        progress.report(`${column.name} ${protocol} ${fault} ${letter}${requests}`, letter === "R" || letter === "E"),
    });
    boards.push(board);
  }
  yield* progress.done;
  return boards;
});
