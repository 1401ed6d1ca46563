/**
 * What tests of `serve --workers` share: which processes serve, and a client of one of them.
 */
import { Agent, request as httpRequest } from "node:http";
import { Effect, type Scope } from "effect";
import type { Served } from "./ServeProcess.ts";

/** A gateway of which its address and its log are known. */
export type Known = Pick<Served, "stderr" | "url">;

/** The processes of the workers by their numbers, as the log has named them last. */
export const workersOf = (served: Pick<Known, "stderr">): ReadonlyMap<number, number> =>
  new Map(
    [...served.stderr().matchAll(/a worker serves worker=(\d+) pid=(\d+)/g)].map(([, worker, pid]) => [
      Number(worker),
      Number(pid),
    ]),
  );

/** Waits for the log to say something so many times. */
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

/** What one worker responded. */
export interface Asked {
  readonly status: number;
  readonly text: string;
}

/** A client whose one connection is to one worker. */
export interface Client {
  /** Its connection. */
  readonly agent: Agent;
  readonly ask: (path: string, body?: string, headers?: Readonly<Record<string, string>>) => Effect.Effect<Asked>;
  /** Reads a response until what has come says enough. */
  readonly until: (path: string, enough: (text: string) => boolean) => Effect.Effect<string>;
}

/**
 * Connects to one worker: the others are stopped meanwhile, so that only this one takes the connection.
 *
 * @param worker its number
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

/** A request. */
export interface Sending {
  readonly url: string;
  readonly agent?: Agent;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly enough?: (text: string) => boolean;
}

/** Sends it. Without an agent it goes to any worker. */
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
