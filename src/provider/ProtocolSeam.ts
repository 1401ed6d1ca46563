/**
 * Joins the decoded parts of continuations to those that a client has read: the `seam` of a run whose parts come from the decoders of this
 * package.
 *
 * It follows the parts that are sent to the client in two ways: with a splice, which rewrites the events of a continuation, and with the
 * state of the protocol's decoder. So a continuation goes on with the content keys and the ordinals of calls that the client knows. Each
 * run has its own seam.
 */
import * as Json from "../domain/Json.ts";
import type { Observation, Usage } from "../domain/Observation.ts";
import type { SeamRefusal } from "../domain/SeamWords.ts";
import { anchorOf } from "../seam/Anchor.ts";
import * as SeamVerifier from "../seam/SeamVerifier.ts";
import { type SeamJoin, type SeamPassed, type SeamPlan, shownCharactersMax, type TextSeam } from "../seam/TextSeam.ts";
import { type ProtocolId, protocols, type WireProtocol } from "./Protocols.ts";
import {
  type Prefill,
  type PrefillRequest,
  type PrefillRule,
  prefillOf,
  type RefusedPrefills,
  refusedPrefills,
} from "./seam/Prefills.ts";
import type { Splice, SplicedEvent } from "./seam/Splice.ts";
import * as SplicedJoin from "./seam/SplicedJoin.ts";
import type { Fold, Part, SseEvent, Tolerance } from "./stream/Protocol.ts";

/** The request whose responses are continued. */
export interface Options<Id extends string = ProtocolId> {
  readonly protocol: Id;
  /** The body as parsed JSON, or a function that returns it, called only after a failure. */
  readonly body: unknown;
  /** The address of the request. If omitted, its provider is never given a prefill. */
  readonly url?: string;
  /** The model, if neither body nor address names it. */
  readonly model?: string;
  /** Rules about providers. They are tried before the package's own table, and the first rule that matches applies. */
  readonly prefills?: ReadonlyArray<PrefillRule>;
  /** The prefills that providers refused. Default: the refusals that this process has seen. */
  readonly refused?: RefusedPrefills;
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
  options: Omit<Options, "protocol"> & {
    /** The number of choices that the body requests. Used if the body itself is read only after a failure. */
    readonly choices?: number | undefined;
  },
): FoldedSeam<Id> => new PartSeam(protocol, options);

/** A seam to which the caller can pass a decoder's step over an event, so that the event is not decoded twice. */
export interface FoldedSeam<Id extends string> extends TextSeam<Part<Id>> {
  /** @param fold the step of the part's own decoder over this event */
  readonly left: (part: Part<Id>, observation: Observation, fold?: Fold) => void;
}

/** The parts of a body that affect a continuation. */
interface Asked {
  readonly refusal: SeamRefusal | undefined;
  readonly request: PrefillRequest | undefined;
  readonly prefill: Prefill | undefined;
}

class PartSeam<Id extends string> implements FoldedSeam<Id> {
  readonly #protocol: WireProtocol<Id>;
  readonly #options: Parameters<typeof makeIn<Id>>[1];
  readonly #refused: RefusedPrefills;
  readonly #start: unknown;
  readonly #choices: number | undefined;
  #known: Asked | undefined;
  #splice: Splice | undefined;
  /** The decoder's state after everything that was sent. It is immutable, so each continuation can decode from it. */
  #client: unknown;

  constructor(protocol: WireProtocol<Id>, options: Parameters<typeof makeIn<Id>>[1]) {
    this.#protocol = protocol;
    this.#options = options;
    this.#refused = options.refused ?? refusedPrefills;
    const body = Json.record(options.body);
    const choices = options.choices ?? (body && protocol.address.choices(body));
    this.#choices = choices;
    this.#start = protocol.initial(choices === undefined ? {} : { choices });
    this.#client = this.#start;
    this.#splice = protocol.splice?.();
  }

  get #asked(): Asked {
    this.#known ??= inspectRequest(this.#protocol, this.#options);
    return this.#known;
  }

  readonly begins = (): void => {
    this.#splice = this.#protocol.splice?.();
    this.#client = this.#start;
  };

  readonly left = (part: Part<Id>, { failure, terminal }: Observation, fold?: Fold): void => {
    // The provider's report of its own failure is not text, and a continuation follows the text before it.
    if ((failure !== undefined && !terminal) || SplicedJoin.isKeptAlive(part)) return;
    this.#splice?.recordSent(part.json ?? part.event.data, part.event.event);
    if (fold !== undefined && this.#isAt(fold)) this.#client = fold.behind;
    else [this.#client] = this.#protocol.step(this.#client, part.event);
  };

  /** True if the client's decoder state equals the state that the part's decoder had before the event. Both are then equal after it too. */
  #isAt({ before, begins }: Fold): boolean {
    if (before === this.#client) return true;
    return this.#client === this.#start && begins !== undefined && isBegunSo(begins, this.#choices);
  }

  readonly plan = (): SeamPlan | SeamRefusal => {
    if (this.#splice === undefined) return "no_seam";
    const asked = this.#asked;
    if (asked.refusal !== undefined) return asked.refusal;
    const { characters, refusal, run } = this.#splice.response();
    if (refusal !== undefined) return refusal;
    if (run.trim() === "") return "blank";
    if (characters > shownCharactersMax) return "too_long";
    const anchor = anchorOf(run);
    if (typeof anchor === "string") return anchor;
    const prefill = this.#prefillFor(run);
    return prefill === undefined
      ? { proof: "anchor", at: characters, quote: anchor.quote }
      : { proof: "prefill", at: characters, quote: run, form: prefill.form };
  };

  readonly joins = ({ at, proof }: SeamPlan): SeamJoin<Part<Id>> => {
    const { characters = -1, run = "" } = this.#splice?.response() ?? {};
    const anchor = anchorOf(run);
    // More text was sent after the plan was made, possibly by another process, so the request does not quote that text.
    if (this.#splice === undefined || characters !== at || typeof anchor === "string") return unproven();
    const echoes = proof === "prefill" && this.#asked.prefill?.echo === true;
    // Claude refuses white space at the end of a prefill, so the request omits it and the model writes it again. Other providers continue
    // after it.
    const sentToTheEnd = this.#protocol.id !== "anthropic-messages";
    const verifier = SeamVerifier.make({ run, anchor, proof, echoes, sentToTheEnd });
    return new PartJoin(this.#protocol, this.#client, SplicedJoin.make(this.#splice, verifier));
  };

  readonly refused = ({ proof }: SeamPlan): void => {
    const { request } = this.#asked;
    if (proof === "prefill" && request !== undefined) this.#refused.add(request);
  };

  #prefillFor(run: string): Prefill | undefined {
    const { prefill, request } = this.#asked;
    if (request === undefined || this.#refused.has(request)) return undefined;
    // No request can hold half a surrogate pair. If the half were omitted, the provider's text would continue before it.
    return isHalf(run) ? undefined : prefill;
  }
}

/** True if a decoder began with no tolerance other than the number of choices, like the client's decoder state. */
const isBegunSo = ({ choices, ...others }: Tolerance, asked: number | undefined): boolean =>
  choices === asked && Object.values(others).every((other) => other === undefined);

const inspectRequest = (protocol: WireProtocol, { body, model, prefills, url }: Omit<Options, "protocol">): Asked => {
  const json = Json.record(typeof body === "function" ? body() : body);
  const request = json && url ? { url, model: model ?? modelOf(protocol, url, json), body: json } : undefined;
  return {
    refusal: json === undefined ? "unbuildable" : protocol.seamRefusal(json),
    request,
    prefill: request && prefillOf(request, prefills),
  };
};

/** True if the text ends with the first half of a surrogate pair. */
const isHalf = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

/** The model that a request names, in its address or in its body. */
const modelOf = (protocol: WireProtocol, url: string, body: Json.JsonRecord): string => {
  const address = URL.parse(url);
  if (address === null) return "";
  const target = { path: address.pathname.replace(/\/+$/, ""), query: address.searchParams, has: () => false };
  return protocol.address.claim(target)?.model || Json.string(body.model);
};

/** Refuses a continuation of text that this process did not send. */
const unproven = <P>(): SeamJoin<P> => ({
  take: () => ({ type: "unproven", fault: "differs" }),
  end: () => ({ type: "unproven", fault: "differs" }),
});

class PartJoin<Id extends string> implements SeamJoin<Part<Id>> {
  readonly #protocol: WireProtocol<Id>;
  readonly #join: SplicedJoin.SplicedJoin;
  #client: unknown;
  /** Usage that the attempt reported with parts that the client does not read. */
  #usage: Usage | undefined;
  #joined = false;

  constructor(protocol: WireProtocol<Id>, client: unknown, join: SplicedJoin.SplicedJoin) {
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
    spliced: SplicedJoin.Spliced,
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
