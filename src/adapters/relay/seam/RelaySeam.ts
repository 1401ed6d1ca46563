/**
 * Goes on with the text of one relayed run: follows what its client has read, builds the request for the rest, and writes the
 * events that are joined as the bytes that the client reads next.
 *
 * What has left is followed event by event: nothing of it is read again where nothing breaks. The request is built when the run
 * plans to go on, so that one which cannot be built is refused before anything is sent.
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
import { bytesOf } from "./SeamBytes.ts";
import type { SeamPart } from "./SeamPart.ts";
import { isSigned, type PlainRequest, type SentRequest, sentBody, sentText, withBody } from "./SeamRequest.ts";
import { marked } from "./WideNumbers.ts";

/** Most that is kept of a response for the request of its continuation, in bytes. */
export const keptBytesMax = 1024 * 1024;

/**
 * Most parts that have left and are not followed yet: to follow several at once costs little more than to follow one, because what it
 * takes for that is still in the processor's cache. More of them would live long enough for the collector to copy them.
 */
export const behindMax = 8;

/** A part that is longer is followed at once, in bytes: many of those would be a burden until then. */
export const behindBytesMax = 4 * 1024;

/** What a response was asked for with. */
export interface SeamAsked extends PlainRequest {
  readonly request: SentRequest & { readonly url: string };
  readonly protocol: WireProtocol;
  readonly provider: Pick<Provider, "model">;
  readonly tolerance?: { readonly choices?: number };
}

/** What is followed of one response. */
interface Followed {
  readonly plan: SeamAsked;
  readonly inner: ProtocolSeam.FoldedSeam<string>;
  readonly collector: Continuation.Collector;
  /** Parts that have left and are not followed yet, at most `behindMax`, each beside what it proves. */
  readonly behind: Array<SeamPart>;
  readonly observations: Array<Observation>;
  ordinal: number;
  /** Something was shown that no event says. */
  unknown: boolean;
}

/** The seam of one run. */
export class RelaySeam implements TextSeam<SeamPart> {
  readonly #prefills: ReadonlyArray<PrefillRule>;
  /** What the newest response was asked for with. */
  #asked: SeamAsked | undefined;
  #followed: Followed | undefined;
  #built: { readonly plan: SeamPlan; readonly body: string } | undefined;
  #lastByte: number | undefined;

  /** @param prefills rules of the caller's own */
  constructor(prefills: ReadonlyArray<PrefillRule> = []) {
    this.#prefills = prefills;
  }

  /** A response is asked for: what is shown of it is gone on with by the same way. */
  asks(plan: SeamAsked): void {
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
    if (behind.push(part) >= behindMax || part.bytes.byteLength > behindBytesMax) follow(this.#followed);
  };

  /** What is followed, with everything that has left. */
  #caughtUp(): Followed | undefined {
    if (this.#followed !== undefined) follow(this.#followed);
    return this.#followed;
  }

  readonly plan = (): SeamPlan | SeamRefusal => {
    const followed = this.#caughtUp();
    if (followed === undefined || followed.unknown) return "no_seam";
    const plan = followed.inner.plan();
    if (typeof plan === "string") return plan;
    const body = built(followed, plan);
    if (body === undefined) return "unbuildable";
    this.#built = { plan, body };
    return plan;
  };

  readonly joins = (plan: SeamPlan): SeamJoin<SeamPart> => {
    const join = this.#caughtUp()?.inner.joins(plan);
    if (join === undefined) return { take: unwritable, end: unwritable };
    // The second half of the last line end never came: Google's SDK reads no event behind a CR alone.
    let owed = this.#lastByte === CR;
    const written = (passed: SeamPassed<Part>): SeamPassed<SeamPart> => {
      const out = relayed(passed, owed);
      if (out.type === "passed" && out.parts.length > 0) owed = false;
      return out;
    };
    return {
      take: (part, observation) =>
        part.decoded === undefined ? unwritable() : written(join.take(part.decoded, observation)),
      end: () => written(join.end()),
    };
  };

  readonly refused = (plan: SeamPlan): void => {
    this.#built = undefined;
    this.#caughtUp()?.inner.refused(plan);
  };

  /**
   * The request of a continuation.
   *
   * @param way what is asked for by the route of the attempt: the very object that `asks` was told
   * @returns undefined where it cannot be built, or the route is another one than that of the text
   */
  requestOf<W extends SeamAsked>(plan: SeamPlan, way: W): W["request"] | undefined {
    const followed = this.#caughtUp();
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
        body: () => sentBody(plan),
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

/** Follows what has left. */
const follow = (followed: Followed): void => {
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

/** The body of the next request; undefined where there is none. */
const built = ({ collector, plan: { protocol, ...plan } }: Followed, seam: SeamPlan): string | undefined => {
  const sent = sentText(plan);
  if (sent === undefined || isSigned(plan.request)) return undefined;
  const { restored, text } = marked(sent);
  const body = Json.record(Json.parse(text)?.json);
  if (body === undefined) return undefined;
  const input = { body, received: collector.received(), calls: [], results: [], seam };
  const next = Continuation.buildIn(protocol, input);
  return Result.isSuccess(next) ? restored(JSON.stringify(next.success)) : undefined;
};

const unwritable = (): SeamPassed<SeamPart> => ({ type: "unproven", fault: "unwritable" });

/** What the client reads: the events as the seam writes them, in bytes, behind a line feed where one is owed. */
const relayed = (passed: SeamPassed<Part>, owed: boolean): SeamPassed<SeamPart> =>
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
