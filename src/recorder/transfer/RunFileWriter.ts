/**
 * Writes the runs of a store as the lines of a file, page by page.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import type { RecorderError } from "../RecorderError.ts";
import { endLine, headLine, runLine } from "./RunFile.ts";
import type { KeptRun, RunTransfer } from "./RunTransfer.ts";

/** Default number of runs in a page. A whole page is in memory at once. */
const pageRuns = 200;

/** Progress of the export. */
export interface Written {
  readonly runs: number;
  /** Runs left out because a process owns them. */
  readonly leftOut: number;
  /** Runs with damaged rows. */
  readonly damaged: number;
}

/** Options of `fileOf`. */
export interface WriterOptions {
  /** Wall clock, in milliseconds since the epoch. */
  readonly at: number;
  /** True to include runs that a process owns. The receiving store treats such a run as if its process were gone. */
  readonly takesDriven: boolean;
  /** Number of runs in a page; default 200. */
  readonly pageRuns?: number;
  /** Called with the progress before each piece after the first. */
  readonly onProgress?: (written: Written) => void;
}

/**
 * Returns the content of a file in pieces of whole lines. Each page is read in one snapshot, after the previous page was consumed, so runs
 * that start during the export come last.
 */
export const fileOf = (transfer: RunTransfer, options: WriterOptions): Stream.Stream<string, RecorderError> =>
  Stream.suspend(() => {
    const limit = options.pageRuns ?? pageRuns;
    let written: Written = { runs: 0, leftOut: 0, damaged: 0 };
    const head = Effect.map(transfer.key, (key) => headLine(options.at, key));
    const pages = Stream.paginate<number | undefined, string, RecorderError>(undefined, (from) =>
      Effect.map(transfer.readPage(from, limit), ({ damaged, next, runs }) => {
        const taken = options.takesDriven ? runs : runs.filter((run) => !isDriven(run));
        written = {
          runs: written.runs + taken.length,
          leftOut: written.leftOut + runs.length - taken.length,
          damaged: written.damaged + damaged.length,
        };
        options.onProgress?.(written);
        return [taken.map(({ record }) => runLine(record)), Option.fromUndefinedOr(next)] as const;
      }),
    );
    const end = Stream.suspend(() => Stream.succeed(endLine({ runs: written.runs, left_out: written.leftOut })));
    return Stream.concat(Stream.concat(Stream.fromEffect(head), pages), end);
  });

const isDriven = ({ isDriven, record }: KeptRun): boolean => isDriven && record.state !== "ended";
