/**
 * Reads the lines that a gateway writes of real requests.
 */
import { assert, describe, it, vi } from "@effect/vitest";
import { Effect, Logger } from "effect";
import * as GatewayLog from "../../../src/gateway/log/GatewayLog.ts";
import { FaultProvider, type FaultProviderOptions } from "../../../src/testing/index.ts";
import { until } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { paths, post, recovery, send } from "../GatewayCases.ts";
import { logging } from "./Logged.ts";

const token = "a-token-of-24-characters";

const event = (json: { readonly type: string; readonly [key: string]: unknown }): string =>
  `event: ${json.type}\ndata: ${JSON.stringify(json)}\n\n`;

const faulty = (script: NonNullable<FaultProviderOptions["script"]>) => FaultProvider.make({ script });

describe("the access line", () => {
  it.live("contains the upstream and the duration of a model request", () =>
    Effect.gen(function* () {
      const server = yield* faulty({ answers: [{ break: { kind: "rst", at: "before_head" } }, {}] });
      const { accessed, texts, url } = yield* logging(server.url);
      const headers = {
        "content-type": "application/json",
        "user-agent": "codex_cli_rs/1",
        authorization: "Bearer sk-secret",
      };
      const got = yield* post(url, "openai-chat", { headers });
      const [line] = yield* accessed(1);
      assert.deepInclude<object | undefined>(line, {
        level: "info",
        method: "POST",
        path: paths["openai-chat"],
        status: 200,
        outcome: "completed",
        upstream: "openai",
        run_id: recovery(got, "run"),
        attempts: 2,
        bytes: got.body.byteLength,
      });
      assert.isString(line?.rule);
      assert.isAtMost(line?.head_ms ?? Number.NaN, line?.ms ?? 0);
      assert.notInclude(texts.join("\n"), "secret");
    }),
  );

  it.live("names the code of what cannot be reached, as the log and the client's own error do", () =>
    Effect.gen(function* () {
      // Nothing listens at port 1.
      const { accessed, lines, url } = yield* logging("http://127.0.0.1:1", {
        budget: { max_auto_retries: 0, max_not_processed: 0 },
      });
      yield* post(url, "openai-chat");
      const [line] = yield* accessed(1);
      assert.deepInclude(line, { status: 400, outcome: "given_up", failure: "transport", code: "ECONNREFUSED" });
      assert.isTrue(lines.some((it) => it.level === "warn" && it.code === "ECONNREFUSED"));
      yield* Effect.promise(() => send(`${url}/v1/files`));
      const [, passed] = yield* accessed(2);
      assert.deepInclude(passed, { path: "/v1/files", status: 502, outcome: "failed", code: "ECONNREFUSED" });
    }),
  );

  it.live("says why a request was refused, and shows no token, query or forged line", () =>
    Effect.gen(function* () {
      const server = yield* faulty({});
      const { accessed, texts, url } = yield* logging(server.url, { token });
      yield* Effect.promise(() => send(`${url}/v1/models?key=AIzaSecretSecretSecret`));
      yield* Effect.promise(() => send(`${url}/t/${token}/v1/unknown%0aINFO%20forged?key=AIzaSecretSecretSecret`));
      yield* Effect.promise(() => send(`${url}/t/not-the-token-of-anyone/v1/models`));
      const lines = yield* accessed(3);
      assert.deepInclude(lines[0], { status: 401, outcome: "refused", refused: "token", path: "/v1/models" });
      assert.strictEqual(lines[1]?.path, "/t/…/v1/unknown%0aINFO%20forged");
      assert.deepInclude(lines[2], { outcome: "refused", path: "/t/…/v1/models" });
      assert.notMatch(texts.join("\n"), /Secret|not-the-token|a-token/);
      for (const text of texts) assert.notMatch(text, /\p{Cc}/u);
    }),
  );

  it.live("distinguishes a client that left from a response that broke", () =>
    Effect.gen(function* () {
      const at = yield* serverOf((request, response) => {
        request.resume();
        if (request.url === "/v1/broken")
          return void response.writeHead(200, { "content-length": 9 }).write("x", () => response.destroy());
        response.writeHead(200).write("x");
      });
      const { accessed, url } = yield* logging(at);
      yield* Effect.promise(() => send(`${url}/v1/broken`).catch(() => undefined));
      const [broken] = yield* accessed(1);
      assert.deepInclude(broken, { status: 200, outcome: "failed", bytes: 1 });
      yield* Effect.promise(() => send(`${url}/v1/endless`, { onData: (_, response) => response.destroy() }));
      const [, left] = yield* accessed(2);
      assert.deepInclude(left, { outcome: "cancelled", bytes: 1 });
    }),
  );

  for (const lingerMs of [0, 200]) {
    const mode = lingerMs === 0 ? "" : ", for a run that lingers";
    it.live(`says completed if the client closes after the terminal marker, and not before it${mode}`, () =>
      Effect.gen(function* () {
        const text = event({ type: "response.output_text.delta", item_id: "m", output_index: 0, delta: "x" });
        const completed = event({ type: "response.completed", response: { id: "r", status: "completed", output: [] } });
        // The provider never ends a body, so only the client can close.
        const at = yield* serverOf((request, response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          request.resume().on("end", () => response.write(request.headers["x-cut"] === "1" ? text : text + completed));
        });
        const { accessed, url } = yield* logging(at, { lingerMs });
        const closesOn = (marker: string, cut: string) => {
          let seen = "";
          return post(url, "openai-responses", {
            headers: { "content-type": "application/json", "x-cut": cut },
            onData: (chunk, response) => {
              seen += chunk.toString();
              if (seen.includes(marker)) response.destroy();
            },
          });
        };
        yield* closesOn("response.completed", "0");
        const [whole] = yield* accessed(1);
        assert.deepInclude(whole, { status: 200, outcome: "completed" });
        yield* closesOn("output_text.delta", "1");
        const [, cut] = yield* accessed(2);
        assert.deepInclude(cut, { status: 200, outcome: lingerMs === 0 ? "cancelled" : "left" });
      }),
    );
  }

  it.live(
    "is of the level Debug for the gateway's own paths, where they answer, and off where it is switched off",
    () =>
      Effect.gen(function* () {
        const server = yield* faulty({});
        const { accessed, url } = yield* logging(server.url);
        yield* Effect.promise(() => send(`${url}/recovery/api/health`));
        yield* Effect.promise(() => send(`${url}/recovery/api/nothing`));
        const lines = yield* accessed(2);
        assert.deepStrictEqual(
          lines.map((it) => it.level),
          ["debug", "info"],
        );
        const silent = yield* logging(server.url, { accessLog: false });
        yield* post(silent.url, "openai-chat");
        yield* post(silent.url, "openai-chat");
        assert.lengthOf(yield* silent.accessed(0), 0);
      }),
  );

  it.live("is written by the program's logger: to stderr, one line an event", () =>
    Effect.gen(function* () {
      const written: Array<string> = [];
      const console = { ...globalThis.console, error: (line: string) => void written.push(line), log: () => undefined };
      const { Console } = yield* Effect.promise(() => import("effect"));
      yield* Effect.logInfo("a\nb", { path: "/v1" }).pipe(
        Effect.provide(GatewayLog.layer("text")),
        Effect.provideService(Console.Console, console),
        Effect.provideService(Logger.LogToStderr, true),
      );
      assert.lengthOf(written, 1);
      assert.match(written[0] ?? "", / INFO {2}a\\nb path=\/v1$/);
    }),
  );

  it.live(
    "is written with those that come soon behind it, but a warning at once and the rest when the logger goes",
    () =>
      Effect.gen(function* () {
        const written: Array<string> = [];
        const spy = vi.spyOn(globalThis.console, "log").mockImplementation((text: string) => void written.push(text));
        yield* Effect.addFinalizer(() => Effect.sync(() => spy.mockRestore()));
        const messages = () => written.map((text) => text.split("\n").map((line) => line.split(" ").at(-1)));
        yield* Effect.gen(function* () {
          yield* Effect.logInfo("one");
          yield* Effect.logInfo("two");
          assert.deepStrictEqual(messages(), []);
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)));
          assert.deepStrictEqual(messages(), []);
          yield* until(() => written.length > 0);
          assert.deepStrictEqual(messages(), [["one", "two"]]);
          yield* Effect.logInfo("three");
          yield* Effect.logWarning("four");
          assert.deepStrictEqual(messages(), [
            ["one", "two"],
            ["three", "four"],
          ]);
          yield* Effect.logInfo("five");
        }).pipe(Effect.provide(GatewayLog.layer("text")));
        assert.deepStrictEqual(messages().at(-1), ["five"]);
      }),
  );

  it.live("is written when the process exits, and at once behind the logger's end, which a process may follow", () =>
    Effect.gen(function* () {
      const written: Array<string> = [];
      const spy = vi.spyOn(globalThis.console, "log").mockImplementation((text: string) => void written.push(text));
      yield* Effect.addFinalizer(() => Effect.sync(() => spy.mockRestore()));
      const before = new Set(process.listeners("exit"));
      const context = yield* Effect.gen(function* () {
        yield* Effect.logInfo("one");
        assert.lengthOf(written, 0);
        for (const exits of process.listeners("exit")) if (!before.has(exits)) exits(0);
        assert.match(written[0] ?? "", /one$/);
        return yield* Effect.context<never>();
      }).pipe(Effect.provide(GatewayLog.layer("text")));
      assert.deepStrictEqual(new Set(process.listeners("exit")), before);
      // A fiber that outlives it, as one that tells of a run which was stopped.
      Effect.runForkWith(context)(Effect.logInfo("two"));
      assert.match(written[1] ?? "", /two$/);
    }),
  );
});
