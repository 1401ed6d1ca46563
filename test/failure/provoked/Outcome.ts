/**
 * A client's report of a fault, as one row of the table: the fields of a failure that matter to a person or a policy.
 */
import type { Failure } from "../../../src/domain/Failure.ts";
import type { Provoked } from "./clients/Client.ts";

/** The telling fields of a failure, or `no error`. */
export type Outcome = "no error" | Said;

/** The telling fields; missing ones are omitted. */
export interface Said {
  readonly kind: Failure["kind"];
  readonly reason?: string;
  readonly by?: string;
  readonly status?: number;
  readonly code?: string;
  readonly http2_code?: string;
  readonly operation?: string;
  readonly retry_after_ms?: number;
  readonly retryable: boolean;
  readonly not_processed: boolean;
}

/** The fields beside kind and flags, in reading order. */
export const telling = ["reason", "by", "status", "code", "http2_code", "operation", "retry_after_ms"] as const;

export const outcomeOf = ({ failure }: Provoked): Outcome =>
  failure === undefined
    ? "no error"
    : {
        kind: failure.kind,
        ...Object.fromEntries(
          telling.flatMap((key) => {
            const value: unknown = Reflect.get(failure, key);
            return value === undefined ? [] : [[key, value]];
          }),
        ),
        retryable: failure.retryable === true,
        not_processed: failure.not_processed === true,
      };

const said =
  (retryable: boolean, not_processed: boolean) =>
  (kind: Failure["kind"], fields: Partial<Said> = {}): Said => ({ kind, ...fields, retryable, not_processed });

/** Retryable, and it is unknown what the provider did. */
export const retryable = said(true, false);

/** Retryable, because the provider says that it did nothing. */
export const refused = said(true, true);

/** Not retryable, and it is unknown what the provider did. */
export const final = said(false, false);

/** Not retryable: the provider refused the request. */
export const rejected = (reason: string, fields: Partial<Said> = {}): Said =>
  said(false, true)("rejected", { reason, ...fields });

/** A connection that broke. */
export const broken = (code?: string, operation?: string): Said =>
  retryable("transport", {
    ...(code === undefined ? {} : { code }),
    ...(operation === undefined ? {} : { operation }),
  });

/** A connection that would break again. */
export const impossible = (code: string): Said => final("transport", { code, operation: "connect" });
