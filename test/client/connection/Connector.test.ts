import type { Socket } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Connector from "../../../src/client/connection/Connector.ts";
import * as EgressProxy from "../../../src/client/connection/EgressProxy.ts";
import { serverOf } from "../../Servers.ts";
import { proxyServer } from "../EgressProxyServer.ts";

/** A socket event that reveals the request it belongs to. */
interface Heard {
  readonly at: string;
  readonly waiting: Connector.Waiting | undefined;
}

/** Opens a connection as for a request, and writes a request on it. */
const opened = (connector: Connector.Connector, url: string, waiting: Connector.Waiting) =>
  Effect.callback<ReadonlyArray<Heard>>((resume) => {
    const heard: Array<Heard> = [];
    const hear = (at: string): void => void heard.push({ at, waiting: connector.findWaiting() });
    const connected = (error: Error | null, socket: Socket | null): void => {
      hear(error === null ? "connect" : "error");
      socket?.once("data", () => {
        hear("data");
        socket.destroy();
      });
      socket?.once("close", () => {
        hear("close");
        resume(Effect.succeed(heard));
      });
      socket?.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    };
    connector.withWaiting(waiting, () => connector.connect(Connector.targetOf(url), connected));
  });

describe("a connection", () => {
  for (const proxied of [false, true])
    it.live(`keeps nothing of the request that it was opened for${proxied ? ", behind a proxy" : ""}`, () =>
      Effect.gen(function* () {
        const url = yield* serverOf((_, response) => response.end("hello"));
        const proxy = proxied ? EgressProxy.read((yield* proxyServer()).url) : undefined;
        const connector = Connector.make({ connectMs: 5_000, tls: {}, proxy: EgressProxy.useOne(proxy) });
        const waiting: Connector.Waiting = { connecting: undefined };
        const heard = yield* opened(connector, url, waiting);
        assert.deepStrictEqual(heard, [
          { at: "connect", waiting: undefined },
          { at: "data", waiting: undefined },
          { at: "close", waiting: undefined },
        ]);
        assert.isUndefined(waiting.connecting);
      }),
    );
});
