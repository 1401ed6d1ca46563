/**
 * Describes an upstream server: its address, its connection, the requests that it accepts, and how its healthy streams may differ from its
 * protocol.
 */
import type { Redacted } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId, Tolerance } from "../../provider/Protocols.ts";
import { isCredentialName } from "./CredentialNames.ts";

/** A certificate with its chain, and its key, as PEM text. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: Redacted.Redacted<string>;
}

/** An access key of Amazon's, with which requests are signed. */
export interface AwsCredential {
  readonly accessKeyId: string;
  readonly secretAccessKey: Redacted.Redacted<string>;
  /** Token of a temporary access key. */
  readonly sessionToken?: Redacted.Redacted<string>;
  /** Default: the region in the host. */
  readonly region?: string;
}

/** A validated upstream. The files and variables that it names are already resolved. */
export interface UpstreamSettings {
  /** Name of the upstream. Those of `upstreams` in Options.ts need no path prefix; any other upstream has the prefix `/u/NAME/`. */
  readonly name: string;
  /** Base URL, in the form in which a client of this server configures it: `http(s)://host[:port][/path]` and nothing else. */
  readonly url: string;
  /** Protocols that the server accepts. Default: all protocols of the vendor that owns the host. */
  readonly protocols?: ReadonlyArray<ProtocolId>;
  /** Requests other than model requests that are permitted if the upstream has its own credential: `METHOD /path` with `*`. */
  readonly paths?: ReadonlyArray<string>;
  /** Headers that replace those of the same names in each request. */
  readonly headers: RelayHeaders;
  /** Credential that replaces every credential of the client. */
  readonly credential?: Redacted.Redacted<string>;
  /** Access key that signs each request in place of the client, for Amazon's APIs. */
  readonly aws?: AwsCredential;
  /** Egress proxy, whose address may include a password; `direct` for none. Default: from the environment. */
  readonly proxy?: Redacted.Redacted<string> | "direct";
  /** Certificates trusted in addition to Node's own, as PEM text. */
  readonly ca?: string;
  /** Client certificate, for servers that request one. */
  readonly clientCert?: CertificatePair;
  /** The `connect` timeout in milliseconds: name lookup, proxy, TCP and TLS together. Default: that of `./client`. */
  readonly connectMs?: number;
  /** Ways in which a healthy stream of this server may differ from its protocol. */
  readonly tolerance?: Pick<Tolerance, "doneWithoutFinish">;
  /**
   * Name of the provider account. Upstreams with the same `state` share an account, so a request that refers to files or responses stored
   * in the account may move between them.
   */
  readonly state?: string;
  /** Time for which a run continues without its client, in milliseconds. Default: the gateway's setting. */
  readonly lingerMs?: number;
  /** `auto` continues shown text automatically. Default: the gateway's setting. */
  readonly continueText?: "auto" | "ask";
}

/** True if an upstream has its own credential: in `credential`, in `aws`, or in its headers. */
export const hasOwnCredential = ({
  aws,
  credential,
  headers,
}: Pick<UpstreamSettings, "aws" | "credential" | "headers">): boolean =>
  credential !== undefined || aws !== undefined || headers.some(([name]) => isCredentialName(name));

/** Returns the region in a host of Amazon's; undefined for any other host. */
export const regionOf = (url: string): string | undefined =>
  /\.([a-z]{2}(?:-[a-z]+)+-\d)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)$/.exec(new URL(url).hostname)?.[1];
