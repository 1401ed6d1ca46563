/**
 * Reads from the system whether a client leaves unacknowledged what it was sent. Node knows only which bytes the system has not taken
 * yet; a client behind a lost network has been sent a few bytes that nobody took, and the system sends them again and again.
 *
 * Linux tells it of each socket (`/proc/net/tcp`, proc(5)). Elsewhere nothing is known, and no socket is called silent for it.
 */
import { readFileSync } from "node:fs";
import { isIPv6, type Socket } from "node:net";

/**
 * A client that has left so many sendings of the same bytes unacknowledged is silent: the first comes after 0.2 s and each waits twice as
 * long as the one before, so that one lost packet is none of them.
 */
export const retransmitsMin = 2;

/** Most of a table that is read, in characters: some 100,000 sockets. */
const tableMax = 16 * 1024 * 1024;

/** The part of a socket that its line in a table is found by. */
export type Ends = Pick<Socket, "localPort" | "remoteAddress" | "remotePort">;

/** Whether a socket's client leaves unacknowledged what it was sent. */
export const isUnacknowledged = (socket: Ends): boolean => {
  const line = lineOf(socket);
  return line !== undefined && line.unsent > 0 && line.retransmits >= retransmitsMin;
};

/** Bytes that the system has taken and the client's system has not acknowledged; undefined if the system does not tell. */
export const unsentBytes = (socket: Ends): number | undefined => lineOf(socket)?.unsent;

/** A line of a table. */
interface SocketLine {
  readonly unsent: number;
  readonly retransmits: number;
}

const lineOf = (ends: Ends): SocketLine | undefined => {
  if (process.platform !== "linux") return undefined;
  const key = keyOf(ends);
  return key === undefined ? undefined : linesNow().get(key);
};

/** What the tables say in this turn of the event loop: many responses break in one turn where a provider goes away. */
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
 * Reads tables, by the ends of each socket.
 *
 * @param text that of `/proc/net/tcp` or `/proc/net/tcp6`, or both
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
/** The digits in a table in front of an IPv4 address that is mapped into IPv6. */
const mappedPrefix = /^0{16}FFFF0000/;

/** Finds a socket in what was read of the tables; undefined for an address that they do not hold. */
export const keyOf = ({ localPort, remoteAddress, remotePort }: Ends): string | undefined => {
  const address = hexOf(remoteAddress ?? "");
  if (address === undefined || localPort === undefined || remotePort === undefined) return undefined;
  return `${address}:${portOf(remotePort)}:${portOf(localPort)}`;
};

const portOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");

/** An IPv4 address as a table has it, its last byte first, also if it is mapped into IPv6; undefined for any other. */
const hexOf = (address: string): string | undefined => {
  const parts = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(address)?.slice(1);
  if (parts !== undefined) return parts.toReversed().map(byteOf).join("");
  return isIPv6(address) ? hexOf6(address) : undefined;
};

const byteOf = (decimal: string): string => Number(decimal).toString(16).toUpperCase().padStart(2, "0");

/** An IPv6 address as a table has it: four words of four bytes, the last byte of each first. */
const hexOf6 = (address: string): string => {
  const [before = "", after] = (address.split("%")[0] ?? "").split("::");
  const groups = (text: string | undefined): ReadonlyArray<string> =>
    text === undefined || text === "" ? [] : text.split(":").map((group) => group.padStart(4, "0").toUpperCase());
  const [first, last] = [groups(before), groups(after)];
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => "0000");
  const words = [...first, ...zeros, ...last].join("").match(/.{8}/g) ?? [];
  return words.map((word) => (word.match(/../g) ?? []).toReversed().join("")).join("");
};
