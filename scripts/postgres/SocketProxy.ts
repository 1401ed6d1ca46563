/**
 * A proxy between processes and a PostgreSQL server that can reset their connections or make the server unreachable.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";

/** A running proxy. */
export interface SocketProxy {
  /** Folder of its Unix socket, which replaces the server's. */
  readonly socket: string;
  /** Breaks every connection, even during a transfer. Returns the number of open sockets. */
  readonly reset: () => number;
  /** Refuses connections from now on, and breaks the open ones; `false` accepts them again. Returns the number of open sockets. */
  readonly cut: (isCut: boolean) => number;
  /** Accepts connections but never responds, like a firewall that drops packets. Breaks nothing. */
  readonly silence: () => void;
}

/** @param target the folder of the server's socket */
export const make = (target: string): Effect.Effect<SocketProxy, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly proxy: SocketProxy; readonly close: () => void }>((resume) => {
      const socket = mkdtempSync(join(tmpdir(), "socket-proxy-"));
      const open = new Set<Socket>();
      let [isAway, isSilent] = [false, false];
      const server = createServer((client) => {
        if (isAway) return void client.destroy();
        if (isSilent) return void open.add(client.on("error", () => client.destroy()).resume());
        const upstream = connect({ path: join(target, name) });
        const end = () => {
          for (const it of [client, upstream]) {
            it.destroy();
            open.delete(it);
          }
        };
        for (const it of [client, upstream]) open.add(it.on("error", end).on("close", end));
        client.pipe(upstream);
        upstream.pipe(client);
      });
      const reset = () => {
        const { size } = open;
        for (const it of open) it.destroy();
        return size;
      };
      const cut = (isCut: boolean) => {
        isAway = isCut;
        return isCut ? reset() : 0;
      };
      const silence = () => {
        isSilent = true;
        // Reads and discards whatever arrives.
        for (const it of open) it.unpipe().resume();
      };
      const close = () => {
        cut(true);
        server.close();
        rmSync(socket, { recursive: true, force: true });
      };
      server.listen(join(socket, name), () =>
        resume(Effect.succeed({ proxy: { socket, reset, cut, silence }, close })),
      );
    }),
    ({ close }) => Effect.sync(close),
  ).pipe(Effect.map(({ proxy }) => proxy));

const name = ".s.PGSQL.5432";
