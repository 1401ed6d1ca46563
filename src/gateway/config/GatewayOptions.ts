/**
 * Describes the options of a gateway: where it listens, where requests go, what it holds back, and its limits.
 */
import { Schema } from "effect";
import type { Budget } from "../../domain/RunFacts.ts";
import type { Tolerance } from "../../provider/Protocols.ts";
import type { ClockOptions } from "../../runtime/contract/Clocks.ts";

/** The providers whose addresses a gateway knows. */
export type UpstreamName = "openai" | "anthropic" | "gemini";

/** Base addresses, each as a client of that provider would be given it. */
export type Upstreams = Readonly<Record<UpstreamName, string>>;

/** The providers' own addresses, as their SDKs have them. */
export const upstreamsDefault: Upstreams = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com",
};

/** Limits of a gateway. Times are milliseconds, sizes bytes. */
export interface GatewayLimits {
  /** Body of one request that is kept, because it may have to be sent again. */
  readonly maxBodyBytes: number;
  /** All of those at one time. */
  readonly maxBodiesBytes: number;
  /** Body of one request that only passes through. */
  readonly maxPassedBytes: number;
  /** Head of one request. */
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** A client has so long to send a request's head. */
  readonly headMs: number;
  /** A client has so long to send a whole request. */
  readonly requestMs: number;
  /** A client that takes no byte for so long, while some wait for it, is given up. */
  readonly slowClientMs: number;
  /** A connection without a request is closed after so long. */
  readonly idleConnectionMs: number;
  /** A shutdown waits so long for what runs. */
  readonly drainMs: number;
}

/**
 * The limits by default. Providers take request bodies up to 32 MB (Anthropic) and 50 MB (OpenAI); uploads up to 1 GiB are
 * not kept. 2,000 streams are a bar of this project, four times as many connections a limit. SDKs wait 10 minutes for a
 * response, so a client that reads nothing for 5 is gone.
 */
export const limitsDefault: GatewayLimits = {
  maxBodyBytes: 64 * 1024 * 1024,
  maxBodiesBytes: 1024 * 1024 * 1024,
  maxPassedBytes: 1024 * 1024 * 1024,
  maxHeaderBytes: 64 * 1024,
  maxConnections: 8192,
  headMs: 30_000,
  requestMs: 300_000,
  slowClientMs: 300_000,
  idleConnectionMs: 65_000,
  drainMs: 30_000,
};

/** How often a comment goes to a client that waits, in milliseconds: less than the 30 s that proxies are known to cut after. */
export const keepAliveMsDefault = 15_000;

/** Options of a gateway; everything has a default. */
export interface GatewayOptions {
  /** Default 127.0.0.1. Any address but this machine's own needs a token. */
  readonly host?: string;
  /** Default 8787; 0 takes any free one. */
  readonly port?: number;
  readonly upstreams?: Partial<Upstreams>;
  /** What is held back from clients. Default `live`. */
  readonly reveal?: "live" | "on_complete";
  /**
   * What a client gets where a shown response breaks for good: an aborted connection (default), or its protocol's own error
   * event before that, for clients that know no better.
   */
  readonly onBreak?: "abort" | "error_event";
  /** A client without it is refused. It is never forwarded. */
  readonly token?: string;
  /** Names besides this machine's own that a request's Host may say, such as `host.docker.internal`. */
  readonly allowedHosts?: ReadonlyArray<string>;
  /** How the upstreams' healthy streams differ: `doneWithoutFinish` for servers that end a chat with `[DONE]` alone. */
  readonly tolerance?: Pick<Tolerance, "doneWithoutFinish">;
  /** Milliseconds between comments to a client that waits. */
  readonly keepAliveMs?: number;
  readonly limits?: Partial<GatewayLimits>;
  /** What a run may spend. */
  readonly budget?: Partial<Budget>;
  /** Clocks of an attempt, in milliseconds; `false` is off. */
  readonly clocks?: ClockOptions;
}

/** The gateway cannot start. The message is one line that names the option, or the address that is taken. */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  reason: Schema.Literals(["bad_option", "cannot_listen"]),
  message: Schema.String,
}) {}

/** Options with their defaults, checked. */
export interface GatewaySettings {
  readonly host: string;
  readonly port: number;
  readonly upstreams: Upstreams;
  readonly reveal: "live" | "on_complete";
  readonly onBreak: "abort" | "error_event";
  readonly token: string | undefined;
  readonly allowedHosts: ReadonlyArray<string>;
  readonly keepAliveMs: number;
  readonly limits: GatewayLimits;
  /** It listens for this machine only. */
  readonly local: boolean;
}

/**
 * Fills in defaults and checks.
 *
 * @returns the settings, or what is wrong in one line
 */
export const settingsOf = (options: GatewayOptions): GatewaySettings | GatewayError => {
  const host = options.host ?? "127.0.0.1";
  const settings: GatewaySettings = {
    host,
    port: options.port ?? 8787,
    upstreams: { ...upstreamsDefault, ...options.upstreams },
    reveal: options.reveal ?? "live",
    onBreak: options.onBreak ?? "abort",
    token: options.token,
    allowedHosts: options.allowedHosts ?? [],
    keepAliveMs: options.keepAliveMs ?? keepAliveMsDefault,
    limits: { ...limitsDefault, ...options.limits },
    local: isLocal(host),
  };
  const problem = problemOf(settings);
  return problem === undefined ? settings : new GatewayError({ reason: "bad_option", message: problem });
};

/** Shortest token: what can be guessed is none. */
export const tokenCharactersMin = 16;

const problemOf = ({ keepAliveMs, limits, local, port, token, upstreams }: GatewaySettings): string | undefined => {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return `port: expected 0 to 65535, got ${port}`;
  for (const [name, address] of Object.entries(upstreams)) {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (
      url === undefined ||
      !/^https?:$/.test(url.protocol) ||
      url.username !== "" ||
      url.search !== "" ||
      url.hash !== ""
    )
      return `${name}-url: expected http(s)://host[:port][/path] and nothing else`;
  }
  // The token itself is in no message.
  if (token !== undefined && !/^[\w.~-]+$/.test(token)) return "token: expected letters, digits and -._~ only";
  if (token !== undefined && token.length < tokenCharactersMin)
    return `token: expected at least ${tokenCharactersMin} characters, got ${token.length}`;
  if (!local && token === undefined)
    return "token: needed for any host but this machine's own (127.0.0.1, ::1, localhost)";
  for (const [name, value] of Object.entries({ keepAliveMs, ...limits })) {
    if (!Number.isInteger(value) || value < 1 || value > numberMax)
      return `${name}: expected 1 to ${numberMax}, got ${value}`;
  }
  return undefined;
};

/** Largest delay that a timer takes, in milliseconds, and more bytes than any limit here means. */
const numberMax = 2_147_483_647;

const isLocal = (host: string): boolean => host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
