/**
 * Stands between a recorder and its server, and breaks a connection at its COMMIT: before the server has it, or before its word
 * comes back.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";
import { inject } from "vitest";

/** What a proxy breaks. */
export interface CommitProxy {
  /** The address of the same database through the proxy. */
  readonly address: string;
  /** Where the next commit breaks; undefined lets it through. `for_good`: at its reply, and the server is away from then on. */
  breaks: "request" | "reply" | "for_good" | undefined;
  /** Whether connections are refused. */
  isDown: boolean;
  /** How many commits were broken. */
  broken: number;
}

const socketName = ".s.PGSQL.5432";

/** Makes a proxy for an address of `Databases`. */
export const make = (address: string): Effect.Effect<CommitProxy, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly proxy: CommitProxy; readonly close: () => void }>((resume) => {
      const folder = mkdtempSync(join(tmpdir(), "commit-proxy-"));
      const target = inject("postgresSocket");
      const proxy: CommitProxy = {
        address: address.replace(encodeURIComponent(target), encodeURIComponent(folder)),
        breaks: undefined,
        isDown: false,
        broken: 0,
      };
      const sockets = new Set<Socket>();
      const server = createServer((client) => {
        if (proxy.isDown) return void client.destroy();
        const upstream = connect({ path: join(target, socketName) });
        const both = [client, upstream];
        const end = () => {
          for (const it of both) it.destroy();
        };
        for (const it of both) {
          sockets.add(it);
          it.on("error", end);
          it.on("close", end);
        }
        let swallows = false;
        let name: string | undefined;
        client.on("data", (bytes) => {
          // The text is on the wire when a connection commits first; from then on it has a name.
          const text = bytes.toString("latin1");
          name = /P[^]{4}([^\0]*)\0COMMIT\0/.exec(text)?.[1] ?? name;
          const commits = name !== undefined && text.includes(`\0${name}\0`);
          if (proxy.breaks === undefined || !commits) return void upstream.write(bytes);
          const where = proxy.breaks;
          proxy.breaks = undefined;
          proxy.broken += 1;
          if (where === "request") return end();
          swallows = true;
          proxy.isDown = where === "for_good";
          upstream.write(bytes);
        });
        upstream.on("data", (bytes) => (swallows ? end() : void client.write(bytes)));
      });
      const close = () => {
        for (const it of sockets) it.destroy();
        server.close();
        rmSync(folder, { recursive: true, force: true });
      };
      server.listen(join(folder, socketName), () => resume(Effect.succeed({ proxy, close })));
    }),
    ({ close }) => Effect.sync(close),
  ).pipe(Effect.map(({ proxy }) => proxy));
