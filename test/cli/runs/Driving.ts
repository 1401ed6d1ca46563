/**
 * A gateway in a separate process that drives a run whose provider never ends, for commands that inspect it from outside.
 */
import { Effect } from "effect";
import { bodies } from "../../gateway/GatewayCases.ts";
import { serverOf } from "../../Servers.ts";
import { serve } from "../ServeProcess.ts";

const event = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "x" } }] })}\n\n`;

/** A provider that starts an answer and never ends it. */
export const endless = serverOf((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" }).write(event);
});

/** A gateway over a store, and a run that it owns. */
export const driving = Effect.fnUntraced(function* (db: string, more: ReadonlyArray<string> = []) {
  const url = `${yield* endless}/v1`;
  const served = yield* serve(["--port", "0", "--db", db, "--openai-url", url, "--lease-ms", "1000", ...more]);
  const response = yield* Effect.promise(() =>
    fetch(`${served.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(bodies["openai-chat"]),
    }),
  );
  return { served, response, run: response.headers.get("x-recovery-run") ?? "" };
});

/** Resolves with true once the client's stream breaks. */
export const broken = (response: Response): Effect.Effect<boolean> =>
  Effect.promise(() =>
    response.text().then(
      () => false,
      () => true,
    ),
  );
