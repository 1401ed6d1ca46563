/**
 * A program for any runtime: one request through `./fetch` and one through `./client`, to a server that cuts each first body.
 */
import { Effect, Layer, References, Stream } from "effect";
import { recoveringFetch } from "../../src/adapters/fetch/FetchRecovery.ts";
import { ProviderClient } from "../../src/client/index.ts";
import { StreamProcessor } from "../../src/index.ts";
import { OpenAiChat } from "../../src/provider/index.ts";

const url = String(process.argv[2]);
const body = { model: "m", stream: true, messages: [{ role: "user", content: "x" }] };

const fetch = recoveringFetch();
const answer = await fetch(`${url}/fetch/v1/chat/completions`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const fetched = (await answer.text()).includes("GOOD");
await fetch.close();

const asked = Effect.gen(function* () {
  const client = yield* ProviderClient;
  const parts = (yield* StreamProcessor).parts({
    provider: { id: "runtime" },
    tools: [],
    attempt: ({ bytes, delivery }) =>
      client.stream({
        protocol: OpenAiChat.protocol,
        url: `${url}/client/v1/chat/completions`,
        body,
        bytes,
        delivery,
      }),
    observe: (part) => part.observation,
  });
  return yield* Stream.runFold(
    parts,
    () => "",
    (text, part) => text + JSON.stringify(part.json ?? ""),
  );
});
const layer = Layer.mergeAll(ProviderClient.layer(), StreamProcessor.layerDefault).pipe(
  Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
);
const client = (await Effect.runPromise(Effect.provide(asked, layer))).includes("GOOD");

process.stdout.write(`${JSON.stringify({ fetched, client })}\n`);
