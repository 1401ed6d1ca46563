/**
 * Serves the runs of this worker to clients of its siblings, over a Unix socket in a folder of all workers of one supervisor.
 *
 * Nobody but this user may enter the folder, and nobody but a sibling knows the secret. There are never more hops than the siblings have
 * clients, whose number is limited.
 */

import { rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { Cause, Effect, Exit, Redacted, type Scope } from "effect";
import { logged } from "../log/Defect.ts";
import { isSameKey } from "./AttachKey.ts";
import { HopAsked, type HopWish, hopHeadBytesMax, hopHeader, hopSecretHeader, read } from "./HopMessage.ts";
import { HopResponse, type HopSetting } from "./HopResponse.ts";

/** What serving a hop needs of its worker. */
export interface HopServing {
  readonly secret: Redacted.Redacted<string>;
  /** What a response needs; asked with each hop, because the configuration may change. */
  readonly setting: (asked: HopAsked) => HopSetting;
  /** Serves it; returns whether there is a run for it. */
  readonly serve: (wish: HopWish, client: HopResponse) => Effect.Effect<boolean>;
  /** Runs it as a request of this worker, for which a shutdown waits. */
  readonly run: (hop: Effect.Effect<void>) => void;
}

/** The socket of a worker in the folder of all. */
export const socketOf = (folder: string, worker: number): string => join(folder, `${worker}.sock`);

/**
 * Listens for the siblings while the scope lives.
 *
 * @returns why it cannot; undefined where it does
 */
export const listening = (socket: string, serving: HopServing): Effect.Effect<string | undefined, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: Server; readonly wrong?: string }>((resume) => {
      const server = createServer({ maxHeaderSize: hopHeadBytesMax, requestTimeout: 0 }, (request, response) =>
        taken(request, response, serving),
      );
      const failed = (error: unknown) => resume(Effect.succeed({ server, wrong: codeOf(error) }));
      server.once("error", failed);
      try {
        // One that died has left it behind.
        rmSync(socket, { force: true });
      } catch (error) {
        return resume(Effect.succeed({ server, wrong: codeOf(error) }));
      }
      server.listen(socket, () => {
        server.off("error", failed).on("error", () => undefined);
        resume(Effect.succeed({ server }));
      });
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  ).pipe(Effect.map(({ wrong }) => wrong));

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "unknown");

const taken = (request: IncomingMessage, response: ServerResponse, serving: HopServing): void => {
  response.sendDate = false;
  const { [hopHeader]: word, [hopSecretHeader]: secret } = request.headers;
  const isSibling = typeof secret === "string" && isSameKey(secret, Redacted.value(serving.secret));
  const asked = isSibling ? read(HopAsked, word) : undefined;
  if (asked === undefined) {
    response.writeHead(isSibling ? 400 : 403, { connection: "close" });
    return void response.end();
  }
  const client = new HopResponse(response, serving.setting(asked));
  serving.run(
    serving.serve(asked.wish, client).pipe(
      Effect.map((isServed) => (isServed ? undefined : client.none())),
      Effect.onExit((exit) =>
        Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
          ? client.settle
          : Effect.andThen(logged("a defect ended a request", exit.cause), client.fail),
      ),
      Effect.ignoreCause,
    ),
  );
};
