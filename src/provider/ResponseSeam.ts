/**
 * Follows the events of a response that leave for a client, and goes on behind them: plans the next request and joins its events.
 * `ProtocolSeam` makes the seam of a run of it.
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

/** The request whose response is gone on with. */
export interface Options {
  /** Its body, as parsed JSON, or what reads it: then it is read where something breaks, and not before. */
  readonly body: unknown;
  /** Where it goes. Left out: its provider is given no prefill. */
  readonly url?: string;
  /** The model, where neither body nor address name it. */
  readonly model?: string;
  /** What is known of providers beside the package's own table, and before it: the first rule that fits counts. */
  readonly prefills?: ReadonlyArray<PrefillRule>;
  /** Who has refused a prefill; default what this process has learned. */
  readonly refused?: RefusedPrefills;
}

/** What one run goes on with. */
export interface ResponseSeam {
  /** A response begins: what was shown before is closed, or was withdrawn. */
  readonly begins: () => void;
  /** An event has left for the client. */
  readonly left: (part: Pick<Part, "event" | "json">) => void;
  /** How the response would go on behind what has left, or why it cannot. */
  readonly plan: () => SeamPlan | SeamRefusal;
  /** Begins a continuation; undefined for a plan of what has not left here. */
  readonly joins: (plan: SeamPlan) => SplicedJoin.SplicedJoin | undefined;
  /** The provider has refused a prefill: the next plan has an anchor. */
  readonly refused: (plan: SeamPlan) => void;
}

/** Makes what goes on with the responses of one run. */
export const make = (protocol: WireProtocol, options: Options): ResponseSeam => new Seam(protocol, options);

/** What the body says about going on. */
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
    this.#known ??= askedBy(this.#protocol, this.#options);
    return this.#known;
  }

  readonly begins = (): void => {
    this.#splice = this.#protocol.splice?.();
  };

  readonly left = ({ event, json }: Pick<Part, "event" | "json">): void => {
    if (isEvent({ event, json })) this.#splice?.left(json ?? event.data, event.event);
  };

  readonly plan = (): SeamPlan | SeamRefusal => {
    if (this.#splice === undefined) return "no_seam";
    const asked = this.#asked;
    if (asked.refusal !== undefined) return asked.refusal;
    const { characters, refusal, run } = this.#splice.shown();
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

  readonly joins = ({ at, proof }: SeamPlan): SplicedJoin.SplicedJoin | undefined => {
    const splice = this.#splice;
    if (splice === undefined) return undefined;
    const { characters, run } = splice.shown();
    const anchor = anchorOf(run);
    // What has left since, or in another process, is not what the request quotes.
    if (characters !== at || typeof anchor === "string") return undefined;
    const echoes = proof === "prefill" && this.#asked.prefill?.echo === true;
    // Claude refuses white space at the end of a prefill, which is therefore not sent and comes again; others go on behind it.
    const sentToTheEnd = this.#protocol.id !== "anthropic-messages";
    return SplicedJoin.make(splice, SeamVerifier.make({ run, anchor, proof, echoes, sentToTheEnd }));
  };

  readonly refused = ({ proof }: SeamPlan): void => {
    const { request } = this.#asked;
    if (proof === "prefill" && request !== undefined) this.#refused.add(request);
  };

  #prefillFor(run: string): Prefill | undefined {
    const { prefill, request } = this.#asked;
    if (request === undefined || this.#refused.has(request)) return undefined;
    // No request can hold half a character, and a provider that is given a text without it goes on in front of it.
    return isHalf(run) ? undefined : prefill;
  }
}

const askedBy = (protocol: WireProtocol, { body, model, prefills, url }: Options): Asked => {
  const json = Json.record(typeof body === "function" ? body() : body);
  const request = json && url ? { url, model: model ?? modelOf(protocol, url, json), body: json } : undefined;
  return {
    refusal: json === undefined ? "unbuildable" : protocol.seamRefusal(json),
    request,
    prefill: request && prefillOf(request, prefills),
  };
};

/** Whether a text ends with the first half of a surrogate pair. */
const isHalf = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};

/** The model that a request names, in its address or its body. */
const modelOf = (protocol: WireProtocol, url: string, body: Json.JsonRecord): string => {
  const address = URL.parse(url);
  if (address === null) return "";
  const target = { path: address.pathname.replace(/\/+$/, ""), query: address.searchParams, has: () => false };
  return protocol.address.claim(target)?.model || Json.string(body.model);
};

/** Whether a part is an event of the response: comments and blank data only keep the connection alive. */
export const isEvent = ({ event, json }: Pick<Part, "event" | "json">): boolean =>
  json !== undefined || !(event.event === "comment" || isBlank(event.data));
