/**
 * Detects clients that do not acknowledge what they were sent. Node knows only about bytes that the system has not accepted yet. For a
 * client on a lost network, the system has accepted a few bytes and keeps retransmitting them.
 *
 * Linux reports this for each socket (`/proc/net/tcp`, proc(5)). Other systems do not report it, so no socket counts as silent for this
 * reason.
 */
import { readFileSync } from "node:fs";
import { isIPv6, type Socket } from "node:net";

/**
 * Number of retransmissions of the same bytes after which a client is silent. The first follows after 0.2 s and each further one
 * takes twice as long, so one lost packet does not reach this number.
 */
export const retransmitsMin = 2;

/** Maximum length of a table that is read, in characters: about 100,000 sockets. */
const tableMax = 16 * 1024 * 1024;

/** The parts of a socket that identify its line in a table. */
export type Ends = Pick<Socket, "localPort" | "remoteAddress" | "remotePort">;

/** Checks that a socket's client leaves bytes unacknowledged. */
export const isUnacknowledged = (socket: Ends): boolean => {
  const line = lineOf(socket);
  return line !== undefined && line.unsent > 0 && line.retransmits >= retransmitsMin;
};

/**
 * Returns the number of bytes that the system accepted and the client's system has not acknowledged; undefined if the system does
 * not report it.
 */
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

/** The tables as read in this turn of the event loop. If a provider fails, many responses break in the same turn. */
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
 * Parses tables and indexes their sockets.
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
/** Prefix of an IPv4-mapped IPv6 address in a table. */
const mappedPrefix = /^0{16}FFFF0000/;

/** Computes the key of a socket in the parsed tables; undefined for an address that the tables cannot contain. */
export const keyOf = ({ localPort, remoteAddress, remotePort }: Ends): string | undefined => {
  const address = hexOf(remoteAddress ?? "");
  if (address === undefined || localPort === undefined || remotePort === undefined) return undefined;
  return `${address}:${portOf(remotePort)}:${portOf(localPort)}`;
};

const portOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");

/** Formats an IP address as in a table. IPv4 has its last byte first, also if it is mapped into IPv6; undefined for other text. */
const hexOf = (address: string): string | undefined => {
  const parts = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(address)?.slice(1);
  if (parts !== undefined) return parts.toReversed().map(byteOf).join("");
  return isIPv6(address) ? hexOf6(address) : undefined;
};

const byteOf = (decimal: string): string => Number(decimal).toString(16).toUpperCase().padStart(2, "0");

/** Formats an IPv6 address as in a table: four words of four bytes, the last byte of each first. */
const hexOf6 = (address: string): string => {
  const [before = "", after] = (address.split("%")[0] ?? "").split("::");
  const groups = (text: string | undefined): ReadonlyArray<string> =>
    text === undefined || text === "" ? [] : text.split(":").map((group) => group.padStart(4, "0").toUpperCase());
  const [first, last] = [groups(before), groups(after)];
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => "0000");
  const words = [...first, ...zeros, ...last].join("").match(/.{8}/g) ?? [];
  return words.map((word) => (word.match(/../g) ?? []).toReversed().join("")).join("");
};
