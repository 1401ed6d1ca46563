/**
 * Parses the attachment options of a request: the time that its run outlives the client, the sign that it repeats another request, and its
 * idempotency key.
 */

import { idempotencyKeyOf, isMarkedRetry } from "../../adapters/relay/RelayRepeats.ts";
import { headerOf, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { GatewaySettings } from "../config/GatewayOptions.ts";
import { attachHeader, lingerHeader, wordsOf } from "../config/OwnHeaders.ts";
import type { UpstreamSettings } from "../config/UpstreamSettings.ts";
import type { Refused } from "../routing/Admission.ts";

/** Attachment options of a request, with the defaults applied. */
export interface AttachWish {
  /** Time that the run outlives its client, in milliseconds. With 0 it ends with its client. */
  readonly lingerMs: number;
  /** True if the request indicates that it repeats another one. */
  readonly repeats: boolean;
  /** True if the request accepts the earlier response regardless of its idempotency key. */
  readonly asked: boolean;
  /** True if the request demands a new run. */
  readonly forbidden: boolean;
  /** The client's idempotency key. Different keys mean different requests. */
  readonly idempotencyKey: string | undefined;
}

/**
 * Parses the options.
 *
 * @param settings `lingerMs` applies if neither the request nor the upstream sets a value; `lingerMaxMs` is the maximum for a request
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
    repeats: attach[0] === "1" || isMarkedRetry({ headers }),
    asked: attach[0] === "1",
    forbidden: attach[0] === "0",
    idempotencyKey: idempotencyKeyOf({ headers }),
  };
};

/**
 * Parses `Last-Event-ID` of an attaching request: the number of bytes of the decoded body that the client has.
 *
 * @returns undefined for an invalid value
 */
export const offsetIn = (headers: RelayHeaders): number | undefined => {
  const given = (headerOf(headers, "last-event-id") ?? "").trim();
  if (given === "") return 0;
  return /^\d{1,12}$/.test(given) ? Number(given) : undefined;
};

const noSuchLinger: Refused = {
  status: 400,
  reason: "linger",
  message: `${lingerHeader}: expected one whole number: the milliseconds for which the run continues without its client; 0 for none.`,
};

const noSuchAttach: Refused = {
  status: 400,
  reason: "attach",
  message: `${attachHeader}: expected 1 (this request repeats another and wants its response) or 0 (it wants a new response), once.`,
};
