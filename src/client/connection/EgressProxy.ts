/** Reads the addresses of egress proxies, and chooses the proxy of a connection by the environment variables. */
import { BlockList, isIP } from "node:net";
import { Redacted } from "effect";

/** An egress proxy. Its string forms never contain its credentials. */
export interface EgressProxy {
  /** True if the connection to the proxy itself is encrypted. */
  readonly secure: boolean;
  /** A name or an address; an IPv6 address without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`. */
  readonly authorization: Redacted.Redacted<string> | undefined;
}

/** The destination of a connection. */
export interface ProxyTarget {
  /** `http:` or `https:`. */
  readonly protocol: string;
  /** A name or an address; an IPv6 address without brackets. */
  readonly hostname: string;
  readonly port: number;
}

/** Chooses the proxy of a connection; undefined connects directly. */
export type ProxyChoice = (target: ProxyTarget) => EgressProxy | undefined;

/** The required form of a proxy address. Messages never quote the address, because it may contain a password. */
export const proxyForm = "http(s)://[user:password@]host[:port]";

/**
 * Reads a proxy's address. An address without a scheme gets `http://`, as in curl.
 *
 * @returns undefined for any address that does not have `proxyForm`, including SOCKS proxies
 */
export const read = (address: string): EgressProxy | undefined => {
  const text = address.trim();
  const spelt = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(spelt)) return undefined;
  const { hash, hostname, password, pathname, port, protocol, search, username } = new URL(spelt);
  const secure = protocol === "https:";
  if (!(secure || protocol === "http:") || hostname === "") return undefined;
  if ((pathname !== "/" && pathname !== "") || search !== "" || hash !== "") return undefined;
  const named = username !== "" || password !== "";
  const pair = named ? decodePair(username, password) : undefined;
  if (named && pair === undefined) return undefined;
  return {
    secure,
    hostname: stripBrackets(hostname),
    port: port === "" ? (secure ? 443 : 80) : Number(port),
    authorization:
      pair === undefined
        ? undefined
        : Redacted.make(`Basic ${Buffer.from(pair).toString("base64")}`, { label: "proxy" }),
  };
};

/** Formats a proxy's address without its login. */
export const addressOf = ({ hostname, port, secure }: EgressProxy): string =>
  `${secure ? "https" : "http"}://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;

const decodePair = (username: string, password: string): string | undefined => {
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    return undefined;
  }
};

/** The proxy variables that were read from an environment. */
export interface ProxyVariables {
  readonly http: EgressProxy | undefined;
  readonly https: EgressProxy | undefined;
  /** The text of `NO_PROXY`. */
  readonly none: string;
}

/**
 * Chooses the environment's proxy for the target's scheme. This machine, the link-local network and the hosts in `NO_PROXY` are reached
 * directly.
 */
export const fromEnvironment = ({ http, https, none }: ProxyVariables): ProxyChoice => {
  const exempt = parseExemptions(none);
  return (target) => {
    const proxy = target.protocol === "https:" ? https : http;
    return proxy === undefined || isNear(target.hostname) || exempt(target) ? undefined : proxy;
  };
};

/** Uses one proxy for every target, or none. `NO_PROXY` does not apply, because an explicit setting overrides the environment. */
export const useOne =
  (proxy: EgressProxy | undefined): ProxyChoice =>
  () =>
    proxy;

/**
 * Reads `NO_PROXY`: entries separated by commas or blanks. `*` matches every host. A name matches itself and its subdomains, with or
 * without a leading dot or `*.`, as in curl and Go. An address matches itself, and `ADDRESS/BITS` matches a network. A port after an entry
 * restricts the entry to that port. Names are not resolved to match networks.
 */
export const parseExemptions = (text: string): ((target: Pick<ProxyTarget, "hostname" | "port">) => boolean) => {
  const entries = text
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .map(parseExemption);
  return ({ hostname, port }) => {
    const name = stripBrackets(hostname).toLowerCase().replace(/\.$/, "");
    return entries.some((entry) => (entry.port === undefined || entry.port === port) && entry.isExempt(name));
  };
};

interface Exemption {
  readonly port: number | undefined;
  readonly isExempt: (name: string) => boolean;
}

const parseExemption = (entry: string): Exemption => {
  if (entry === "*") return { port: undefined, isExempt: () => true };
  const network = parseNetwork(entry);
  if (network !== undefined) return { port: undefined, isExempt: (name) => hasAddress(network, name) };
  // The port of an IPv6 address follows its brackets. An address without brackets has no port.
  const parts = isIP(entry) === 0 ? /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(entry) : null;
  const port = parts?.[2] === undefined ? undefined : Number(parts[2]);
  const spelt = stripBrackets(parts?.[1] ?? entry).toLowerCase();
  const single = parseNetwork(spelt);
  if (single !== undefined) return { port, isExempt: (name) => hasAddress(single, name) };
  const domain = spelt.replace(/^\*?\./, "").replace(/\.$/, "");
  return { port, isExempt: (name) => domain !== "" && (name === domain || name.endsWith(`.${domain}`)) };
};

/** Reads a network, or a single address as a network of one address. */
const parseNetwork = (text: string): BlockList | undefined => {
  const [address = "", bits, ...more] = stripBrackets(text).split("/");
  const family = isIP(stripBrackets(address));
  if (family === 0 || more.length > 0) return undefined;
  const longest = family === 4 ? 32 : 128;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= longest)) return undefined;
  const list = new BlockList();
  list.addSubnet(stripBrackets(address), bits === undefined ? longest : Number(bits), family === 4 ? "ipv4" : "ipv6");
  return list;
};

const hasAddress = (network: BlockList, name: string): boolean => {
  const family = isIP(name);
  return family !== 0 && network.check(name, family === 4 ? "ipv4" : "ipv6");
};

/** The near addresses: loopback, the unspecified address (which connects to this machine) and link-local (RFC 1122, 3927, 4291). */
const near = new BlockList();
near.addSubnet("127.0.0.0", 8, "ipv4");
near.addSubnet("0.0.0.0", 32, "ipv4");
near.addSubnet("169.254.0.0", 16, "ipv4");
near.addSubnet("::", 127, "ipv6");
near.addSubnet("fe80::", 10, "ipv6");

/** Returns true for this machine and the link-local network, which a client cannot reach through a proxy. */
const isNear = (hostname: string): boolean => {
  const name = stripBrackets(hostname).toLowerCase().replace(/\.$/, "");
  return name === "localhost" || name.endsWith(".localhost") || hasAddress(near, name);
};

/** Removes the brackets of an IPv6 address. */
const stripBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");
