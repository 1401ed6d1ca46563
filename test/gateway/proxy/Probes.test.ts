import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { StoreState } from "../../../src/gateway/api/StoreHealth.ts";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { probeOf, verdictOf } from "../../../src/gateway/proxy/Probes.ts";
import { polled } from "../../Polling.ts";
import { front, fronted, post, recovery, send } from "../GatewayCases.ts";

const token = "a-token-of-24-characters";

/** The raw answer to a probe. */
const raw = (port: number, bytes: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = [];
    const socket = connect(port, "127.0.0.1");
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(chunks).toString())));
    socket.write(bytes);
  });

/** A path for a store's file, in a temporary folder. */
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

/** Polls until the answer contains a text. */
const untilSaid = (url: string, path: string, said: string, status = 200): Effect.Effect<true> =>
  polled(
    Effect.map(statusOf(url, path), (found) =>
      found.said.status === said && found.status === status ? true : undefined,
    ),
  );

describe("probes", () => {
  it("are recognised by exact paths", () => {
    assert.deepStrictEqual(["/livez", "/readyz", "/readyz?verbose"].map(probeOf), ["livez", "readyz", "readyz"]);
    for (const path of ["/livez/", "/v1/livez", "/livezz", "/", "//livez", "/t/x/livez", "/LIVEZ"])
      assert.isUndefined(probeOf(path), path);
  });

  it("say what they know: a draining process is alive, and one without a store serves", () => {
    const said = (
      probe: "livez" | "readyz",
      draining: boolean,
      requireStore: boolean,
      writes: StoreState["writes"],
    ) => {
      const { body, status } = verdictOf(probe, { draining, requireStore, writes });
      return `${status} ${body.status}${body.degraded === undefined ? "" : ` ${body.degraded}`}`;
    };
    assert.strictEqual(said("livez", true, true, "failing"), "200 ok");
    assert.strictEqual(said("readyz", false, false, "ok"), "200 ok");
    assert.strictEqual(said("readyz", true, false, "ok"), "503 draining");
    assert.strictEqual(said("readyz", false, false, "slow"), "200 ok");
    assert.strictEqual(said("readyz", false, true, "slow"), "200 ok");
    assert.strictEqual(said("readyz", false, false, "failing"), "200 degraded store");
    assert.strictEqual(said("readyz", false, true, "failing"), "503 degraded store");
  });

  it.live("need no token, accept an address or no name as Host, and never another name", () =>
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

  it.live("report a store that accepts no writes, and its return without a request, like the health page", () =>
    Effect.gen(function* () {
      const db = yield* storeFile;
      // No server listens at port 1, but a run needs no provider to be written.
      const { url } = yield* front("http://127.0.0.1:1", { db, budget: { max_auto_retries: 0 } }, RecoveryPage.layer);
      const strict = yield* front("http://127.0.0.1:1", { db, requireStore: true, budget: { max_auto_retries: 0 } });
      assert.deepStrictEqual(yield* statusOf(url, "/readyz"), { status: 200, said: { status: "ok" } });
      const lock = new DatabaseSync(db);
      lock.exec("BEGIN IMMEDIATE");
      yield* Effect.all([post(url, "openai-chat"), post(strict.url, "openai-chat")], { concurrency: 2 });
      // A locked file is slow first, and away after ten seconds.
      yield* untilSaid(url, "/readyz", "degraded");
      assert.deepInclude((yield* statusOf(url, "/readyz")).said, { degraded: "store" });
      yield* untilSaid(strict.url, "/readyz", "degraded", 503);
      const refused = yield* post(strict.url, "openai-chat");
      assert.strictEqual(refused.status, 503);
      assert.include(refused.text, "--require-store");
      assert.strictEqual((yield* statusOf(strict.url, "/livez")).status, 200);
      const { said, status } = yield* polled(
        Effect.map(statusOf(url, "/recovery/api/health"), (it) => (it.said.store.writes === "slow" ? undefined : it)),
      );
      assert.strictEqual(
        `${status} ${said.status} ${said.degraded} ${said.store.writes}`,
        "200 degraded store failing",
      );
      assert.isString(said.store.reason);
      const page = yield* Effect.promise(() => send(`${url}/recovery/`));
      assert.match(page.text, /The store does not accept writes/);
      const scraped = yield* Effect.promise(() => send(`${url}/metrics`));
      assert.match(scraped.text, /^stream_recovery_gateway_store_failing 1$/m);
      lock.exec("ROLLBACK");
      lock.close();
      yield* untilSaid(url, "/readyz", "ok");
      yield* untilSaid(strict.url, "/readyz", "ok");
      yield* untilSaid(url, "/recovery/api/health", "ok");
    }),
  );
});
