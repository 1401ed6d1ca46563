/**
 * Tracks the shown text of a run that may be continued.
 *
 * The *seam* is the place where a continuation joins the shown text. A *plan* says how to request the continuation and where it has to
 * join. A part *leaves* the run when the caller gets it.
 *
 * M1 Each part that leaves the run is reported to the seam once, in order and in the same step.
 * M2 A run sends at most `max` requests that continue shown text, including repeats, so that a persistent break is reported soon. A
 * request that was not sent or not processed does not count.
 * M3 After a seam that could not be proven, the run has no further seams, because the same model would get the same request.
 * M4 A plan is valid until another part leaves.
 * M5 A plan's position counts the text of one response. The caller's position counts the text it has kept of all responses of the run.
 */
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import { flags } from "../../domain/Failure.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import { type SeamFault, SeamProof, SeamRefusal } from "../../domain/SeamWords.ts";
import { joinAttempts } from "../../facts/Growth.ts";
import type { RunSeam } from "../../runtime/contract/RunOptions.ts";
import type { BrokenText, Continued, SeamCheck, SeamHost, SeamOwner, SeamSlot } from "../../runtime/contract/Stages.ts";
import { describe } from "../../runtime/Entrance.ts";
import type { SeamJoin, SeamParts, SeamPassed, SeamPlan, TextSeam } from "../../seam/TextSeam.ts";

/** Default maximum of requests with a seam per run. A third one would pay for a prompt whose response has broken three times. */
export const maxSeamsDefault = 2;

/**
 * Returns the option that continues shown text.
 *
 * @param make creates the seam of a run, and is called once per run: `ProtocolSeam.make` for decoded events, `PlainSeam.make` for the
 *   caller's own parts
 * @param options `max` is the maximum number of continuations after shown text, each a paid request. Default 2
 */
export const of = <P>(
  make: () => TextSeam<P>,
  { max = maxSeamsDefault }: { readonly max?: number } = {},
): RunSeam<P> => ({ make, max, admit, begin });

const admit: RunSeam<never>["admit"] = (seam) => {
  if (typeof seam.make !== "function") return `seam.make: expected a function, got ${describe(seam.make)}`;
  return Number.isSafeInteger(seam.max) && seam.max >= 0
    ? seam
    : `seam.max: expected a whole number, not below 0, got ${describe(seam.max)}`;
};

const begin: RunSeam<never>["begin"] = ({ make, max }) => new Seam(make, max);

/** Reads the plan of a caller's seam. A plan that cannot be recorded counts as `unbuildable`. */
const readPlan = (plan: SeamPlan | SeamRefusal | undefined): SeamPlan | SeamRefusal => {
  if (typeof plan === "string" && SeamRefusal.literals.includes(plan)) return plan;
  if (typeof plan !== "object" || !SeamProof.literals.includes(plan.proof) || typeof plan.quote !== "string")
    return "unbuildable";
  return Number.isSafeInteger(plan.at) && plan.at >= 0 ? plan : "unbuildable";
};

const makeUnwritable = () => ({ type: "unproven", fault: "unwritable" }) as const;

/** The seam of one run. */
export class Seam<P, B extends BrokenText> implements SeamSlot<P, B> {
  readonly #make: () => TextSeam<P>;
  readonly #max: number;
  #made: TextSeam<P> | undefined;
  #plan: SeamPlan | SeamRefusal | undefined;
  #count = 0;
  #closed: SeamRefusal | undefined;
  /** The attempt that the newest seam continues. */
  #interrupted: B | undefined;
  /**
   * Length of the text of this response that the caller has, in UTF-16 code units (M5). `#before` holds the length for earlier responses.
   */
  #own = 0;
  #before = 0;

  /**
   * @param make creates the seam of this run
   * @param max maximum requests with a seam
   */
  constructor(make: () => TextSeam<P>, max: number) {
    this.#make = make;
    this.#max = max;
  }

  /** Called when a part leaves the run (M1). */
  recordSent(part: P, observation: Observation): void {
    if (observation.shows === "text") this.#own += observation.characters;
    this.#callSeam((seam) => seam.left(part, observation));
  }

  get before(): number {
    return this.#before;
  }

  /** Counts a request with a seam (M2). A request without one begins another response, unless it resumes the last one. */
  onLaunch({ mode, request, seam }: Continued, broken: B): void {
    if (seam !== undefined) {
      this.#count += 1;
      if (mode === "continue") this.#interrupted = broken;
    } else if (request !== "resume") this.#beginResponse(mode === "continue");
  }

  /** @param keeps true if the caller keeps the text of the previous response, as in a continuation but not in a replay */
  #beginResponse(keeps: boolean): void {
    this.#interrupted = undefined;
    if (keeps) this.#before += this.#own;
    this.#own = 0;
    this.#callSeam((seam) => seam.begins());
  }

  /** Plans the continuation of the text that has left the run, or returns the reason why there is none (M2, M3, M4). */
  plan(): SeamPlan | SeamRefusal {
    if (this.#closed !== undefined) return this.#closed;
    if (this.#count >= this.#max) return "seams_spent";
    this.#plan ??= readPlan(this.#callSeam((seam) => seam.plan()));
    return this.#plan;
  }

  /** If the seam fails to start, nothing is joined. */
  check(plan: SeamPlan, owner: SeamOwner): SeamCheck<P> {
    return new Check(
      this.#callSeam((seam) => seam.joins(plan)) ?? { take: makeUnwritable, end: makeUnwritable },
      owner,
    );
  }

  /** A request that was not sent does not count (M2). */
  restore(attempts: Parameters<SeamSlot<P, B>["restore"]>[0]): void {
    this.#count = attempts.filter(({ facts, seam }) => seam !== undefined && facts.delivery !== "not_sent").length;
  }

  /** Decides the interrupted response again. A caller that cannot discard gets a decision about the continuation. */
  onBreak({ attempt, cause, failure }: B, host: SeamHost): B | undefined {
    const { seam } = attempt.setup;
    const before = this.#interrupted;
    if (seam === undefined || before === undefined) return undefined;
    const { delivery, progress, shown } = attempt.facts.snapshot();
    const showedNothing = shown === "nothing";
    // The effects of the continuation count too, but its marker is not the marker of the response.
    const own = (): AttemptFacts => ({ ...attempt.facts.snapshot(), terminal_seen: false });
    const again = { ...before, facts: () => joinAttempts([before.facts(), own()]) };
    if (seam.proof === "prefill" && showedNothing && refusesForm.has(failure.status) && failure.kind === "rejected") {
      this.#count -= 1;
      this.#callSeam((it) => it.refused(seam));
      host.spending.uncountRetry();
      return again;
    }
    if (failure.kind !== "protocol" || failure.reason !== "seam_unproven") {
      // A provider that has already sent content is not believed if it claims that it processed nothing.
      const isUnprocessed = flags(failure).not_processed && (progress === "none" || progress === "started");
      if (delivery === "not_sent" || isUnprocessed) this.#count -= 1;
      if (!showedNothing || this.#count < this.#max) return undefined;
      // The continuation broke before its seam as often as allowed, so the interrupted response is decided again.
      return host.discardable ? again : { ...again, attempt, failure, cause };
    }
    this.#closed ??= "unproven";
    const fault = failure.code ?? "differs";
    host.note(attempt.number, "seam", fault);
    host.telemetry.reportSeam("unproven", fault);
    if (host.discardable && showedNothing) return again;
    // The whole response is kept, so none of it may be requested again. The caller must learn why the continuation broke (L12).
    return { ...again, attempt, failure, cause: cause ?? before.cause };
  }

  onRunEnd(): void {
    this.#made = undefined;
    this.#interrupted = undefined;
    this.#plan = undefined;
    this.#closed ??= "no_seam";
  }

  /** Calls the caller's seam. A seam that throws is not used again, because its state is unknown. */
  #callSeam<A>(use: (seam: TextSeam<P>) => A): A | undefined {
    if (this.#closed === "unbuildable" || this.#closed === "no_seam") return undefined;
    this.#plan = undefined;
    try {
      this.#made ??= this.#make();
      return use(this.#made);
    } catch {
      this.#closed = "unbuildable";
      return undefined;
    }
  }
}

/** Statuses with which a provider rejects the form of a request. */
const refusesForm: ReadonlySet<number | undefined> = new Set([400, 422]);

/**
 * Joins the parts of one attempt to the text shown before it. Nothing passes until the seam is proven, and then only new text.
 *
 * Text that is withheld is never handed over or frozen. It counts as decoded, because the provider has sent it.
 */
export class Check<P> implements SeamCheck<P> {
  readonly #join: SeamJoin<P>;
  readonly #owner: SeamOwner;
  #joined = false;

  constructor(join: SeamJoin<P>, owner: SeamOwner) {
    this.#join = join;
    this.#owner = owner;
  }

  /** Takes parts up to the first one that reports a failure, which passes unchanged. */
  take({ observations, parts }: SeamParts<P>): SeamParts<P> | SeamFault {
    const out: Filling<P> = { parts: [], observations: [] };
    for (const [index, part] of parts.entries()) {
      const observation = observations[index] ?? none;
      if (observation.failure !== undefined && !observation.terminal) {
        fill(out, { parts: [part], observations: [observation] });
        break;
      }
      const fault = this.#apply(this.#join.take(part, observation), observation, out);
      if (fault !== undefined) return fault;
    }
    return out;
  }

  end(): SeamParts<P> | SeamFault {
    const out: Filling<P> = { parts: [], observations: [] };
    return this.#apply(this.#join.end(), undefined, out) ?? out;
  }

  #apply(passed: SeamPassed<P>, observation: Observation | undefined, out: Filling<P>): SeamFault | undefined {
    if (passed.type === "unproven") {
      // This marker does not end the shown response, so it does not count as terminal.
      if (observation !== undefined) this.#owner.facts.decoded({ ...observation, terminal: false });
      return passed.fault;
    }
    if (passed.joined && !this.#joined) {
      this.#joined = true;
      this.#owner.onContinued();
    }
    if (this.#joined && passed.parts.length > 0) fill(out, passed);
    // New text is not counted here, because it is counted when it is handed over.
    else if (observation !== undefined)
      this.#owner.facts.decoded(this.#joined ? { ...observation, characters: 0 } : observation);
    return undefined;
  }
}

interface Filling<P> extends SeamParts<P> {
  readonly parts: Array<P>;
  readonly observations: Array<Observation>;
}

const fill = <P>(out: Filling<P>, { observations, parts }: SeamParts<P>): void => {
  out.parts.push(...parts);
  out.observations.push(...observations);
};
