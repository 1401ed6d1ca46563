/**
 * Decides from the head of a request alone whether it is admitted, and where it is sent.
 *
 * The decision is the same for all requests of a connection that have the same head, so it is taken once for them (`requestHeadersOf`).
 */
import type { RelayHeaders, RelayRequest } from "../adapters/relay/RelayTransport.ts";
import { type AttachWish, attachWishOf } from "./attach/AttachWish.ts";
import type { GatewaySettings } from "./config/GatewayOptions.ts";
import { type RouteWish, wishOf } from "./routes/RouteWish.ts";
import * as AccountGuard from "./routing/AccountGuard.ts";
import type { PathVerdict } from "./routing/AccountPaths.ts";
import type { Address } from "./routing/Address.ts";
import { type Admitted, admit, forbiddenRefusal, type Refused, refuseBrowser } from "./routing/Admission.ts";
import type { Unrouted } from "./routing/Route.ts";
import { type Way, wayOf } from "./routing/Way.ts";

/** The head of a request whose path has valid prefixes. */
interface GivenHead extends Pick<RelayRequest, "headers" | "method"> {
  readonly address: Address;
}

/** An admitted request with its destination, before its body is read. */
export interface Routed extends Way, Admitted, Pick<RelayRequest, "method" | "tenant"> {
  /** Path and query without the gateway's own prefixes. */
  readonly target: string;
  readonly attach: AttachWish;
  readonly wish: RouteWish;
  /** The account guard's verdict about the path. */
  readonly verdict: PathVerdict;
}

/** The destination of an admitted request. */
interface Destination {
  /** Name of the upstream for the access line. */
  readonly upstream: string | undefined;
  /** The refusal of a browser that opens a page. */
  readonly page: Refused | undefined;
  readonly routed: Routed | Unrouted;
}

/** The head of a request, and what it decides. */
class RequestHead {
  readonly given: GivenHead;
  readonly settings: GatewaySettings;
  readonly admitted: Admitted | Refused;
  #destination: Destination | undefined;

  constructor(given: GivenHead, settings: GatewaySettings) {
    this.given = given;
    this.settings = settings;
    const { address, headers, method } = given;
    this.admitted = admit({ method, headers, token: address.token }, settings);
  }

  /** Returns where the request goes. Only an admitted request is routed. */
  destination(admitted: Admitted): Destination {
    if (this.#destination !== undefined) return this.#destination;
    const { address, headers } = this.given;
    const way = wayOf(address, headers, this.settings);
    this.#destination = {
      upstream: "server" in way ? way.server.name : way.upstream,
      page: refuseBrowser({ headers }, address.target),
      routed: "refused" in way ? way : this.#route(way, admitted),
    };
    return this.#destination;
  }

  #route(way: Way, { token }: Admitted): Routed | Unrouted {
    const { server, upstream, url } = way;
    const { address, headers, method } = this.given;
    const barred = forbiddenRefusal(token, { upstream: server.name });
    if (barred !== undefined) return { refused: barred, upstream };
    const wish = wishOf(headers);
    if ("reason" in wish) return { refused: wish, upstream };
    const attach = attachWishOf(headers, this.settings, server);
    if ("reason" in attach) return { refused: attach, upstream };
    const verdict = AccountGuard.guard({ method, url, server, token }, this.settings);
    return { ...way, method, tenant: token?.name, target: address.target, token, wish, attach, verdict };
  }
}

/** Returns the decision about a head, which is taken once for each list of headers. */
export const headOf = (given: GivenHead, settings: GatewaySettings): RequestHead => {
  const known = heads.get(given.headers);
  if (known?.given.address === given.address && known.given.method === given.method && known.settings === settings)
    return known;
  const head = new RequestHead(given, settings);
  heads.set(given.headers, head);
  return head;
};

const heads = new WeakMap<RelayHeaders, RequestHead>();
