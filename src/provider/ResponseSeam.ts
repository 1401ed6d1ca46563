/**
 * Follows the events of a response that are sent to a client, plans the request that continues the response, and joins the events of the
 * continuation. `ProtocolSeam` wraps it as the seam of a run.
 */
import * as Json from "../domain/Json.ts";
import type { SeamRefusal } from "../domain/SeamWords.ts";
import { anchorOf } from "../seam/Anchor.ts";
import * as SeamVerifier from "../seam/SeamVerifier.ts";
import type { SeamPlan } from "../seam/TextSeam.ts";
import type { WireProtocol } from "./Protocols.ts";
import {
  type Prefill,
  type PrefillRequest,
  type PrefillRule,
  prefillOf,
  type RefusedPrefills,
  refusedPrefills,
} from "./seam/Prefills.ts";
import { type Splice, shownCharactersMax } from "./seam/Splice.ts";
import * as SplicedJoin from "./seam/SplicedJoin.ts";
import { isBlank } from "./stream/Payload.ts";
import type { Part } from "./stream/Protocol.ts";

/** The request whose response is continued. */
export interface Options {
  /** The body as parsed JSON, or a function that returns it, called only after a failure. */
  readonly body: unknown;
  /** The address of the request. If omitted, its provider is never given a prefill. */
  readonly url?: string;
  /** The model, if neither body nor address names it. */
  readonly model?: string;
  /** Rules about providers. They are tried before the package's own table, and the first rule that matches applies. */
  readonly prefills?: ReadonlyArray<PrefillRule>;
  /** The prefills that providers refused. Default: those that this process has learned. */
  readonly refused?: RefusedPrefills;
}

/** Continues the responses of one run. */
export interface ResponseSeam {
  /** Called when a response begins. Content shown before it is closed or was withdrawn. */
  readonly beginResponse: () => void;
  /** Called when an event was sent to the client. */
  readonly recordSent: (part: Pick<Part, "event" | "json">) => void;
  /** Plans how to continue after everything that was sent, or returns the reason why it cannot. */
  readonly plan: () => SeamPlan | SeamRefusal;
  /** Begins a continuation; undefined if the plan does not match what was sent here. */
  readonly join: (plan: SeamPlan) => SplicedJoin.SplicedJoin | undefined;
  /** Called when the provider has refused a prefill. The next plan then uses an anchor. */
  readonly onPrefillRefused: (plan: SeamPlan) => void;
}

/** Creates the seam for the responses of one run. */
export const make = (protocol: WireProtocol, options: Options): ResponseSeam => new Seam(protocol, options);

/** The parts of a body that affect a continuation. */
interface Asked {
  readonly refusal: SeamRefusal | undefined;
  readonly request: PrefillRequest | undefined;
  readonly prefill: Prefill | undefined;
}

class Seam implements ResponseSeam {
  readonly #protocol: WireProtocol;
  readonly #options: Options;
  readonly #refused: RefusedPrefills;
  #known: Asked | undefined;
  #splice: Splice | undefined;

  constructor(protocol: WireProtocol, options: Options) {
    this.#protocol = protocol;
    this.#options = options;
    this.#refused = options.refused ?? refusedPrefills;
    this.#splice = protocol.splice?.();
  }

  get #asked(): Asked {
    this.#known ??= inspectRequest(this.#protocol, this.#options);
    return this.#known;
  }

  readonly beginResponse = (): void => {
    this.#splice = this.#protocol.splice?.();
  };

  readonly recordSent = ({ event, json }: Pick<Part, "event" | "json">): void => {
    if (isEvent({ event, json })) this.#splice?.recordSent(json ?? event.data, event.event);
  };

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

  readonly join = ({ at, proof }: SeamPlan): SplicedJoin.SplicedJoin | undefined => {
    const splice = this.#splice;
    if (splice === undefined) return undefined;
    const { characters, run } = splice.response();
    const anchor = anchorOf(run);
    // More text was sent since the plan, or another process sent it, so the request does not quote it.
    if (characters !== at || typeof anchor === "string") return undefined;
    const echoes = proof === "prefill" && this.#asked.prefill?.echo === true;
    // Claude refuses white space at the end of a prefill, so it is not sent and comes again. Other providers continue after it.
    const sentToTheEnd = this.#protocol.id !== "anthropic-messages";
    return SplicedJoin.make(splice, SeamVerifier.make({ run, anchor, proof, echoes, sentToTheEnd }));
  };

  readonly onPrefillRefused = ({ proof }: SeamPlan): void => {
    const { request } = this.#asked;
    if (proof === "prefill" && request !== undefined) this.#refused.add(request);
  };

  #prefillFor(run: string): Prefill | undefined {
    const { prefill, request } = this.#asked;
    if (request === undefined || this.#refused.has(request)) return undefined;
    // No request can hold half a character. Without the half, the provider's text would continue before it.
    return isHalf(run) ? undefined : prefill;
  }
}

const inspectRequest = (protocol: WireProtocol, { body, model, prefills, url }: Options): Asked => {
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

/** True if a part is an event of the response. Comments and blank data are not, because they only keep the connection alive. */
export const isEvent = ({ event, json }: Pick<Part, "event" | "json">): boolean =>
  json !== undefined || !(event.event === "comment" || isBlank(event.data));
