/**
 * Finds the recorded streams and error bodies of real providers in the folder named by `STREAM_RECOVERY_STREAMS`, or beside
 * the repository. They are not part of the package, and the tests that play them are skipped if the folder is missing.
 */
import { existsSync, readFileSync } from "node:fs";
import * as Json from "../src/domain/Json.ts";
import { type ProtocolId, protocols } from "../src/provider/Protocols.ts";

export const folder = process.env.STREAM_RECOVERY_STREAMS ?? new URL("../../shared/streams", import.meta.url).pathname;

export interface Recording {
  /** Path within the folder. */
  readonly file: string;
  readonly protocol: ProtocolId;
  /** The stream's row of the manifest. */
  readonly row: Readonly<Record<string, unknown>>;
}

/** A recorded error response, as listed in the manifest. */
export interface RecordedError {
  /** Path within the folder. */
  readonly file: string;
  readonly status: number;
  readonly response_headers: Readonly<Record<string, string>>;
}

const manifest = (file: string): Readonly<Record<string, unknown>> =>
  existsSync(`${folder}/${file}`) ? (Json.record(JSON.parse(read(file))) ?? {}) : {};

export const read = (file: string): string => readFileSync(`${folder}/${file}`, "utf8");

export const bytesOf = ({ file }: Recording): Uint8Array<ArrayBuffer> =>
  new Uint8Array(readFileSync(`${folder}/${file}`));

/** Every recorded stream; empty if the folder is missing. */
export const recordings: ReadonlyArray<Recording> = Json.list(manifest("manifest.json").streams).map((entry) => {
  const row = Json.record(entry) ?? {};
  const protocol = protocols.ids.find((id) => id === row.protocol);
  if (protocol === undefined) throw new Error(`the manifest names an unknown protocol: ${String(row.protocol)}`);
  return { file: Json.string(row.file), protocol, row };
});

// The manifest is written by hand beside the bodies, and a test reads each row.
const errorRows = manifest("_errors/manifest.json").errors as ReadonlyArray<RecordedError> | undefined;

/** Every recorded error response; empty if the folder is missing. */
export const errors: ReadonlyArray<RecordedError> = errorRows ?? [];
