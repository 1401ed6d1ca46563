/**
 * Detects clients that do not acknowledge received bytes. Node knows only about bytes that the system has not accepted yet. If the client's
 * network is lost, the system has accepted the bytes and retransmits them without success.
 *
 * Linux reports this state for each socket (`/proc/net/tcp`, proc(5)). Other systems do not report it, so there no client is detected.
 */
import { readFileSync } from "node:fs";
import { isIPv6, type Socket } from "node:net";

/**
 * Number of retransmissions of the same bytes after which a client counts as silent. The first follows after 0.2 s, and the delay doubles
 * each time, so one lost packet is not enough.
 */
export const retransmitsMin = 2;

/** Maximum length of the kernel's list of sockets that is parsed, in characters: about 100,000 sockets. */
const tableMax = 16 * 1024 * 1024;

/** The properties of a socket that identify its line in the kernel's list. */
export type Ends = Pick<Socket, "localPort" | "remoteAddress" | "remotePort">;

/** True if the client of a socket leaves bytes unacknowledged. */
export const isUnacknowledged = (socket: Ends): boolean => {
  const line = lineOf(socket);
  return line !== undefined && line.unsent > 0 && line.retransmits >= retransmitsMin;
};

/** Returns the number of bytes that the client's system has not acknowledged; undefined if the operating system does not report it. */
export const unsentBytes = (socket: Ends): number | undefined => lineOf(socket)?.unsent;

interface SocketLine {
  readonly unsent: number;
  readonly retransmits: number;
}

const lineOf = (ends: Ends): SocketLine | undefined => {
  if (process.platform !== "linux") return undefined;
  const key = keyOf(ends);
  return key === undefined ? undefined : linesNow().get(key);
};

/** Cache of the tables for this turn of the event loop. If a provider fails, many responses break in the same turn. */
let lines: ReadonlyMap<string, SocketLine> | undefined;

const linesNow = (): ReadonlyMap<string, SocketLine> => {
  if (lines !== undefined) return lines;
  lines = linesOf(["/proc/net/tcp", "/proc/net/tcp6"].map(textOf).join("\n"));
  setImmediate(() => {
    lines = undefined;
  });
  return lines;
};

const textOf = (table: string): string => {
  try {
    return readFileSync(table, "latin1").slice(0, tableMax);
  } catch {
    return "";
  }
};

/**
 * Parses the kernel's lists of sockets, by key.
 *
 * @param text content of `/proc/net/tcp`, `/proc/net/tcp6` or both
 */
export const linesOf = (text: string): ReadonlyMap<string, SocketLine> => {
  const found = new Map<string, SocketLine>();
  for (const line of text.split("\n")) {
    const [, from = "", to = "", , queues = "", , retransmits = ""] = line.trim().split(/\s+/);
    const [address, port] = to.split(":");
    const [, local] = from.split(":");
    if (address === undefined || port === undefined || local === undefined) continue;
    const key = `${address.replace(mappedPrefix, "")}:${port}:${local}`;
    found.set(key, { unsent: Number.parseInt(queues, 16), retransmits: Number.parseInt(retransmits, 16) });
  }
  return found;
};
/** Prefix of an IPv4-mapped IPv6 address in `/proc/net/tcp6`. */
const mappedPrefix = /^0{16}FFFF0000/;

/** Computes the key of a socket. Returns undefined for an address that neither list can contain. */
export const keyOf = ({ localPort, remoteAddress, remotePort }: Ends): string | undefined => {
  const address = hexOf(remoteAddress ?? "");
  if (address === undefined || localPort === undefined || remotePort === undefined) return undefined;
  return `${address}:${portOf(remotePort)}:${portOf(localPort)}`;
};

const portOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");

/**
 * Formats an IP address as in `/proc/net/tcp` or `tcp6`; undefined for other text. An IPv4 address starts with its last byte, even if it is mapped into IPv6.
 */
const hexOf = (address: string): string | undefined => {
  const parts = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(address)?.slice(1);
  if (parts !== undefined) return parts.toReversed().map(byteOf).join("");
  return isIPv6(address) ? hexOf6(address) : undefined;
};

const byteOf = (decimal: string): string => Number(decimal).toString(16).toUpperCase().padStart(2, "0");

/** Formats an IPv6 address as in `/proc/net/tcp6`: four words of four bytes, each starting with its last byte. */
const hexOf6 = (address: string): string => {
  const [before = "", after] = (address.split("%")[0] ?? "").split("::");
  const groups = (text: string | undefined): ReadonlyArray<string> =>
    text === undefined || text === "" ? [] : text.split(":").map((group) => group.padStart(4, "0").toUpperCase());
  const [first, last] = [groups(before), groups(after)];
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => "0000");
  const words = [...first, ...zeros, ...last].join("").match(/.{8}/g) ?? [];
  return words.map((word) => (word.match(/../g) ?? []).toReversed().join("")).join("");
};
