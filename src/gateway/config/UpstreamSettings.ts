/**
 * Describes one server that requests go to: where it is, how it is reached, what it is asked, and how its healthy streams
 * differ from its protocol.
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

/** One upstream, read and checked. Its files were read and its variables looked up: nothing here is a reference. */
export interface UpstreamSettings {
  /** `openai`, `anthropic` and `gemini` are the three that need no prefix; any other is reached under `/u/NAME/`. */
  readonly name: string;
  /** Base address as a client of this server would be given it: `http(s)://host[:port][/path]` and nothing else. */
  readonly url: string;
  /** What may be asked of it; left out, everything that its host's owner has. */
  readonly protocols?: ReadonlyArray<ProtocolId>;
  /** With a credential of its own: what may be asked beside model requests, as `METHOD /path` with `*`. */
  readonly paths?: ReadonlyArray<string>;
  /** Sent with each request in place of the client's headers of those names. */
  readonly headers: RelayHeaders;
  /** Sent in place of every credential of the client. */
  readonly credential?: Redacted.Redacted<string>;
  /** The egress proxy, whose address may hold a password; `direct` uses none. Left out, the environment says it. */
  readonly proxy?: Redacted.Redacted<string> | "direct";
  /** Certificates that are trusted beside Node's own, as PEM text. */
  readonly ca?: string;
  /** Shown to a server that asks for a client's certificate. */
  readonly clientCert?: CertificatePair;
  /** The `connect` clock in milliseconds: name lookup, proxy, TCP and TLS together. Left out, that of `./client`. */
  readonly connectMs?: number;
  /** How its healthy streams differ from its protocol. */
  readonly tolerance?: Pick<Tolerance, "doneWithoutFinish">;
  /** Upstreams of one such name share a provider's account: what is bound to the account may move between them. */
  readonly state?: string;
  /** A run outlives its client by so many milliseconds; left out, the gateway's setting says it. */
  readonly lingerMs?: number;
  /** Whether text that it has shown goes on by itself; left out, the gateway's own word counts. */
  readonly continueText?: "auto" | "ask";
}

/** Whether an upstream has a credential of its own: in its place, or as one of its headers. */
export const hasOwnCredential = ({ credential, headers }: Pick<UpstreamSettings, "credential" | "headers">): boolean =>
  credential !== undefined || headers.some(([name]) => isCredentialName(name));
