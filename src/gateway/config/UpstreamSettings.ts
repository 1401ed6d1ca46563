/**
 * Describes an upstream server: its address, its connection, the requests that it accepts, and how its healthy streams differ
 * from its protocol.
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

/** A validated upstream. Its files and variables are already resolved. */
export interface UpstreamSettings {
  /** `openai`, `anthropic` and `gemini` need no prefix; any other is reached under `/u/NAME/`. */
  readonly name: string;
  /** Base URL, as a client of this server would use it: `http(s)://host[:port][/path]` and nothing else. */
  readonly url: string;
  /** Protocols that it accepts. Default: all protocols of its host's owner. */
  readonly protocols?: ReadonlyArray<ProtocolId>;
  /** With its own credential: permitted requests other than model requests, as `METHOD /path` with `*`. */
  readonly paths?: ReadonlyArray<string>;
  /** Headers that replace the client's headers of the same names in each request. */
  readonly headers: RelayHeaders;
  /** Replaces every credential of the client. */
  readonly credential?: Redacted.Redacted<string>;
  /** The egress proxy, which may include a password; `direct` for none. Default: from the environment. */
  readonly proxy?: Redacted.Redacted<string> | "direct";
  /** Certificates trusted in addition to Node's own, as PEM text. */
  readonly ca?: string;
  /** Client certificate for servers that request one. */
  readonly clientCert?: CertificatePair;
  /** The `connect` timeout in milliseconds: name lookup, proxy, TCP and TLS together. Default: that of `./client`. */
  readonly connectMs?: number;
  /** Ways in which its healthy streams differ from its protocol. */
  readonly tolerance?: Pick<Tolerance, "doneWithoutFinish">;
  /** Upstreams with the same value share a provider's account, so requests bound to the account may move between them. */
  readonly state?: string;
  /** Time that a run outlives its client, in milliseconds. Default: the gateway's setting. */
  readonly lingerMs?: number;
  /** Continue shown text automatically, or ask. Default: the gateway's setting. */
  readonly continueText?: "auto" | "ask";
}

/** True if an upstream has its own credential, as `credential` or in its headers. */
export const hasOwnCredential = ({ credential, headers }: Pick<UpstreamSettings, "credential" | "headers">): boolean =>
  credential !== undefined || headers.some(([name]) => isCredentialName(name));
