/**
 * Keeps runs in SQLite, so that they outlive their process.
 */
export { RecorderError } from "../RecorderError.ts";
export type { Retention } from "../retention/Retention.ts";
export { type SqlFileOptions, SqlRunRecorder, type SqlRunRecorderOptions } from "./SqlRunRecorder.ts";
export * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";
