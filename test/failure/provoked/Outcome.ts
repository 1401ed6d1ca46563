/**
 * What a client said of a fault, as one row of the table: the fields of a failure that a person or a policy looks at.
 */
import type { Failure } from "../../../src/domain/Failure.ts";
import type { Provoked } from "./clients/Client.ts";

/** A failure's telling fields, or that the client saw nothing wrong. */
export type Outcome = "no error" | Said;

/** The telling fields; those that a failure does not have are left out. */
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

/** The fields beside kind and flags, in the order in which they are read. */
export const telling = ["reason", "by", "status", "code", "http2_code", "operation", "retry_after_ms"] as const;

/** Reads the telling fields. */
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

/** Retryable, and the provider says that it did nothing. */
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

/** A connection that will break again. */
export const impossible = (code: string): Said => final("transport", { code, operation: "connect" });
