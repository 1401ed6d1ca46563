/**
 * Remembers of one request what its access line and its metrics say: where it came from and went, what became of it, how long
 * that took. Never a header's value, a query, a prompt, a key or a token.
 */

import { isWhole, type RelayEvent } from "../../adapters/relay/RelayReader.ts";
import type { Rule } from "../../domain/Decision.ts";
import type { Failure } from "../../domain/Failure.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { PassedReason } from "../wires/Wires.ts";

/**
 * What became of a request. `from_memory`: a repeat of a run that had just been given up got the same refusal at once. `attached`: it was given
 * the response of a run that there was. `left`: its client has gone, and its run goes on without it. `run_cancelled`: a person ended its run
 * while its client was there; a client that ends its run by leaving has `cancelled` it.
 * A client that closes after the terminal marker has `completed`.
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

/** A word of `outcomes`. */
export type Outcome = (typeof outcomes)[number];

/** The fields of an access line, in their order. */
export interface AccessRecord {
  /** The request's method. */
  readonly method: string;
  /** The request's path, without its query; `…` where a token or a key stood; at most 256 characters. */
  readonly path: string;
  /** The status that was sent; left out where the connection broke before one. */
  readonly status?: number;
  /**
   * What became of the request: `completed`, `attached` (it was given the response of a run that there was), `left` (its client has gone, and
   * its run goes on), `given_up`, `refused`, `from_memory`, `cancelled` (by its client, which left), `run_cancelled` (a person ended the run
   * while its client was there: on the page, by `runs cancel`, or by the run's name) or `failed`.
   */
  readonly outcome: Outcome;
  /** The name of the upstream; left out for the gateway's own paths and where none was found. */
  readonly upstream?: string;
  /** The route that the last attempt went by, where the upstream has further ones. */
  readonly route?: string;
  /** The name of the token, where tokens have names. */
  readonly token?: string;
  /** What the client was recognised as. */
  readonly client?: string;
  /** The run, as `stream-recovery runs show` takes it. */
  readonly run_id?: string;
  /** Attempts of the run. */
  readonly attempts?: number;
  /** The rule of the run's last decision. */
  readonly rule?: string;
  /** The kind of what failed last: `transport`, `stalled`, `rate_limited` and so on. */
  readonly failure?: Failure["kind"];
  /** The code of what failed last, such as ECONNREFUSED, or a provider's own. */
  readonly code?: string;
  /** Why the gateway refused the request, as in `x-recovery-refused`. */
  readonly refused?: string;
  /** How old the remembered refusal was, in milliseconds, where it was given from memory. */
  readonly memory_ms?: number;
  /** The request passed through although its address is a model's: its body has more beside its conversation than is read. */
  readonly unread?: true;
  /** Why the request was no run although its response streamed, as in `x-recovery-passed`. */
  readonly passed?: PassedReason;
  /** The byte of the run's response that an attached one begins at. */
  readonly attached_at?: number;
  /** Events and comments of the gateway's own that kept the client waiting. */
  readonly no_ops?: number;
  /** Milliseconds that the run has waited for the way to its provider and for announced cooldowns. */
  readonly waited_ms?: number;
  /** Times that shown text went on in a continuation whose seam was proven. */
  readonly seams?: number;
  /** Bytes of the response's body that were written. */
  readonly bytes: number;
  /** Milliseconds from the request to the head of its response. */
  readonly head_ms?: number;
  /** Milliseconds from the request to the first bytes of its response's body. */
  readonly first_ms?: number;
  /** Milliseconds from the request to its end. */
  readonly ms: number;
}

/** Longest path of a record, in characters: the rest is cut. */
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

/** What a part of the gateway has learned of a request; undefined says nothing. */
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

  /** @param now monotonic milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#begun = now();
  }

  /**
   * A request was read.
   *
   * @param target path and query as they came
   */
  asked(method: string, target: string): void {
    this.#method = method.slice(0, methodCharactersMax);
    this.#path = pathOf(target);
  }

  /** The path is the gateway's own. */
  isOwn(): void {
    this.#own = true;
  }

  /** Whether the path is the gateway's own: probes and pages ask for theirs again and again. */
  get own(): boolean {
    return this.#own;
  }

  /** The request's run goes on without its client. */
  outlives(): void {
    this.#lingers = true;
  }

  /** Keeps what was learned; a later word replaces an earlier one. */
  learned(facts: AccessFacts): void {
    keep(this.#facts, facts);
  }

  /** Something has happened to the request's run. */
  followed(event: RelayEvent, run_id: string): void {
    this.#facts.run_id = run_id;
    if (event._tag === "AttemptStarted") this.#facts.attempts = event.attempt;
    if (event._tag === "Continued") this.#seams += 1;
    if (event._tag === "RetryScheduled") this.learned({ rule: event.rule });
    if (event._tag === "QuestionAsked") this.learned({ rule: event.question.rule });
    if (event._tag === "RunInterrupted") this.#interrupted(event);
  }

  #interrupted(event: Extract<RelayEvent, { readonly _tag: "RunInterrupted" }>): void {
    if (isWhole(event)) {
      this.learned({ rule: event.rule });
      return;
    }
    const { code, kind } = event.failure;
    this.#givenUp = true;
    this.learned({ rule: event.rule, failure: kind, code });
  }

  /** A head was written. */
  headed(status: number): void {
    this.#status = status;
    this.#headAt ??= this.#now();
  }

  /** Bytes of a body were written. */
  wrote(bytes: number): void {
    this.#firstAt ??= this.#now();
    this.#bytes += bytes;
  }

  /** An event or comment of the gateway's own was written. */
  heard(): void {
    this.#noOps += 1;
  }

  /** The run has waited for a path or a cooldown. */
  waited(ms: number): void {
    this.#waitedMs = (this.#waitedMs ?? 0) + ms;
  }

  /** What was counted of the run at the worker that has it, where that is another one. */
  elsewhere({ no_ops = 0, seams = 0, waited_ms }: Pick<Partial<AccessRecord>, "no_ops" | "seams" | "waited_ms">): void {
    this.#noOps = no_ops;
    this.#seams = seams;
    this.#waitedMs = waited_ms;
  }

  /** The response has an end: `whole`, the client `left` before the terminal marker, or it is `broken`. The first word counts. */
  ended(how: "whole" | "left" | "broken"): void {
    this.#end ??= how;
    if (this.#end === "left") this.#leftAt ??= this.#now();
  }

  /** The record of a request that is over. */
  get record(): AccessRecord {
    const since = (at: number) => Math.max(0, Math.round(at - this.#begun));
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
    return defined({
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
      head_ms: this.#headAt === undefined ? undefined : since(this.#headAt),
      first_ms: this.#firstAt === undefined ? undefined : since(this.#firstAt),
      // A run that goes on without its client is no part of the client's time.
      ms: since(this.#leftAt ?? this.#now()),
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

/** Refusals that say that the upstream or the gateway failed, not that the request was none to take. */
const failures: ReadonlySet<string> = new Set(["upstream_failed", "unavailable", "defect", "page"]);

/** The rule of a run that ended because somebody did not want it any more. */
const userCancelled: Rule = "user_cancelled";

/** Longest method of a record, in characters: Node takes none that is longer. */
const methodCharactersMax = 32;

/** A segment that looks like a key of a provider, also where a client put it into its base URL. */
const keyLike = /^(?:sk-|sk_|AIza|gsk_|xai-|hf_|ghp_|eyJ)[\w.-]{12,}$/;

/** A path as its lines have it. Nearly every request has one of a few paths, in which nothing is to be hidden. */
const pathOf = (target: string): string => {
  if (plain.has(target)) return target;
  const shown = shownPath(target);
  if (shown !== target) return shown;
  plain.add(target);
  dropOldest(plain, plainMax);
  return shown;
};

/** Paths that are shown as they are, at most `plainMax`: none of them has a query, a token or a key. */
const plain = new Set<string>();

const plainMax = 64;

/** A path without its query and without what may be a token or a key, in any spelling: a refused path has a line too. */
const shownPath = (target: string): string => {
  if (!target.startsWith("/")) return "";
  const [path = ""] = target.slice(0, 4 * pathCharactersMax).split(/[?#]/);
  let isToken = false;
  const shown = path.split("/").map((segment) => {
    const plain = plainOf(segment);
    const hides = (isToken && plain !== "") || keyLike.test(plain) || /[/\\]/.test(plain);
    isToken = /^t(?:;|$)/i.test(plain) || (isToken && plain === "");
    return hides ? "…" : segment;
  });
  const told = shown.join("/");
  return told.length <= pathCharactersMax ? told : `${told.slice(0, pathCharactersMax - 1)}…`;
};

/** A segment as the most lenient reader would read it. */
const plainOf = (segment: string): string => {
  let plain = segment;
  for (let round = 0; round < 3 && /%[0-9a-f]{2}/i.test(plain); round += 1)
    plain = plain.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return plain.trim();
};

type Optional = { readonly [Key in keyof AccessRecord]: AccessRecord[Key] | undefined };

/** The fields that are known, in their order; those that every record has are given above. */
const defined = (fields: Optional): AccessRecord => {
  const known = {};
  keep<object>(known, fields);
  // The schema of the fields is lost on the way, and no value of them has changed.
  return known as AccessRecord;
};

/** Takes over the fields that say something. */
const keep = <Fields extends object>(to: Fields, from: Fields): void => {
  for (const name in from) if (from[name] !== undefined) to[name] = from[name];
};
