/**
 * Reads from the system whether a client leaves unacknowledged what it was sent. Node knows only which bytes the system has not taken
 * yet; a client behind a lost network has been sent a few bytes that nobody took, and the system sends them again and again.
 *
 * Linux tells it of each socket (`/proc/net/tcp`, proc(5)). Elsewhere nothing is known, and no socket is called silent for it.
 */
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";

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
  if (process.platform !== "linux") return false;
  return ["/proc/net/tcp", "/proc/net/tcp6"].some((table) => {
    try {
      return isRetransmitting(readFileSync(table, "latin1").slice(0, tableMax), socket);
    } catch {
      return false;
    }
  });
};

/**
 * Whether a table says so of a socket.
 *
 * @param table the text of `/proc/net/tcp` or `/proc/net/tcp6`
 */
export const isRetransmitting = (table: string, { localPort, remoteAddress, remotePort }: Ends): boolean => {
  const address = hexOf(remoteAddress ?? "");
  if (address === undefined || localPort === undefined || remotePort === undefined) return false;
  const local = `:${portOf(localPort)}`;
  const remote = `${address}:${portOf(remotePort)}`;
  return table.split("\n").some((line) => {
    const [, from = "", to = "", , queues = "", , retransmits = ""] = line.trim().split(/\s+/);
    if (!from.endsWith(local) || !to.endsWith(remote)) return false;
    return !queues.startsWith("00000000:") && Number.parseInt(retransmits, 16) >= retransmitsMin;
  });
};

const portOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");

/** An IPv4 address as a table has it, its last byte first, also where it is mapped into IPv6; undefined for any other. */
const hexOf = (address: string): string | undefined => {
  const parts = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(address)?.slice(1);
  return parts
    ?.toReversed()
    .map((part) => Number(part).toString(16).toUpperCase().padStart(2, "0"))
    .join("");
};
