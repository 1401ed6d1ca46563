/**
 * `serve --workers`: several processes that listen with TLS, and one per core.
 */
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Certificates from "../failure/provoked/Certificates.ts";
import { again, eventsOf, providerOf } from "../gateway/attach/AttachCases.ts";
import { bodies, paths } from "../gateway/GatewayCases.ts";
import { folder, type Served, serve } from "./ServeProcess.ts";
import { logged, workersOf } from "./Workers.ts";

/** An agent whose only connection leads to one worker, because the others are stopped while it connects. */
const agentOf = Effect.fnUntraced(function* (served: Served, url: string, worker: number) {
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1, ca: Certificates.localhost })),
    (made) => Effect.sync(() => made.destroy()),
  );
  const others = [...workersOf(served)].filter(([number]) => number !== worker).map(([, pid]) => pid);
  for (const pid of others) process.kill(pid, "SIGSTOP");
  const probe = yield* asked(`${url}/livez`, { agent });
  yield* bodyOf(probe.response);
  for (const pid of others) process.kill(pid, "SIGCONT");
  return agent;
});

const asked = (
  url: string,
  { agent, body, headers }: { agent: Agent; body?: string; headers?: Record<string, string> },
) =>
  Effect.promise(
    () =>
      new Promise<{ readonly response: IncomingMessage; readonly leave: () => void }>((resolve, reject) => {
        const method = body === undefined ? "GET" : "POST";
        const sent = request(url, { agent, method, headers: { "content-type": "application/json", ...headers } });
        sent.on("response", (response) => resolve({ response, leave: () => void sent.destroy() }));
        sent.on("error", reject);
        sent.end(body);
      }),
  );

const bodyOf = (response: IncomingMessage) =>
  Effect.promise(async () => {
    const chunks: Array<Buffer> = [];
    for await (const chunk of response) chunks.push(chunk);
    return Buffer.concat(chunks);
  });

describe("stream-recovery serve --workers", () => {
  it.live("listens with TLS, and gives a client that returns to another worker its run", () =>
    Effect.gen(function* () {
      const events = eventsOf("openai-chat");
      const provider = yield* providerOf(events);
      const dir = yield* folder;
      const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
      writeFileSync(cert, Certificates.localhost);
      writeFileSync(key, Certificates.key);
      const served = yield* serve([
        ...["--port", "0", "--workers", "2", "--db", join(dir, "runs.db"), "--tls-cert", cert, "--tls-key", key],
        ...["--linger-ms", "60000", "--openai-url", `${provider.at}/v1`],
      ]);
      yield* logged(served, /a worker is ready/, 2);
      const url = served.stdout().trim().replace("listening on ", "");
      assert.match(url, /^https:/);
      const chat = `${url}${paths["openai-chat"]}`;
      const body = JSON.stringify(bodies["openai-chat"]);
      const [one, other] = [yield* agentOf(served, url, 1), yield* agentOf(served, url, 2)];
      const [first, sent] = yield* Effect.all(
        [asked(chat, { agent: one, body }), Effect.tap(provider.nth(0), (it) => Effect.sync(() => it.send(3)))],
        { concurrency: 2 },
      );
      first.response.on("error", () => undefined);
      first.leave();
      const [second] = yield* Effect.all(
        [asked(chat, { agent: other, body, headers: again }), Effect.sync(() => sent.finish())],
        { concurrency: 2 },
      );
      assert.strictEqual(second.response.headers["x-recovery-attached"], "0");
      assert.isTrue((yield* bodyOf(second.response)).equals(Buffer.concat(events)));
      assert.lengthOf(provider.asked, 1);
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
    }),
  );

  it.live("keeps its certificate if the next one is half written, for replacements, too", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
      writeFileSync(cert, Certificates.localhost);
      writeFileSync(key, Certificates.key);
      const args = [
        "--port",
        "0",
        "--workers",
        "2",
        "--db",
        join(dir, "runs.db"),
        "--tls-cert",
        cert,
        "--tls-key",
        key,
      ];
      const served = yield* serve(args);
      yield* logged(served, /a worker is ready/, 2);
      writeFileSync(key, Certificates.key.slice(0, 80));
      served.child.kill("SIGHUP");
      yield* logged(
        served,
        /the new configuration was rejected, and the previous one stays in effect: tls: expected a certificate/,
      );
      for (const pid of workersOf(served).values()) process.kill(pid, "SIGKILL");
      yield* Effect.raceFirst(
        logged(served, /a worker is ready/, 4),
        Effect.promise(() => served.exited),
      );
      const url = served.stdout().trim().replace("listening on ", "");
      const agent = yield* agentOf(served, url, 1);
      assert.strictEqual((yield* asked(`${url}/livez`, { agent })).response.statusCode, 200);
    }),
  );

  it.live("starts one per core if set to auto", () =>
    Effect.gen(function* () {
      const served = yield* serve(["--port", "0", "--workers", "auto", "--db", join(yield* folder, "runs.db")]);
      const cores = availableParallelism();
      // A single process has no supervisor, and its log does not mention workers.
      yield* logged(served, /a worker is ready/, cores === 1 ? 0 : cores);
      assert.strictEqual(workersOf(served).size, cores === 1 ? 0 : cores);
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
    }),
  );
});
