/**
 * Helpers for tests of `serve --workers`: the serving processes, and a client of one of them.
 */
import { Agent, request as httpRequest } from "node:http";
import { Effect, type Scope } from "effect";
import type { Served } from "./ServeProcess.ts";

/** A gateway with a known address and log. */
export type Known = Pick<Served, "stderr" | "url">;

/** The latest process id of each worker by its number, read from the log. */
export const workersOf = (served: Pick<Known, "stderr">): ReadonlyMap<number, number> =>
  new Map(
    [...served.stderr().matchAll(/a worker is ready worker=(\d+) pid=(\d+)/g)].map(([, worker, pid]) => [
      Number(worker),
      Number(pid),
    ]),
  );

/** Waits until the log contains a line the given number of times. */
export const logged = (served: Served, said: RegExp, times = 1): Effect.Effect<void> =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        const look = () => {
          const count = [...served.stderr().matchAll(new RegExp(said, "g"))].length;
          if (count < times) return;
          served.child.stderr?.off("data", look);
          resolve();
        };
        served.child.stderr?.on("data", look);
        look();
      }),
  );

/** The response of one worker. */
export interface Asked {
  readonly status: number;
  readonly text: string;
}

/** A client whose only connection leads to one worker. */
export interface Client {
  readonly agent: Agent;
  readonly ask: (path: string, body?: string, headers?: Readonly<Record<string, string>>) => Effect.Effect<Asked>;
  /** Reads a response until `enough` accepts the text. */
  readonly until: (path: string, enough: (text: string) => boolean) => Effect.Effect<string>;
}

/**
 * Connects to one worker. The others are stopped meanwhile, so that only this one accepts the connection.
 *
 * @param worker number of the worker
 */
export const connected = Effect.fnUntraced(function* (
  served: Known,
  worker: number,
): Effect.fn.Return<Client, never, Scope.Scope> {
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
    (made) => Effect.sync(() => made.destroy()),
  );
  const others = [...workersOf(served)].filter(([number]) => number !== worker).map(([, pid]) => pid);
  const client: Client = {
    agent,
    ask: (path, body, headers) => Effect.promise(() => sent({ url: `${served.url}${path}`, agent, body, headers })),
    until: (path, enough) =>
      Effect.promise(async () => (await sent({ url: `${served.url}${path}`, agent, enough })).text),
  };
  for (const pid of others) process.kill(pid, "SIGSTOP");
  yield* client.ask("/livez");
  for (const pid of others) process.kill(pid, "SIGCONT");
  return client;
});

export interface Sending {
  readonly url: string;
  readonly agent?: Agent;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly enough?: (text: string) => boolean;
}

/** Sends a request. Without an agent it reaches any worker. */
export const sent = ({ agent, body, enough, headers, url }: Sending): Promise<Asked> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...headers },
      ...(agent === undefined ? { agent: false } : { agent }),
    });
    request.on("error", reject);
    request.on("response", (response) => {
      let text = "";
      const settle = () => resolve({ status: response.statusCode ?? 0, text });
      response.on("data", (chunk: Buffer) => {
        text += String(chunk);
        if (enough?.(text) !== true) return;
        request.destroy();
        settle();
      });
      response.on("error", settle);
      response.on("close", settle);
    });
    request.end(body);
  });
