/**
 * `serve --advertise`: gateways over one store, as on several machines, of which one has the run of a client that comes back at another.
 */
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { freePort } from "../../scripts/programs/FreePort.ts";
import type { AttachableRun } from "../../src/gateway/api/Traffic.ts";
import * as Certificates from "../failure/provoked/Certificates.ts";
import { again, ask, attach, eventsOf, providerOf, runOf, whole } from "../gateway/attach/AttachCases.ts";
import { bodies, paths, send } from "../gateway/GatewayCases.ts";
import { eventually, polled } from "../Polling.ts";
import { folder, type Served, serve } from "./ServeProcess.ts";

const protocol = "openai-chat" as const;
const events = eventsOf(protocol);
const all = Buffer.concat(events);
const credential = { authorization: "Bearer sk-one" };

/** Starts a gateway at an address that is known beforehand. */
const gateway = Effect.fnUntraced(function* (
  db: string,
  upstream: string,
  {
    env = {},
    more = [],
    scheme = "http",
  }: { env?: Record<string, string>; more?: ReadonlyArray<string>; scheme?: string } = {},
) {
  const port = yield* freePort;
  const host = scheme === "https" ? "localhost" : "127.0.0.1";
  const origin = `${scheme}://${host}:${port}`;
  const args = ["--port", String(port), "--advertise", origin, "--db", db, "--linger-ms", "600000"];
  const served = yield* serve([...args, "--openai-url", `${upstream}/v1`, ...more], env);
  return { ...served, origin };
});

/** Waits until a gateway knows that the client of its only run has left. */
const isLeft = (listed: Effect.Effect<string>) =>
  polled(
    Effect.map(listed, (text) => {
      const runs: ReadonlyArray<AttachableRun> = JSON.parse(text).streams;
      return runs.find(({ state }) => state === "left");
    }),
  );

const listedAt = ({ url }: Served) =>
  Effect.map(
    Effect.promise(() => send(`${url}/recovery/api/streams`)),
    ({ text }) => text,
  );

/** Sends a request over TLS; what has come when its response ends, or when it is left after some bytes. */
const secure = (url: string, body?: string, leaveAfter = Number.POSITIVE_INFINITY) =>
  Effect.promise(
    () =>
      new Promise<string>((resolve, reject) => {
        const agent = new Agent({ ca: Certificates.localhost, keepAlive: false });
        const headers = { "content-type": "application/json", ...credential };
        const sent = request(url, { agent, headers, method: body === undefined ? "GET" : "POST" });
        sent.on("error", reject);
        sent.on("response", (response) => {
          let text = "";
          response.on("error", () => undefined);
          response.on("data", (chunk: Buffer) => {
            text += chunk;
            if (text.length >= leaveAfter)
              sent
                .off("error", reject)
                .on("error", () => undefined)
                .destroy();
          });
          response.on("close", () => resolve(text));
        });
        sent.end(body);
      }),
  );

describe("stream-recovery serve --advertise", () => {
  it.live("sends a response to another gateway only over TLS that the other one trusts", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const dir = yield* folder;
      const [db, cert, key] = [join(dir, "runs.db"), join(dir, "cert.pem"), join(dir, "key.pem")];
      writeFileSync(cert, Certificates.localhost);
      writeFileSync(key, Certificates.key);
      const tls = ["--tls-cert", cert, "--tls-key", key];
      const owner = yield* gateway(db, provider.at, { scheme: "https", more: tls });
      const trusts = yield* gateway(db, provider.at, { env: { NODE_EXTRA_CA_CERTS: cert } });
      const distrusts = yield* gateway(db, provider.at);
      const sending = Effect.tap(provider.nth(0), (sent) => Effect.sync(() => sent.send(3)));
      const first = secure(`${owner.origin}${paths[protocol]}`, JSON.stringify(bodies[protocol]), 10);
      const [sent] = yield* Effect.all([sending, first], { concurrency: 2 });
      yield* isLeft(secure(`${owner.origin}/recovery/api/streams`));
      const strange = ask(distrusts, protocol, { ...credential, ...again });
      (yield* provider.nth(1)).finish();
      const own = yield* whole(strange);
      assert.isUndefined(own.head?.headers["x-recovery-attached"]);
      assert.isTrue(own.body.equals(all));
      assert.match(distrusts.stderr(), /cannot ask another gateway .*TLS does not trust its certificate/);
      const back = ask(trusts, protocol, { ...credential, ...again });
      yield* Effect.promise(() => back.head);
      sent.finish();
      const got = yield* whole(back);
      assert.strictEqual(got.head?.headers["x-recovery-attached"], "0");
      assert.isTrue(!got.broken && got.body.equals(all));
      assert.lengthOf(provider.asked, 2);
    }),
  );

  it.live("starts a new run for a repeat if the owner hangs or has died, and knows no run by its name then", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const db = join(yield* folder, "runs.db");
      const owner = yield* gateway(db, provider.at);
      const other = yield* gateway(db, provider.at);
      const first = ask(owner, protocol, credential);
      const sent = yield* provider.nth(0);
      sent.send(3);
      const run = yield* runOf(first);
      yield* eventually(() => (first.got().byteLength > 0 ? true : undefined));
      first.leave();
      yield* isLeft(listedAt(owner));
      const repeats = Effect.fnUntraced(function* (nth: number) {
        const repeat = ask(other, protocol, { ...credential, ...again, "x-recovery-linger": "0" });
        (yield* provider.nth(nth)).finish();
        const got = yield* whole(repeat);
        assert.isUndefined(got.head?.headers["x-recovery-attached"]);
        assert.isTrue(!got.broken && got.body.equals(all));
        const named = yield* whole(attach(other, run, credential));
        assert.deepStrictEqual([named.head?.statusCode, named.head?.headers["x-recovery-refused"]], [404, "stream"]);
      });
      owner.child.kill("SIGSTOP");
      yield* Effect.ensuring(
        repeats(1),
        Effect.sync(() => owner.child.kill("SIGCONT")),
      );
      const reading = attach(other, run, credential);
      yield* eventually(() => (reading.got().byteLength > 0 ? true : undefined));
      owner.child.kill("SIGKILL");
      assert.isTrue((yield* whole(reading)).broken, "the run's end was never given");
      yield* repeats(2);
    }),
  );

  it.live("answers nobody at the path between gateways without a signature, whatever token a client has", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const dir = yield* folder;
      const token = "a-token-of-24-characters";
      const served = yield* gateway(join(dir, "runs.db"), provider.at, { more: ["--token", token] });
      const status = (headers: Record<string, string>, url = served.url) =>
        Effect.map(
          Effect.promise(() => send(`${url}/recovery/hop`, { headers })),
          (got) => got.status,
        );
      const word = encodeURIComponent(JSON.stringify({ name: "repeat_known", body: "a".repeat(64) }));
      for (const headers of [
        {},
        { "x-recovery-hop": word },
        { "x-recovery-ask": word, "x-recovery-token": token },
        { "x-recovery-ask": word, "x-recovery-signature": `${Date.now()}.nonce.${"a".repeat(43)}` },
      ])
        assert.strictEqual(yield* status(headers), 403);
      const alone = yield* serve(["--port", "0", "--db", join(dir, "alone.db"), "--token", token]);
      assert.strictEqual(yield* status({ "x-recovery-ask": word, "x-recovery-token": token }, alone.url), 404);
    }),
  );

  it.live("is refused with an address that would send responses in the clear, and so is the delivery log", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db");
      const refused = Effect.fnUntraced(function* (args: ReadonlyArray<string>, env: Record<string, string> = {}) {
        const served = yield* serve(["--port", "0", "--db", file, ...args], env);
        const [code] = yield* Effect.promise(() => served.exited);
        assert.strictEqual(code, 2, served.stderr());
        return served.stderr();
      });
      const plain = "http://gateway-1.internal:8787";
      const expected = `expected https://HOST[:PORT], or http://HOST[:PORT] of a loopback address, and nothing else, got ${plain}`;
      assert.include(yield* refused(["--advertise", plain]), `--advertise: ${expected}`);
      assert.include(yield* refused([], { STREAM_RECOVERY_ADVERTISE: plain }), `--advertise: ${expected}`);
      assert.include(yield* refused(["--delivery-log"]), "set --advertise");
      assert.include(yield* refused([], { STREAM_RECOVERY_DELIVERY_LOG: "true" }), "STREAM_RECOVERY_ADVERTISE");
    }),
  );
});
