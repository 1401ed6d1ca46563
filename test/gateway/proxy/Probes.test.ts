import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { probeOf, verdictOf } from "../../../src/gateway/proxy/Probes.ts";
import { front, fronted, post, recovery, send } from "../GatewayCases.ts";

const token = "a-token-of-24-characters";

/** What a probe without a library reads. */
const raw = (port: number, bytes: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = [];
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(chunks).toString())));
    socket.write(bytes);
  });

/** A file for a store, in a folder that goes with the scope. */
const storeFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "health-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  ),
  (folder) => join(folder, "runs.db"),
);

const statusOf = (url: string, path: string) =>
  Effect.map(
    Effect.promise(() => send(`${url}${path}`)),
    ({ status, text }) => ({ status, said: JSON.parse(text) }),
  );

/** Asks again and again until it hears what it waits for. */
const untilSaid = (url: string, path: string, said: string): Effect.Effect<number> =>
  Effect.gen(function* () {
    for (;;) {
      const found = yield* statusOf(url, path);
      if (found.said.status === said) return found.status;
    }
  });

describe("probes", () => {
  it("are told by exact paths", () => {
    assert.deepStrictEqual(["/livez", "/readyz", "/readyz?verbose"].map(probeOf), ["livez", "readyz", "readyz"]);
    for (const path of ["/livez/", "/v1/livez", "/livezz", "/", "//livez", "/t/x/livez", "/LIVEZ"])
      assert.isUndefined(probeOf(path), path);
  });

  it("say what they know: a process that drains lives, and one without a store serves", () => {
    const said = (probe: "livez" | "readyz", draining: boolean, requireStore: boolean, writes: "ok" | "failing") => {
      const { body, status } = verdictOf(probe, { draining, requireStore, writes });
      return `${status} ${body.status}${body.degraded === undefined ? "" : ` ${body.degraded}`}`;
    };
    assert.strictEqual(said("livez", true, true, "failing"), "200 ok");
    assert.strictEqual(said("readyz", false, false, "ok"), "200 ok");
    assert.strictEqual(said("readyz", true, false, "ok"), "503 draining");
    assert.strictEqual(said("readyz", false, false, "failing"), "200 degraded store");
    assert.strictEqual(said("readyz", false, true, "failing"), "503 degraded store");
  });

  it.live("need no token, take an address or no name for a Host, and never another name", () =>
    Effect.gen(function* () {
      const { gateway, server, url } = yield* fronted({}, { token });
      for (const path of ["/livez", "/readyz"]) {
        const hosts = ["127.0.0.1", "10.1.2.3:8787", "[fd00::1]:8787", "localhost"];
        for (const host of hosts) {
          const got = yield* Effect.promise(() => send(`${url}${path}`, { headers: { host } }));
          assert.strictEqual(`${got.status} ${got.text}`, '200 {"status":"ok"}\n', host);
          assert.strictEqual(got.headers["cache-control"], "no-store");
        }
        const rebound = yield* Effect.promise(() => send(`${url}${path}`, { headers: { host: "evil.example" } }));
        assert.strictEqual(`${rebound.status} ${recovery(rebound, "refused")}`, "403 host");
        assert.match(
          yield* raw(gateway.port, `GET ${path} HTTP/1.0\r\n\r\n`),
          /^HTTP\/1\.1 200 [\s\S]*\{"status":"ok"\}\n$/,
        );
        assert.match(yield* raw(gateway.port, `HEAD ${path} HTTP/1.0\r\n\r\n`), /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
        const posted = yield* Effect.promise(() => send(`${url}${path}`, { body: "{}" }));
        assert.strictEqual(posted.status, 405);
      }
      const other = yield* Effect.promise(() => send(`${url}/v1/models`));
      assert.strictEqual(other.status, 401);
      assert.lengthOf(yield* server.log, 0);
    }),
  );

  it.live("tell of a store that takes no writes, and of its return without a request; health tells the same", () =>
    Effect.gen(function* () {
      const db = yield* storeFile;
      // Nothing listens at port 1: a run needs no provider to be written.
      const { url } = yield* front("http://127.0.0.1:1", { db, budget: { max_auto_retries: 0 } }, RecoveryPage.layer);
      const strict = yield* front("http://127.0.0.1:1", { db, requireStore: true, budget: { max_auto_retries: 0 } });
      assert.deepStrictEqual(yield* statusOf(url, "/readyz"), { status: 200, said: { status: "ok" } });
      const lock = new DatabaseSync(db);
      lock.exec("BEGIN IMMEDIATE");
      yield* Effect.all([post(url, "openai-chat"), post(strict.url, "openai-chat")], { concurrency: 2 });
      assert.deepStrictEqual(yield* statusOf(url, "/readyz"), {
        status: 200,
        said: { status: "degraded", degraded: "store" },
      });
      assert.strictEqual((yield* statusOf(strict.url, "/readyz")).status, 503);
      assert.strictEqual((yield* statusOf(strict.url, "/livez")).status, 200);
      const { said, status } = yield* statusOf(url, "/recovery/api/health");
      assert.strictEqual(
        `${status} ${said.status} ${said.degraded} ${said.store.writes}`,
        "200 degraded store failing",
      );
      assert.isString(said.store.reason);
      const page = yield* Effect.promise(() => send(`${url}/recovery/`));
      assert.match(page.text, /The store takes no writes now/);
      const scraped = yield* Effect.promise(() => send(`${url}/metrics`));
      assert.match(scraped.text, /^stream_recovery_gateway_store_failing 1$/m);
      lock.exec("ROLLBACK");
      lock.close();
      assert.strictEqual(yield* untilSaid(url, "/readyz", "ok"), 200);
      assert.strictEqual(yield* untilSaid(strict.url, "/readyz", "ok"), 200);
      assert.strictEqual(yield* untilSaid(url, "/recovery/api/health", "ok"), 200);
    }),
  );
});
