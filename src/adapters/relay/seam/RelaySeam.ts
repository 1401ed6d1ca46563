/**
 * Continues the text of one relayed run: it processes the events that the client has read, builds the request for the rest, and writes the
 * joined events as the bytes that the client reads next.
 *
 * Events are processed as they are sent, so a healthy response is never read a second time. The request is built when the run plans the
 * continuation, so that an impossible one is refused before anything is sent.
 */
import * as Result from "effect/Result";
import * as Json from "../../../domain/Json.ts";
import { none, type Observation } from "../../../domain/Observation.ts";
import type { Provider } from "../../../domain/RunFacts.ts";
import type { SeamRefusal } from "../../../domain/SeamWords.ts";
import * as Continuation from "../../../provider/Continuation.ts";
import * as ProtocolSeam from "../../../provider/ProtocolSeam.ts";
import type { WireProtocol } from "../../../provider/protocol/WireProtocol.ts";
import type { PrefillRule } from "../../../provider/seam/Prefills.ts";
import type { Part } from "../../../provider/stream/Protocol.ts";
import type { SeamJoin, SeamPassed, SeamPlan, TextSeam } from "../../../seam/TextSeam.ts";
import { bytesOf, type SeamPart } from "./SeamFrames.ts";
import { decodeBody, isSigned, type PlainRequest, parseBody, type SentRequest, withBody } from "./SeamRequest.ts";
import { markWideNumbers } from "./WideNumbers.ts";

/** Maximum bytes of a response that are kept for the request of its continuation. */
export const keptBytesMax = 1024 * 1024;

/**
 * Maximum parts that were sent and are not processed yet. Processing several at once costs little more than one, because code and data are
 * still in the processor's cache. With a higher maximum, the garbage collector would copy the parts.
 */
export const behindMax = 8;

/**
 * Maximum size of a part that may wait, in bytes. A longer part is processed at once, because several long parts would take much memory.
 */
export const behindBytesMax = 4 * 1024;

/** The request of a response, as a seam needs it. */
export interface SeamAsked extends PlainRequest {
  readonly request: SentRequest & { readonly url: string };
  readonly protocol: WireProtocol;
  readonly provider: Pick<Provider, "model">;
  readonly tolerance?: { readonly choices?: number };
}

interface Followed {
  readonly plan: SeamAsked;
  readonly inner: ProtocolSeam.FoldedSeam<string>;
  readonly collector: Continuation.Collector;
  /** Parts that were sent and are not processed yet, at most `behindMax`, each with the observation of the same index. */
  readonly behind: Array<SeamPart>;
  readonly observations: Array<Observation>;
  ordinal: number;
  /** True if something was shown that no decoded event describes. */
  unknown: boolean;
}

/** The seam of one run: the place where a continuation joins the text that the client has read. */
export class RelaySeam implements TextSeam<SeamPart> {
  readonly #prefills: ReadonlyArray<PrefillRule>;
  /** The request of the newest response. */
  #asked: SeamAsked | undefined;
  #followed: Followed | undefined;
  #built: { readonly plan: SeamPlan; readonly body: string } | undefined;
  #lastByte: number | undefined;

  /** @param prefills the caller's own rules */
  constructor(prefills: ReadonlyArray<PrefillRule> = []) {
    this.#prefills = prefills;
  }

  /** Sets the request of the newest response. Text is continued only on the route of this request. */
  setRequest(plan: SeamAsked): void {
    this.#asked = plan;
  }

  readonly begins = (): void => {
    this.#followed = undefined;
    this.#built = undefined;
  };

  readonly left = (part: SeamPart, observation: Observation): void => {
    this.#lastByte = part.bytes.at(-1) ?? this.#lastByte;
    this.#built = undefined;
    this.#followed ??= this.#follow();
    if (this.#followed === undefined) return;
    const { behind, observations } = this.#followed;
    observations.push(observation);
    if (behind.push(part) >= behindMax || part.bytes.byteLength > behindBytesMax) processSentParts(this.#followed);
  };

  /** Processes all sent parts and returns the state. */
  #catchUp(): Followed | undefined {
    if (this.#followed !== undefined) processSentParts(this.#followed);
    return this.#followed;
  }

  readonly plan = (): SeamPlan | SeamRefusal => {
    const followed = this.#catchUp();
    if (followed === undefined || followed.unknown) return "no_seam";
    const plan = followed.inner.plan();
    if (typeof plan === "string") return plan;
    const body = built(followed, plan);
    if (body === undefined) return "unbuildable";
    this.#built = { plan, body };
    return plan;
  };

  readonly joins = (plan: SeamPlan): SeamJoin<SeamPart> => {
    const join = this.#catchUp()?.inner.joins(plan);
    if (join === undefined) return { take: unwritable, end: unwritable };
    // The last byte was a CR whose LF never came. The LF is sent first, because Google's SDK reads no event after a CR alone.
    let owed = this.#lastByte === CR;
    const encodeNext = (passed: SeamPassed<Part>): SeamPassed<SeamPart> => {
      const out = encodePassed(passed, owed);
      if (out.type === "passed" && out.parts.length > 0) owed = false;
      return out;
    };
    return {
      take: (part, observation) =>
        part.decoded === undefined ? unwritable() : encodeNext(join.take(part.decoded, observation)),
      end: () => encodeNext(join.end()),
    };
  };

  readonly refused = (plan: SeamPlan): void => {
    this.#built = undefined;
    this.#catchUp()?.inner.refused(plan);
  };

  /**
   * Builds the request of a continuation.
   *
   * @param way the request on the attempt's route; it must be the object that was passed to `setRequest`
   * @returns undefined if it cannot be built, or if the text came by another route
   */
  requestOf<W extends SeamAsked>(plan: SeamPlan, way: W): W["request"] | undefined {
    const followed = this.#catchUp();
    if (followed === undefined || followed.plan !== way) return undefined;
    const body = this.#built?.plan === plan ? this.#built.body : built(followed, plan);
    return body === undefined ? undefined : withBody(way.request, body);
  }

  #follow(): Followed | undefined {
    const plan = this.#asked;
    if (plan === undefined) return undefined;
    const { protocol, provider, request } = plan;
    return {
      plan,
      inner: ProtocolSeam.makeIn(protocol, {
        body: () => parseBody(plan),
        choices: plan.tolerance?.choices,
        url: request.url,
        ...(provider.model === undefined ? {} : { model: provider.model }),
        prefills: this.#prefills,
      }),
      collector: Continuation.collector(protocol.id, { bytesMax: keptBytesMax }),
      behind: [],
      observations: [],
      ordinal: 0,
      unknown: false,
    };
  }
}

const processSentParts = (followed: Followed): void => {
  const { behind, collector, inner, observations } = followed;
  let at = 0;
  for (const { decoded, fold } of behind) {
    const observation = observations[at] ?? none;
    at += 1;
    if (decoded === undefined) {
      followed.unknown ||= observation.shows !== "nothing" || observation.calls.length > 0;
      continue;
    }
    followed.ordinal += 1;
    collector.take(1, followed.ordinal, decoded);
    inner.left(decoded, observation, fold);
  }
  behind.length = 0;
  observations.length = 0;
};

/** Builds the body of the next request; undefined if it cannot be built. */
const built = ({ collector, plan: { protocol, ...plan } }: Followed, seam: SeamPlan): string | undefined => {
  const sent = decodeBody(plan);
  if (sent === undefined || isSigned(plan.request)) return undefined;
  const { restore, text } = markWideNumbers(sent);
  const body = Json.record(Json.parse(text)?.json);
  if (body === undefined) return undefined;
  const input = { body, received: collector.received(), calls: [], results: [], seam };
  const next = Continuation.buildIn(protocol, input);
  return Result.isSuccess(next) ? restore(JSON.stringify(next.success)) : undefined;
};

const unwritable = (): SeamPassed<SeamPart> => ({ type: "unproven", fault: "unwritable" });

/** Encodes the events that the seam writes, after a line feed if `owed` is true. */
const encodePassed = (passed: SeamPassed<Part>, owed: boolean): SeamPassed<SeamPart> =>
  passed.type === "unproven"
    ? passed
    : {
        ...passed,
        parts: passed.parts.map((decoded, at) => ({
          bytes: bytesOf(decoded.event, owed && at === 0),
          observation: passed.observations[at] ?? decoded.observation,
          decoded,
        })),
      };

const CR = 13;
