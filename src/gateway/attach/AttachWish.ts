/**
 * Reads what a request says of attaching: how long its run outlives it, whether it repeats another one, and what its client calls it.
 */

import { idempotencyKeyOf, saysRetry } from "../../adapters/relay/RelayRepeats.ts";
import { headerOf, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { GatewaySettings } from "../config/GatewayOptions.ts";
import { attachHeader, lingerHeader, wordsOf } from "../config/OwnHeaders.ts";
import type { UpstreamSettings } from "../config/UpstreamSettings.ts";
import type { Refused } from "../routing/Admission.ts";

/** What a request says of attaching. */
export interface AttachWish {
  /** Its run outlives its client by so many milliseconds; 0: it ends with its client. */
  readonly lingerMs: number;
  /** Whether it says that it repeats another request. */
  readonly repeats: boolean;
  /** It wants that request's response, whatever its idempotency key is. */
  readonly asked: boolean;
  /** It wants a run of its own. */
  readonly forbidden: boolean;
  /** Two requests with different ones are different requests, by their client's own word. */
  readonly idempotencyKey: string | undefined;
}

/**
 * Reads it.
 *
 * @param settings `lingerMs` where neither the request nor its upstream says anything, and the most that a request may ask for
 */
export const attachWishOf = (
  headers: RelayHeaders,
  settings: Pick<GatewaySettings, "lingerMaxMs" | "lingerMs">,
  server: Pick<UpstreamSettings, "lingerMs">,
): AttachWish | Refused => {
  const linger = [...wordsOf(headers, lingerHeader)];
  const attach = [...wordsOf(headers, attachHeader)];
  if (linger.length > 1 || !linger.every((value) => /^\d+$/.test(value))) return noSuchLinger;
  if (attach.length > 1 || !attach.every((value) => value === "0" || value === "1")) return noSuchAttach;
  const [asked] = linger;
  return {
    lingerMs: Math.min(
      asked === undefined ? (server.lingerMs ?? settings.lingerMs) : Number(asked),
      settings.lingerMaxMs,
    ),
    repeats: attach[0] === "1" || saysRetry({ headers }),
    asked: attach[0] === "1",
    forbidden: attach[0] === "0",
    idempotencyKey: idempotencyKeyOf({ headers }),
  };
};

/**
 * The byte that an attaching request has next, as its `Last-Event-ID` says it: how many bytes of the decoded body it has.
 *
 * @returns undefined for a value that is no number of bytes
 */
export const offsetIn = (headers: RelayHeaders): number | undefined => {
  const given = (headerOf(headers, "last-event-id") ?? "").trim();
  if (given === "") return 0;
  return /^\d{1,12}$/.test(given) ? Number(given) : undefined;
};

const noSuchLinger: Refused = {
  status: 400,
  reason: "linger",
  message: `${lingerHeader} says for how many milliseconds the run goes on without its client: one whole number, 0 for none.`,
};

const noSuchAttach: Refused = {
  status: 400,
  reason: "attach",
  message: `${attachHeader} says 1 (this request repeats one whose response it wants) or 0 (it wants one of its own), once.`,
};
