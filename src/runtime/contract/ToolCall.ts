/**
 * A tool call as the caller of a run sees it: whole, named to its tool, and settled.
 */

/** A whole tool call that the caller may now run, and the reference that its guarded tool takes. */
export interface ReadyCall {
  readonly run_id: string;
  readonly attempt: number;
  /** The call's key within its attempt (`choice.ordinal`). */
  readonly call: string;
  /** The provider's own id: empty, `0` or repeated with some providers. */
  readonly id: string;
  readonly tool: string;
  /** The argument text where the decoder keeps it. */
  readonly input: string | undefined;
}

/**
 * A call that a reader before this one was handed. It may have been run, so a reader that attaches must not run it as a new one. A tool
 * of ToolGuard takes it as its reference and refuses what it has run before.
 */
export interface DeliveredCall extends ReadyCall {
  readonly delivered: true;
}

/** What names a call to its tool: the reference from a `Part` event, or a run and the provider's id where only that reaches the handler. */
export type CallReference =
  | Pick<ReadyCall, "run_id" | "attempt" | "call">
  | { readonly run_id: string; readonly id: string };

/** A call as an attempt factory sees it when it builds a continuation. */
export interface SettledCall {
  readonly attempt: number;
  readonly call: string;
  readonly id: string;
  readonly tool: string;
  /** `not_run`: close the call as one that did not run. `unknown`: it may have run. The two others are a person's or a tool's word. */
  readonly outcome: "settled" | "not_run" | "unknown" | "it_ran" | "it_did_not_run";
}
