/**
 * The provider that all gateways use. It answers each request as the stream's kind demands, and logs it.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import { type Drawn, deltaOf, idIn } from "./Drawn.ts";
import { wires } from "./Wires.ts";

/** A request that the provider received. Times are in milliseconds. */
export interface Asked {
  readonly stream: number;
  readonly at: number;
  /** True if the provider itself broke or refused it. */
  isFault: boolean;
  /** True if the response was written completely, including its end. */
  isWhole: boolean;
  closedAt: number | undefined;
}

/** A running provider. */
export interface Provider {
  readonly url: string;
  readonly log: ReadonlyArray<Asked>;
  readonly close: () => void;
}

const eventStream = { "content-type": "text/event-stream" };

/** Streams a response, and destroys its connection at delta `cutAt`, if given. */
const play = (response: ServerResponse, drawn: Drawn, asked: Asked, cutAt: number | undefined): void => {
  const wire = wires[drawn.protocol];
  response.writeHead(200, eventStream);
  response.write(wire.begin(drawn));
  let at = 0;
  const timer = setInterval(() => {
    if (at === cutAt) {
      clearInterval(timer);
      response.destroy();
      return;
    }
    if (at < drawn.deltas) {
      response.write(wire.delta(deltaOf(drawn, at), at));
      at += 1;
      return;
    }
    clearInterval(timer);
    asked.isWhole = true;
    response.end(wire.end(drawn));
  }, drawn.everyMs);
  response.on("close", () => clearInterval(timer));
};

const refuse = (response: ServerResponse): void => {
  response.writeHead(503, { "content-type": "application/json" });
  response.end(
    JSON.stringify({ error: { message: "Service Unavailable", type: "server_error", status: "UNAVAILABLE" } }),
  );
};

const respond = (response: ServerResponse, drawn: Drawn, asked: Asked, isFirst: boolean): void => {
  if (!isFirst || drawn.kind === "whole" || drawn.kind === "call") {
    play(response, drawn, asked, undefined);
    return;
  }
  asked.isFault = true;
  if (drawn.kind === "refused") {
    refuse(response);
  } else if (drawn.kind === "reset") {
    response.writeHead(200, eventStream);
    response.flushHeaders();
    setTimeout(() => response.destroy(), drawn.everyMs);
  } else {
    play(response, drawn, asked, Math.floor(drawn.deltas / 2));
  }
};

/**
 * Starts the provider.
 *
 * @param drawn finds a stream by its id
 */
export const start = async (drawn: (id: number) => Drawn | undefined): Promise<Provider> => {
  const log: Array<Asked> = [];
  const seen = new Set<number>();
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (more: string) => {
      body += more;
    });
    request.on("end", () => {
      const wanted = drawn(idIn(body) ?? -1);
      if (wanted === undefined) {
        response.writeHead(400).end();
        return;
      }
      const asked: Asked = { stream: wanted.id, at: Date.now(), isFault: false, isWhole: false, closedAt: undefined };
      const isFirst = !seen.has(wanted.id);
      seen.add(wanted.id);
      log.push(asked);
      response.on("close", () => {
        asked.closedAt = Date.now();
      });
      respond(response, wanted, asked, isFirst);
    });
  });
  server.keepAliveTimeout = 60_000;
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, log, close };
};
