/** Keeps runs in PostgreSQL, which processes on many machines can share. It needs the package `@effect/sql-pg`. */
export { RecorderError } from "../RecorderError.ts";
export type { Retention } from "../retention/Retention.ts";
export type { SqlRunRecorderOptions } from "../sql/SqlRunRecorder.ts";
export { type PostgresOptions, PostgresRunRecorder } from "./PostgresRunRecorder.ts";
