/**
 * Plays recordings through the real client and StreamProcessor. Each recording is played once unbroken, and once for each seeded position:
 * broken there, and then followed by the unbroken response.
 */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { Duration, Effect, Exit, Random, Stream } from "effect";
import { ProviderClient } from "../../../client/index.ts";
import type { Choice } from "../../../domain/Decision.ts";
import { protocols } from "../../../provider/Protocols.ts";
import { RunRecorder } from "../../../recorder/RunRecorder.ts";
import { StreamProcessor } from "../../../runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../runtime/tools/ToolGuard.ts";
import { FaultProvider, type RequestLog } from "../../../testing/index.ts";
import * as Progress from "../../terminal/Progress.ts";
import { serverEndsMs } from "../scenarios/Player.ts";
import type { Answers } from "../scenarios/Scenario.ts";
import { ScriptedPerson } from "../stage/ScriptedPerson.ts";
import { Transcript } from "../stage/Transcript.ts";
import * as Frames from "./Frames.ts";
import { type Heard, judgeBroken, judgeWhole, type RecordingRow } from "./Judge.ts";
import { bytesOf, type Recording, type Recordings } from "./Recordings.ts";
import * as Takes from "./Take.ts";

/** Timeouts of a run whose provider stalls, in milliseconds. */
export const stallMs = 800;

/** Maximum takes (playbacks) of one recording that run at the same time. */
export const takesAtOnce = 8;

/** Maximum concurrent recordings. They mostly wait and use little CPU. */
export const recordingsAtOnce = 6;

/**
 * Plays the recordings, with progress on stderr.
 *
 * @param seed the seed of the break positions
 * @param cuts breaks of each kind per recording
 */
export const playRecordings = Effect.fn("demo.playRecordings")(function* (
  { folder, list }: Recordings,
  seed: number,
  cuts: number,
) {
  const progress = Progress.make(process.stderr, list.length);
  const rows = yield* Effect.forEach(
    list,
    (recording) =>
      Effect.tap(playRecording(folder, recording, seed, cuts), (played) =>
        progress.report(
          recording.file,
          played.every((row) => row.problems.length === 0),
        ),
      ),
    { concurrency: recordingsAtOnce },
  );
  yield* progress.done;
  return rows.flat();
});

/**
 * Plays every take of a recording.
 *
 * @param seed the seed of the break positions and of the caller's behaviour
 * @param cuts breaks of each kind
 * @returns a judged row per take, the unbroken one first
 */
const playRecording = Effect.fn("demo.playRecording")(
  function* (folder: string, recording: Recording, seed: number, cuts: number) {
    const { bytes, hash, problems } = yield* bytesOf(folder, recording);
    const frames = Frames.read(bytes);
    const healthy = recording.status >= 200 && recording.status <= 299;
    const end = Frames.endOf(recording.protocol, frames, bytes.byteLength);
    const takes = healthy ? Takes.makeBrokenTakes(recording, seed, cuts, end) : [];
    const server = yield* FaultProvider.make({
      script: {
        scripts: Object.fromEntries([Takes.whole, ...takes].map((take) => [take.name, answersOf(recording, take)])),
        after: "repeat",
      },
      directory: resolve(folder),
    });
    const client = yield* ProviderClient.make();
    const play = (take: Takes.Take) => playTake(recording, take, client, server);
    const whole = yield* play(Takes.whole);
    const first = judgeWhole(recording, frames, hash, whole, problems);
    const rows = yield* Effect.forEach(
      takes,
      (take) => Effect.map(play(take), (it): RecordingRow => judgeBroken(recording, take, frames, whole, it)),
      { concurrency: takesAtOnce },
    );
    return [first, ...rows];
  },
  (effect, _folder, recording, seed) => Effect.scoped(Random.withSeed(effect, `${seed} ${recording.file}`)),
);

const answersOf = (recording: Recording, { at, kind }: Takes.Take): Answers => {
  const type = Object.entries(recording.response_headers).find(([name]) => name.toLowerCase() === "content-type")?.[1];
  const served = {
    raw_file: recording.file,
    status: recording.status,
    ...(typeof type === "string" ? { headers: { "content-type": type } } : {}),
  };
  return kind === "whole" ? [served] : [{ ...served, break: { kind, at: "byte", n: at } }, served];
};

/** Plays one take and returns what the caller received. */
const playTake = Effect.fnUntraced(function* (
  recording: Recording,
  take: Takes.Take,
  client: ProviderClient["Service"],
  server: FaultProvider["Service"],
) {
  const processor = yield* StreamProcessor;
  const guard = yield* ToolGuard;
  const runId = runIdOf(recording, take);
  const answer: Choice = take.kind === "whole" ? "stop" : take.caller.answer;
  yield* ScriptedPerson.use((person) => person.expect(runId, answer));
  const transcript = new Transcript();
  let completed = false;
  const names = new Set(recording.tool_names.filter((name) => name !== null));
  const exit = yield* processor
    .run({
      runId,
      // Each take has its own provider id, so that concurrent runs do not share a throttle.
      provider: { id: runId, reasoning: false },
      tools: [...names].map((name) => guard.mutating(name, () => Effect.void)),
      attempt: (attempt) =>
        client.stream({
          protocol: protocols.get(recording.protocol),
          url: server.endpoint(recording.protocol, take.name),
          body: { stream: true },
          delivery: attempt.delivery,
          bytes: attempt.bytes,
        }),
      observe: (part) => part.observation,
      reveal: take.caller.reveal,
      ...(take.kind === "stall" ? { clocks: { first_progress: stallMs, idle: stallMs } } : {}),
      // A failing recording fails every time, so its retries are limited: none for the unbroken take, and at most two for a broken take.
      budget:
        take.kind === "whole"
          ? { max_auto_retries: 0, max_not_processed: 0 }
          : { max_auto_retries: 1, max_not_processed: 1 },
    })
    .pipe(
      Stream.runForEach((event) =>
        Effect.sync(() => {
          transcript.apply(event);
          completed ||= event._tag === "RunCompleted";
        }),
      ),
      Effect.exit,
    );
  const filterOwn = (rows: ReadonlyArray<RequestLog>) => rows.filter((row) => row.script === take.name);
  yield* Effect.timeoutOption(
    server.until((rows) => (filterOwn(rows).every((row) => row.outcome !== "open") ? true : undefined)),
    Duration.millis(serverEndsMs),
  );
  const incidents = yield* (yield* RunRecorder).incidents(runId);
  return {
    completed: completed && Exit.isSuccess(exit),
    frames: transcript.parts.map((part) => part.event),
    decisions: incidents.map(({ decision }) => `${decision.action} ${decision.rule}`),
    log: filterOwn(yield* server.log),
  } satisfies Heard;
});

/** Hashes the file name, which may be longer than a run id allows. */
const runIdOf = ({ file }: Recording, { name }: Takes.Take): string =>
  `${createHash("sha256").update(file).digest("hex").slice(0, 16)}.${name}`;
