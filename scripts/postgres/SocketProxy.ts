/**
 * Stands between processes and a PostgreSQL server, and resets their connections or cuts the server off.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";

/** The way to a server. */
export interface SocketProxy {
  /** The folder of its Unix socket, in the place of the server's. */
  readonly socket: string;
  /** Breaks every connection, in the middle of whatever goes over it. Says how many sockets were open. */
  readonly reset: () => number;
  /** Whether connections are refused; those that are open break. Says how many sockets were open. */
  readonly cut: (isCut: boolean) => number;
  /** From now on connections are taken and nothing comes back, as where a firewall drops what is sent; nothing breaks. */
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
        // What comes is taken, and goes nowhere.
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
