/**
 * Finds the recorded streams and error bodies of real providers: in the folder that STREAM_RECOVERY_STREAMS names, or beside
 * the repository. They are no part of the package. Where the folder is missing, the tests that play them are skipped.
 */
import { existsSync, readFileSync } from "node:fs";
import * as Json from "../src/domain/Json.ts";
import type { ProtocolId } from "../src/provider/Protocols.ts";

/** The folder of the recordings. */
export const folder = process.env.STREAM_RECOVERY_STREAMS ?? new URL("../../shared/streams", import.meta.url).pathname;

/** A recorded stream. */
export interface Recording {
  /** From the folder. */
  readonly file: string;
  readonly protocol: ProtocolId;
  /** What the manifest says of the stream besides. */
  readonly row: Readonly<Record<string, unknown>>;
}

/** A recorded error response, as the manifest has it. */
export interface RecordedError {
  /** From the folder. */
  readonly file: string;
  readonly status: number;
  readonly response_headers: Readonly<Record<string, string>>;
}

const protocols: ReadonlyArray<ProtocolId> = ["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"];

const manifest = (file: string): Readonly<Record<string, unknown>> =>
  existsSync(`${folder}/${file}`) ? (Json.record(JSON.parse(read(file))) ?? {}) : {};

/** The text of a file of the folder. */
export const read = (file: string): string => readFileSync(`${folder}/${file}`, "utf8");

/** The bytes of a recorded stream. */
export const bytesOf = ({ file }: Recording): Uint8Array<ArrayBuffer> =>
  new Uint8Array(readFileSync(`${folder}/${file}`));

/** Every recorded stream; none where the folder is missing. */
export const recordings: ReadonlyArray<Recording> = Json.list(manifest("manifest.json").streams).map((entry) => {
  const row = Json.record(entry) ?? {};
  const protocol = protocols.find((id) => id === row.protocol);
  if (protocol === undefined) throw new Error(`the manifest names an unknown protocol: ${String(row.protocol)}`);
  return { file: Json.string(row.file), protocol, row };
});

// The manifest is written by hand beside the bodies, and each row is read by a test.
const errorRows = manifest("_errors/manifest.json").errors as ReadonlyArray<RecordedError> | undefined;

/** Every recorded error response; none where the folder is missing. */
export const errors: ReadonlyArray<RecordedError> = errorRows ?? [];
