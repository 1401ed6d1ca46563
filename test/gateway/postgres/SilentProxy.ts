/**
 * Stands between a gateway and its PostgreSQL: it resets what there is, or lets nothing through any more without a word.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";

const socketName = ".s.PGSQL.5432";

/** Such a proxy. */
export interface SilentProxy {
  /** The address of the same database through it. */
  readonly address: string;
  /** Breaks every connection that there is. */
  readonly reset: Effect.Effect<void>;
  /** From now on nothing passes, and nobody is told. */
  readonly silence: Effect.Effect<void>;
  /** What is sent from now on, over new connections, passes. */
  readonly speak: Effect.Effect<void>;
}

/**
 * Makes one.
 *
 * @param address of the database
 * @param folder of the server's socket
 */
export const make = (address: string, folder: string): Effect.Effect<SilentProxy, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(listening(address, folder), ({ close }) => Effect.sync(close)),
    ({ proxy }) => proxy,
  );

const listening = (address: string, target: string) =>
  Effect.callback<{ readonly proxy: SilentProxy; readonly close: () => void }>((resume) => {
    const folder = mkdtempSync(join(tmpdir(), "silent-proxy-"));
    const sockets = new Set<Socket>();
    let isSilent = false;
    const reset = () => {
      for (const it of sockets) it.destroy();
      sockets.clear();
    };
    const server = createServer((client) => {
      const upstream = connect({ path: join(target, socketName) });
      const end = () => {
        client.destroy();
        upstream.destroy();
      };
      for (const it of [client, upstream]) {
        sockets.add(it);
        it.on("error", end).on("close", end);
      }
      client.on("data", (bytes) => void (isSilent || upstream.write(bytes)));
      upstream.on("data", (bytes) => void (isSilent || client.write(bytes)));
    });
    const proxy: SilentProxy = {
      address: address.replace(encodeURIComponent(target), encodeURIComponent(folder)),
      reset: Effect.sync(reset),
      silence: Effect.sync(() => {
        isSilent = true;
      }),
      speak: Effect.sync(() => {
        isSilent = false;
        reset();
      }),
    };
    const close = () => {
      reset();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    };
    server.listen(join(folder, socketName), () => resume(Effect.succeed({ proxy, close })));
  });
