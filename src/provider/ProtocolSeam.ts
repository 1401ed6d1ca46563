/**
 * Joins the decoded parts of continuations to those that a client has read: the `seam` of a run whose parts come from the decoders of this
 * package.
 *
 * It follows the parts that are sent to the client with a fold of the protocol, so that the parts of a continuation continue the content
 * keys and the ordinals of calls. Each run has its own seam.
 */
import * as Json from "../domain/Json.ts";
import type { Observation, Usage } from "../domain/Observation.ts";
import type { SeamJoin, SeamPassed, SeamPlan, TextSeam } from "../seam/TextSeam.ts";
import { type ProtocolId, protocols, type WireProtocol } from "./Protocols.ts";
import * as ResponseSeam from "./ResponseSeam.ts";
import type { SplicedEvent } from "./seam/Splice.ts";
import type { Spliced, SplicedJoin } from "./seam/SplicedJoin.ts";
import type { Fold, Part, SseEvent, Tolerance } from "./stream/Protocol.ts";

/** The request whose responses are continued. */
export interface Options<Id extends string = ProtocolId> extends ResponseSeam.Options {
  readonly protocol: Id;
}

/**
 * Creates the seam of each run of a request: `seam: ProtocolSeam.make({ protocol, body, url })`. `Continuation.build` creates the
 * request for its plan, with `seam: context.seam`.
 *
 * @param options protocol, body and address of the run's first request
 */
export const make =
  <Id extends ProtocolId>(options: Options<Id>): (() => TextSeam<Part<Id>>) =>
  () =>
    // The registry returns the protocol of exactly the requested id.
    makeIn(protocols.get(options.protocol) as unknown as WireProtocol<Id>, options);

/** The seam of one run, in a protocol that need not be in the registry. */
export const makeIn = <Id extends string>(
  protocol: WireProtocol<Id>,
  options: ResponseSeam.Options & {
    /** The number of choices that the body requests. Used if the body itself is read only after a failure. */
    readonly choices?: number | undefined;
  },
): FoldedSeam<Id> => new PartSeam(protocol, options);

/** A seam that can reuse a decoder's fold instead of reading an event again. */
export interface FoldedSeam<Id extends string> extends TextSeam<Part<Id>> {
  /** @param fold the step of the part's own decoder over this event */
  readonly left: (part: Part<Id>, observation: Observation, fold?: Fold) => void;
}

class PartSeam<Id extends string> implements FoldedSeam<Id> {
  readonly #protocol: WireProtocol<Id>;
  readonly #response: ResponseSeam.ResponseSeam;
  readonly #start: unknown;
  readonly #choices: number | undefined;
  /** The fold of everything that was sent. It is immutable, so that a continuation folds its own copy. */
  #client: unknown;

  constructor(protocol: WireProtocol<Id>, options: Parameters<typeof makeIn<Id>>[1]) {
    this.#protocol = protocol;
    this.#response = ResponseSeam.make(protocol, options);
    const body = Json.record(options.body);
    const choices = options.choices ?? (body && protocol.address.choices(body));
    this.#choices = choices;
    this.#start = protocol.initial(choices === undefined ? {} : { choices });
    this.#client = this.#start;
  }

  readonly begins = (): void => {
    this.#response.beginResponse();
    this.#client = this.#start;
  };

  readonly left = (part: Part<Id>, { failure, terminal }: Observation, fold?: Fold): void => {
    // The provider's report of its own failure is not text, and a continuation follows the text before it.
    if ((failure !== undefined && !terminal) || !ResponseSeam.isEvent(part)) return;
    this.#response.recordSent(part);
    if (fold !== undefined && this.#isAt(fold)) this.#client = fold.behind;
    else [this.#client] = this.#protocol.step(this.#client, part.event);
  };

  /** True if the client's fold equals a decoder's fold before an event. The two are then also equal after it. */
  #isAt({ before, begins }: Fold): boolean {
    if (before === this.#client) return true;
    return this.#client === this.#start && begins !== undefined && isBegunSo(begins, this.#choices);
  }

  readonly plan = () => this.#response.plan();

  readonly refused = (plan: SeamPlan): void => this.#response.onPrefillRefused(plan);

  readonly joins = (plan: SeamPlan): SeamJoin<Part<Id>> => {
    const join = this.#response.join(plan);
    return join === undefined ? unproven() : new PartJoin(this.#protocol, this.#client, join);
  };
}

/** True if a decoder began with the same tolerance as the client's fold: the number of choices and nothing else. */
const isBegunSo = ({ choices, ...others }: Tolerance, asked: number | undefined): boolean =>
  choices === asked && Object.values(others).every((other) => other === undefined);

/** Refuses a continuation of text that this process did not send. */
const unproven = <P>(): SeamJoin<P> => ({
  take: () => ({ type: "unproven", fault: "differs" }),
  end: () => ({ type: "unproven", fault: "differs" }),
});

class PartJoin<Id extends string> implements SeamJoin<Part<Id>> {
  readonly #protocol: WireProtocol<Id>;
  readonly #join: SplicedJoin;
  #client: unknown;
  /** Usage that the attempt reported with parts that the client does not read. */
  #usage: Usage | undefined;
  #joined = false;

  constructor(protocol: WireProtocol<Id>, client: unknown, join: SplicedJoin) {
    this.#protocol = protocol;
    this.#client = client;
    this.#join = join;
  }

  readonly take = (part: Part<Id>, observation: Observation): SeamPassed<Part<Id>> => {
    if (observation.usage !== undefined) this.#usage = { ...this.#usage, ...observation.usage };
    return this.#decodeSpliced(this.#join.take(part), part, observation);
  };

  readonly end = (): SeamPassed<Part<Id>> => this.#decodeSpliced(this.#join.end(), undefined, undefined);

  #decodeSpliced(
    spliced: Spliced,
    part: Part<Id> | undefined,
    observation: Observation | undefined,
  ): SeamPassed<Part<Id>> {
    if (spliced.type === "unproven") return spliced;
    if (spliced.type === "failed")
      return {
        type: "passed",
        joined: this.#joined,
        parts: part === undefined ? [] : [part],
        observations: observation === undefined ? [] : [observation],
      };
    this.#joined = spliced.joined;
    const parts = spliced.events.map((event, at) => this.#decode(event, at === 0 ? part : undefined));
    const observations = parts.map((it, at) => this.#own(it.observation, at === parts.length - 1));
    return { type: "passed", joined: this.#joined, parts, observations };
  }

  /** Decodes the event as the client reads it, after everything that was sent. */
  #decode({ event, json }: SplicedEvent, came: Part<Id> | undefined): Part<Id> {
    const data = typeof json === "string" ? json : JSON.stringify(json);
    const framed: SseEvent = {
      event,
      data,
      ...(came?.event.id === undefined ? {} : { id: came.event.id }),
      bytes: came?.event.bytes ?? 0,
    };
    const [client, part] = this.#protocol.step(this.#client, framed);
    this.#client = client;
    return part;
  }

  /**
   * Returns the observation of the attempt itself. The client reads the usage of the whole response, but the attempt is charged only its
   * own.
   */
  #own(observation: Observation, isLast: boolean): Observation {
    const { usage: _usage, ...rest } = observation;
    const usage = isLast ? this.#usage : undefined;
    if (usage === undefined) return rest;
    this.#usage = undefined;
    return { ...rest, usage };
  }
}
