/**
 * Collects the facts of one request for its access line and its metrics: origin, destination, outcome and durations. The facts never
 * include a header's value, a query, a prompt, a key or a token.
 */

import type { RelayEvent } from "../../adapters/relay/RelayReader.ts";
import type { Rule } from "../../domain/Decision.ts";
import type { Failure } from "../../domain/Failure.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { PassedReason } from "../wires/Wires.ts";

/**
 * Outcomes of a request. `from_memory`: the request repeats one whose run failed recently, and got the same refusal without a new attempt.
 * `attached`: it received the response of an existing run. `left`: its client has left, and the run continues. `cancelled`: its client has
 * left, which ended the run. `run_cancelled`: a person ended the run while the client was connected. A request whose client closes after
 * the terminal marker is `completed`.
 */
export const outcomes = [
  "completed",
  "attached",
  "left",
  "given_up",
  "refused",
  "from_memory",
  "cancelled",
  "run_cancelled",
  "failed",
] as const satisfies ReadonlyArray<string>;

/** Outcome of a request, as the access line names it. */
export type Outcome = (typeof outcomes)[number];

/** The fields of an access line, in order. */
export interface AccessRecord {
  /** The request's method. */
  readonly method: string;
  /** The request's path, without its query; `…` replaces a token or a key; at most 256 characters. */
  readonly path: string;
  /** The status that was sent; left out if the connection broke before. */
  readonly status?: number;
  /**
   * The outcome: `completed`, `attached` (it received the response of an existing run), `left` (its client has gone, and the run
   * continues), `given_up` (its run stopped; `rule` says why), `refused` (by the gateway, before a run), `from_memory` (it repeats a failed
   * run, and got the same answer again), `cancelled` (its client left, which ended the run), `run_cancelled` (a person ended the run while
   * the client was there: on the page, by `runs cancel`, or by run id) or `failed`.
   */
  readonly outcome: Outcome;
  /** The name of the upstream; left out for the gateway's own paths, and if none was found. */
  readonly upstream?: string;
  /** The route of the last attempt, if the upstream has fallback routes. */
  readonly route?: string;
  /** The name of the token, if tokens have names. */
  readonly token?: string;
  /** The client, as the table of clients recognises it. */
  readonly client?: string;
  /** The run's id, for `stream-recovery runs show`. */
  readonly run_id?: string;
  /** Number of attempts of the run. */
  readonly attempts?: number;
  /** The rule of the run's last decision. */
  readonly rule?: string;
  /** The kind of the last failure, for example `transport`, `stalled` or `rate_limited`. */
  readonly failure?: Failure["kind"];
  /** The code of the last failure, for example `ECONNREFUSED`, or the provider's own. */
  readonly code?: string;
  /** The reason why the gateway refused the request, as in `x-recovery-refused`. */
  readonly refused?: string;
  /** Age of the refusal that was repeated from memory, in milliseconds. */
  readonly memory_ms?: number;
  /**
   * True if the request passed through although its address is a model's, because the part of its body outside the conversation is too
   * large to be read.
   */
  readonly unread?: true;
  /** Reason why the request was not a run although its response streamed, as in `x-recovery-passed`. */
  readonly passed?: PassedReason;
  /** The byte of the run's response at which an attached request starts. */
  readonly attached_at?: number;
  /** Number of events and comments that the gateway itself sent, so that the client does not time out. */
  readonly no_ops?: number;
  /** Time that the run waited for the path to its provider and for announced cooldowns, in milliseconds. */
  readonly waited_ms?: number;
  /** Number of times that shown text was continued, each time at a proven seam (the place where the continuation joins). */
  readonly seams?: number;
  /** Bytes of the response's body that were written. */
  readonly bytes: number;
  /** Time from the request to the head of its response, in milliseconds. */
  readonly head_ms?: number;
  /** Time from the request to the first bytes of its response's body, in milliseconds. */
  readonly first_ms?: number;
  /** Time from the request to its end, in milliseconds. */
  readonly ms: number;
}

/** Maximum length of a recorded path, in characters. The rest is cut. */
export const pathCharactersMax = 256;

type Learned =
  | "upstream"
  | "route"
  | "token"
  | "client"
  | "run_id"
  | "attempts"
  | "rule"
  | "failure"
  | "code"
  | "refused"
  | "unread"
  | "passed"
  | "memory_ms"
  | "attached_at";

/** Facts that other modules of the gateway add with `addFacts`. Undefined facts are ignored. */
export type AccessFacts = { readonly [Key in Learned]?: AccessRecord[Key] | undefined };

type KnownFacts = { -readonly [Key in keyof AccessFacts]: AccessFacts[Key] };

/** Collects the record of one request while it is served. */
export class Access {
  readonly #now: () => number;
  readonly #begun: number;
  #method = "";
  #path = "";
  readonly #facts: KnownFacts = {};
  #status: number | undefined;
  #bytes = 0;
  #noOps = 0;
  #waitedMs: number | undefined;
  #seams = 0;
  #headAt: number | undefined;
  #firstAt: number | undefined;
  #end: "whole" | "left" | "broken" | undefined;
  #own = false;
  #givenUp = false;
  #lingers = false;
  #leftAt: number | undefined;

  /** @param now monotonic time, in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#begun = now();
  }

  /**
   * Records the request line.
   *
   * @param target path and query as received
   */
  recordRequest(method: string, target: string): void {
    this.#method = method.slice(0, methodCharactersMax);
    this.#path = pathOf(target);
  }

  /** Records that the path is one of the gateway's own. */
  markOwn(): void {
    this.#own = true;
  }

  /** True if the path is the gateway's own. Probes and pages request such paths repeatedly. */
  get isOwn(): boolean {
    return this.#own;
  }

  /** Records that the run continues if its client leaves. */
  markLingering(): void {
    this.#lingers = true;
  }

  /** Adds facts. Later facts replace earlier ones. */
  addFacts(facts: AccessFacts): void {
    copyDefined(this.#facts, facts);
  }

  /** Records facts that an event of the request's run contains. */
  recordEvent(event: RelayEvent, run_id: string): void {
    this.#facts.run_id = run_id;
    if (event._tag === "AttemptStarted") this.#facts.attempts = event.attempt;
    if (event._tag === "Continued") this.#seams += 1;
    if (event._tag === "RetryScheduled") this.addFacts({ rule: event.rule });
    if (event._tag === "QuestionAsked") this.addFacts({ rule: event.question.rule });
    if (event._tag === "RunInterrupted") this.#recordInterruption(event);
  }

  #recordInterruption(event: Extract<RelayEvent, { readonly _tag: "RunInterrupted" }>): void {
    const { code, kind } = event.failure;
    this.#givenUp = true;
    this.addFacts({ rule: event.rule, failure: kind, code });
  }

  recordHead(status: number): void {
    this.#status = status;
    this.#headAt ??= this.#now();
  }

  recordWrite(bytes: number): void {
    this.#firstAt ??= this.#now();
    this.#bytes += bytes;
  }

  /** Records an event or comment that the gateway itself sent, so that the client does not time out. */
  recordNoOp(): void {
    this.#noOps += 1;
  }

  /** Records that the run has waited for a path or a cooldown. */
  addWait(ms: number): void {
    this.#waitedMs = (this.#waitedMs ?? 0) + ms;
  }

  /** Replaces the counts with those of a run that another process owns. */
  takeOverCounts({
    no_ops = 0,
    seams = 0,
    waited_ms,
  }: Pick<Partial<AccessRecord>, "no_ops" | "seams" | "waited_ms">): void {
    this.#noOps = no_ops;
    this.#seams = seams;
    this.#waitedMs = waited_ms;
  }

  /** Records the end of the response: `whole`, the client `left` before the terminal marker, or `broken`. Only the first call counts. */
  recordEnd(how: "whole" | "left" | "broken"): void {
    this.#end ??= how;
    if (this.#end === "left") this.#leftAt ??= this.#now();
  }

  /** The record. It is complete only after the response has ended. */
  get record(): AccessRecord {
    const elapsedMs = (at: number) => Math.max(0, Math.round(at - this.#begun));
    const {
      attached_at,
      attempts,
      client,
      code,
      failure,
      memory_ms,
      passed,
      refused,
      route,
      rule,
      run_id,
      token,
      unread,
      upstream,
    } = this.#facts;
    return withoutUndefined({
      method: this.#method,
      path: this.#path,
      status: this.#status,
      outcome: this.#outcome,
      upstream,
      route,
      token,
      client,
      run_id,
      attempts,
      rule,
      failure,
      code,
      refused,
      unread,
      passed,
      memory_ms,
      attached_at,
      no_ops: this.#noOps === 0 ? undefined : this.#noOps,
      waited_ms: this.#waitedMs === undefined ? undefined : Math.round(this.#waitedMs),
      seams: this.#seams === 0 ? undefined : this.#seams,
      bytes: this.#bytes,
      head_ms: this.#headAt === undefined ? undefined : elapsedMs(this.#headAt),
      first_ms: this.#firstAt === undefined ? undefined : elapsedMs(this.#firstAt),
      // The time after the client has left does not count, even if the run continues.
      ms: elapsedMs(this.#leftAt ?? this.#now()),
    });
  }

  get #outcome(): Outcome {
    const { attached_at, memory_ms, refused, rule, run_id } = this.#facts;
    if (memory_ms !== undefined) return "from_memory";
    if (this.#end === "left") return this.#lingers || attached_at !== undefined ? "left" : "cancelled";
    if (rule === userCancelled) return "run_cancelled";
    if (attached_at !== undefined) return this.#end === "whole" && refused === undefined ? "attached" : "failed";
    if (this.#givenUp) return "given_up";
    if (refused !== undefined) return run_id === undefined && !failures.has(refused) ? "refused" : "failed";
    return this.#end === "whole" ? "completed" : "failed";
  }
}

/** Refusal reasons that blame the upstream or the gateway, not the request. */
const failures: ReadonlySet<string> = new Set(["upstream_failed", "unavailable", "defect", "page"]);

const userCancelled: Rule = "user_cancelled";

/** Maximum length of a recorded method, in characters. Node rejects longer methods. */
const methodCharactersMax = 32;

/** Matches a segment that looks like a provider's key. A client may have put the key into its base URL. */
const keyLike = /^(?:sk-|sk_|AIza|gsk_|xai-|hf_|ghp_|eyJ)[\w.-]{12,}$/;

/**
 * Returns a path in the form in which it is logged. Nearly every request has one of a few paths that need no masking, so these are cached.
 */
const pathOf = (target: string): string => {
  if (plain.has(target)) return target;
  const shown = redactPath(target);
  if (shown !== target) return shown;
  plain.add(target);
  dropOldest(plain, plainMax);
  return shown;
};

/** Cache of paths that need no masking, because they contain no query, token or key. It holds at most `plainMax` paths. */
const plain = new Set<string>();

const plainMax = 64;

/** Removes the query and masks possible tokens and keys in any spelling. Invalid paths are logged too, so the masking is strict. */
const redactPath = (target: string): string => {
  if (!target.startsWith("/")) return "";
  const [path = ""] = target.slice(0, 4 * pathCharactersMax).split(/[?#]/);
  let isToken = false;
  const shown = path.split("/").map((segment) => {
    const plain = decodeSegment(segment);
    const hides = (isToken && plain !== "") || keyLike.test(plain) || /[/\\]/.test(plain);
    isToken = /^t(?:;|$)/i.test(plain) || (isToken && plain === "");
    return hides ? "…" : segment;
  });
  const redacted = shown.join("/");
  return redacted.length <= pathCharactersMax ? redacted : `${redacted.slice(0, pathCharactersMax - 1)}…`;
};

/** Decodes a segment repeatedly, because another reader of the log may decode it more than once. */
const decodeSegment = (segment: string): string => {
  let plain = segment;
  for (let round = 0; round < 3 && /%[0-9a-f]{2}/i.test(plain); round += 1)
    plain = plain.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return plain.trim();
};

type Optional = { readonly [Key in keyof AccessRecord]: AccessRecord[Key] | undefined };

const withoutUndefined = (fields: Optional): AccessRecord => {
  const known = {};
  copyDefined<object>(known, fields);
  // Only undefined values were dropped, so the cast is safe.
  return known as AccessRecord;
};

const copyDefined = <Fields extends object>(to: Fields, from: Fields): void => {
  for (const name in from) if (from[name] !== undefined) to[name] = from[name];
};
