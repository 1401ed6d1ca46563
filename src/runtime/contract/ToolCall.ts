/**
 * Tool calls as the caller of a run sees them: complete, attributed to a tool, and settled.
 */

/** A complete tool call that the caller may now run. It is also the reference that its guarded tool takes. */
export interface ReadyCall {
  readonly run_id: string;
  readonly attempt: number;
  /** The call's key within its attempt (`choice.ordinal`). */
  readonly call: string;
  /** The provider's own id. Some providers send it empty, as `0` or repeated. */
  readonly id: string;
  readonly tool: string;
  /** The argument text, if the decoder keeps it. */
  readonly input: string | undefined;
}

/**
 * A call that an earlier reader already received. The call may have run, so a reader that attaches must not run it as a new call. A tool of
 * ToolGuard accepts it as a reference and refuses calls that it has already started.
 */
export interface DeliveredCall extends ReadyCall {
  readonly delivered: true;
}

/**
 * Identifies a call for its tool: the reference from a `Part` event, or the run and the provider's id if the handler has nothing
 * else.
 */
export type CallReference =
  | Pick<ReadyCall, "run_id" | "attempt" | "call">
  | { readonly run_id: string; readonly id: string };

/** A call and its outcome, which an attempt factory receives to build a continuation. */
export interface SettledCall {
  readonly attempt: number;
  readonly call: string;
  readonly id: string;
  readonly tool: string;
  /** `not_run`: the call never started. `unknown`: it may have run. `it_ran` and `it_did_not_run` are the answer of a person or a tool. */
  readonly outcome: "settled" | "not_run" | "unknown" | "it_ran" | "it_did_not_run";
}
