import Anthropic from "@anthropic-ai/sdk";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import OpenAI from "openai";
import { recoveringFetch } from "../../../src/adapters/fetch/FetchRecovery.ts";
import { eventually, found } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { gateTo } from "../Gate.ts";
import { bodies, front, paths } from "../GatewayCases.ts";
import { again, ask, eventsOf, longMs, stage, whole } from "./AttachCases.ts";

const protocol = "openai-chat" as const;
const events = eventsOf(protocol);
const all = Buffer.concat(events);

const asking = (fetch: typeof globalThis.fetch, url: string, signal?: AbortSignal) =>
  fetch(`${url}${paths[protocol]}`, {
    method: "POST",
    body: JSON.stringify(bodies[protocol]),
    headers: { "content-type": "application/json", authorization: "Bearer sk-one" },
    ...(signal === undefined ? {} : { signal }),
  });

describe("A fetch that attaches", () => {
  it.live(
    "goes on with the very next byte where its connection to a gateway broke, and its reader sees nothing of it",
    () =>
      Effect.gen(function* () {
        for (const at of [4, 5, 7]) {
          const it = yield* stage(events);
          const gate = yield* gateTo(it.url);
          const fetch = recoveringFetch({ attach: true });
          const asked = asking(fetch, gate.url);
          const provider = yield* it.nth(0);
          provider.send(at);
          const response = yield* Effect.promise(() => asked);
          const text = yield* Effect.forkChild(
            Effect.promise(() => response.text()),
            { startImmediately: true },
          );
          yield* gate.close;
          yield* it.lingers("left");
          yield* gate.open;
          provider.finish();
          assert.strictEqual(yield* Fiber.join(text), all.toString());
          assert.lengthOf(it.asked, 1);
          yield* Effect.promise(fetch.close);
        }
      }),
  );

  it.live(
    "pays once where its connection breaks before the first head of all, wherever the run is: its repeat says that it is one",
    () =>
      Effect.gen(function* () {
        for (const at of [0, 1, 2, 4, events.length]) {
          const it = yield* stage(events);
          const gate = yield* gateTo(it.url);
          const fetch = recoveringFetch({ attach: true });
          const text = yield* Effect.forkChild(
            Effect.promise(() => asking(fetch, gate.url).then((response) => response.text())),
            { startImmediately: true },
          );
          const provider = yield* it.nth(0);
          provider.send(at);
          yield* gate.close;
          yield* it.lingers("left");
          provider.finish();
          yield* it.lingers("ended");
          yield* gate.open;
          assert.strictEqual(yield* Fiber.join(text), all.toString(), `event ${at}`);
          assert.lengthOf(it.asked, 1, `event ${at}`);
          yield* Effect.promise(fetch.close);
        }
      }),
  );

  it.live("fails where the run broke behind what was shown: it does not ask for the rest of it without end", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const methods: Array<string | undefined> = [];
      const counted: typeof globalThis.fetch = (input, init) => {
        methods.push(init?.method);
        return globalThis.fetch(input, init);
      };
      const fetch = recoveringFetch({ attach: true, fetch: counted });
      const failed = asking(fetch, it.url).then((response) =>
        response.text().then(
          () => false,
          () => true,
        ),
      );
      const provider = yield* it.nth(0);
      provider.send(5);
      const shown = Buffer.concat(events.slice(0, 5)).byteLength;
      yield* found(Effect.map(it.attachable, ([one]) => (one?.bytes === shown ? one : undefined)));
      provider.response.destroy();
      assert.isTrue(yield* Effect.promise(() => failed));
      assert.deepStrictEqual(methods, ["POST", "GET"]);
      const [ended] = yield* it.attachable;
      const run = ended?.run_id;
      const none = yield* Effect.promise(() =>
        globalThis.fetch(`${it.url}/recovery/streams/${run}`, {
          headers: { authorization: "Bearer sk-one", "last-event-id": String(ended?.bytes) },
        }),
      );
      assert.strictEqual(none.status, 410);
      assert.strictEqual(none.headers.get("x-recovery-refused"), "broken");
      yield* Effect.promise(fetch.close);
    }),
  );

  it.live("signs a cancel where its caller aborts: the run ends at once, though it might linger", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const stop = new AbortController();
      const fetch = recoveringFetch({ attach: true });
      const asked = asking(fetch, it.url, stop.signal);
      (yield* it.nth(0)).send(4);
      yield* Effect.promise(() => asked);
      stop.abort();
      assert.strictEqual(yield* it.until((runs) => runs[0]?.end?.reason), "user_cancelled");
      yield* Effect.promise(fetch.close);
    }),
  );

  it.live("sends no attach request and no own header to a server that is not a gateway", () =>
    Effect.gen(function* () {
      const seen: Array<string> = [];
      const at = yield* serverOf((request, response) => {
        seen.push(`${request.method} ${request.headers["x-recovery-attach"] ?? "-"}`);
        request.resume();
        response.writeHead(200, { "content-type": "text/event-stream", "x-recovery-run": "r" });
        if (seen.length === 1) response.write(events[0], () => response.destroy());
        else response.end(all);
      });
      const fetch = recoveringFetch({ attach: true });
      const text = yield* Effect.promise(() => asking(fetch, at).then((response) => response.text()));
      assert.include(text, "[DONE]");
      assert.deepStrictEqual(seen, ["POST -", "POST -"]);
      yield* Effect.promise(fetch.close);
    }),
  );
});

describe("An official SDK that asks again by itself", () => {
  it.live("pays once: openai, whose connection broke before the head", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const gate = yield* gateTo(it.url);
      const openai = new OpenAI({ apiKey: "sk-one", baseURL: `${gate.url}/v1`, maxRetries: 8, fetch });
      const asked = openai.chat.completions.create({ model: "m", messages: [], stream: true }).then(async (stream) => {
        let chunks = 0;
        for await (const _ of stream) chunks += 1;
        return chunks;
      });
      const provider = yield* it.nth(0);
      yield* gate.close;
      yield* gate.open;
      provider.finish();
      assert.isAbove(yield* Effect.promise(() => asked), 3);
      assert.lengthOf(it.asked, 1);
      assert.lengthOf(yield* it.runs, 1);
    }),
  );

  it.live("pays once: @anthropic-ai/sdk, whose connection broke before the head", () =>
    Effect.gen(function* () {
      const it = yield* stage(eventsOf("anthropic-messages"));
      const gate = yield* gateTo(it.url);
      const client = new Anthropic({ apiKey: "sk-ant-one", baseURL: gate.url, maxRetries: 8, fetch });
      const asked = client.messages.stream({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] });
      const message = asked.finalMessage();
      const provider = yield* it.nth(0);
      yield* gate.close;
      yield* gate.open;
      provider.finish();
      assert.strictEqual((yield* Effect.promise(() => message)).stop_reason, "tool_use");
      assert.lengthOf(it.asked, 1);
    }),
  );
});

describe("A response that is kept", () => {
  it.live(
    "is evicted where it becomes too long: it goes on for its reader, attachers get 410, and it ends with its reader",
    () =>
      Effect.gen(function* () {
        const long = Buffer.from(
          `data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(1024 * 1024)}"}}]}\n\n`,
        );
        const it = yield* stage([...Array.from({ length: 9 }, () => long), ...events]);
        const first = ask(it, protocol);
        const provider = yield* it.nth(0);
        provider.send(9);
        const head = yield* Effect.promise(() => first.head);
        yield* eventually(() => (first.got().byteLength >= 9 * long.byteLength ? true : undefined));
        assert.lengthOf(yield* it.attachable, 0);
        const run = String(head.headers["x-recovery-run"]);
        const got = yield* Effect.promise(() => fetch(`${it.url}/recovery/streams/${run}`));
        assert.strictEqual(got.status, 410);
        assert.strictEqual(got.headers.get("x-recovery-refused"), "evicted");
        first.leave();
        assert.strictEqual(yield* it.until((runs) => runs[0]?.end?.reason), "user_cancelled");
      }),
  );

  it.live("is lost with its process: the same request is a new run at another gateway", () =>
    Effect.gen(function* () {
      const asked: Array<() => void> = [];
      const at = yield* serverOf((request, response) => {
        request.resume();
        asked.push(() => void response.writeHead(200, { "content-type": "text/event-stream" }).end(all));
      });
      yield* Effect.scoped(
        Effect.gen(function* () {
          const one = yield* front(at, { lingerMs: longMs });
          ask(one, protocol);
          yield* eventually(() => asked[0]);
        }),
      );
      const two = yield* front(at, { lingerMs: longMs });
      const second = ask(two, protocol, again);
      (yield* eventually(() => asked[1]))();
      assert.isTrue((yield* whole(second)).body.equals(all));
    }),
  );
});
