/**
 * Writes the runs of a store as the lines of a file, page by page.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import type { RecorderError } from "../RecorderError.ts";
import { endLine, headLine, runLine } from "./RunFile.ts";
import type { KeptRun, RunTransfer } from "./RunTransfer.ts";

/** Runs of a page: all of them are in memory at once. */
const pageRuns = 200;

/** What has become of the runs until now. */
export interface Written {
  readonly runs: number;
  /** Runs that a process drives. */
  readonly leftOut: number;
  /** Runs whose rows are damaged. */
  readonly damaged: number;
}

/** How runs are written. */
export interface WriterOptions {
  /** Wall clock, milliseconds since the epoch. */
  readonly at: number;
  /** Whether runs are taken along that a process drives: for the store that they come into it is as if that process were gone. */
  readonly takesDriven: boolean;
  /** Runs of a page. */
  readonly pageRuns?: number;
  /** Hears how far it has come, before each piece that follows. */
  readonly told?: (written: Written) => void;
}

/**
 * The texts of a file, whole lines each. Every page is read at one moment, and a page when the one before was taken: runs that
 * begin meanwhile stand at the end.
 */
export const fileOf = (transfer: RunTransfer, options: WriterOptions): Stream.Stream<string, RecorderError> =>
  Stream.suspend(() => {
    const limit = options.pageRuns ?? pageRuns;
    let written: Written = { runs: 0, leftOut: 0, damaged: 0 };
    const head = Effect.map(transfer.key, (key) => headLine(options.at, key));
    const pages = Stream.paginate<number | undefined, string, RecorderError>(undefined, (from) =>
      Effect.map(transfer.page(from, limit), ({ damaged, next, runs }) => {
        const taken = options.takesDriven ? runs : runs.filter((run) => !isDriven(run));
        written = {
          runs: written.runs + taken.length,
          leftOut: written.leftOut + runs.length - taken.length,
          damaged: written.damaged + damaged.length,
        };
        options.told?.(written);
        return [taken.map(({ record }) => runLine(record)), Option.fromUndefinedOr(next)] as const;
      }),
    );
    const end = Stream.suspend(() => Stream.succeed(endLine({ runs: written.runs, left_out: written.leftOut })));
    return Stream.concat(Stream.concat(Stream.fromEffect(head), pages), end);
  });

const isDriven = ({ isDriven, record }: KeptRun): boolean => isDriven && record.state !== "ended";
