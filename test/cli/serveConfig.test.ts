import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import { proxyServer } from "../client/EgressProxyServer.ts";
import * as Certificates from "../failure/provoked/Certificates.ts";
import { bodies, recovery, send } from "../gateway/GatewayCases.ts";
import { serverOf } from "../Servers.ts";
import { folder, type Served, serve } from "./ServeProcess.ts";

const chat = JSON.stringify(bodies["openai-chat"]);

/** A configuration file in a temporary folder. */
const configured = (config: unknown) =>
  Effect.map(folder, (dir) => {
    const path = join(dir, "gateway.json");
    const write = (next: unknown) => writeFileSync(path, JSON.stringify(next), { mode: 0o644 });
    write(config);
    return { dir, path, write };
  });

/** A server that answers with its name. */
const named = (name: string) =>
  serverOf((request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ name, authorization: request.headers.authorization }));
  });

/** Waits until the process has printed a match. */
const said = (served: Served, pattern: RegExp): Promise<string> =>
  new Promise((resolve) => {
    const look = () => {
      const found = pattern.exec(`${served.stdout()}${served.stderr()}`);
      if (found !== null) resolve(found[0]);
    };
    for (const stream of [served.child.stdout, served.child.stderr]) stream?.on("data", () => setImmediate(look));
    look();
  });

const small = { listen: { port: 0 }, db: "memory" };

describe("stream-recovery serve --config", () => {
  it.live("serves two upstreams of one protocol side by side, with flags over variables over the file", () =>
    Effect.gen(function* () {
      const [one, two, three] = [yield* named("one"), yield* named("two"), yield* named("three")];
      const { path } = yield* configured({
        ...small,
        listen: { port: 1 },
        upstreams: {
          one: { url: `${one}/v1`, credential: { env: "KEY_ONE" } },
          two: { url: `${two}/v1`, credential: { env: "KEY_TWO" } },
          openai: { url: "http://127.0.0.1:9/v1" },
        },
        limits: { max_body_bytes: 10 },
        log: { access: false },
      });
      const env = {
        KEY_ONE: "k-1",
        KEY_TWO: "k-2",
        STREAM_RECOVERY_PORT: "2",
        STREAM_RECOVERY_MAX_BODY_BYTES: "1000000",
      };
      const served = yield* serve(["--config", path, "--port", "0", "--openai-url", `${three}/v1`], env);
      assert.notInclude(["1", "2"], new URL(served.url).port);
      const ask = (target: string) => Effect.promise(() => send(`${served.url}${target}`));
      assert.deepStrictEqual(JSON.parse((yield* ask("/u/one/v1/models")).text), {
        name: "one",
        authorization: "Bearer k-1",
      });
      assert.deepStrictEqual(JSON.parse((yield* ask("/u/two/v1/models")).text), {
        name: "two",
        authorization: "Bearer k-2",
      });
      assert.deepInclude(JSON.parse((yield* ask("/v1/models")).text), { name: "three" });
      assert.strictEqual((yield* ask("/u/three/v1/models")).status, 404);
    }),
  );

  it.live("reaches two upstreams of one protocol, one through a separate proxy with a password and one directly", () =>
    Effect.gen(function* () {
      const proxy = yield* proxyServer({ login: "us:SECRET-5" });
      const [one, two] = [yield* named("one"), yield* named("two")];
      const { path } = yield* configured({
        ...small,
        upstreams: {
          one: { url: `${one}/v1`, proxy: { env: "PROXY" } },
          two: { url: `${two}/v1`, proxy: "direct" },
        },
      });
      const env = { PROXY: proxy.url.replace("://", "://us:SECRET-5@"), HTTP_PROXY: "http://127.0.0.1:9" };
      const served = yield* serve(["--config", path], env);
      const ask = (name: string) => Effect.promise(() => send(`${served.url}/u/${name}/v1/models`));
      const [first, second] = yield* Effect.all([ask("one"), ask("two")], { concurrency: 2 });
      assert.deepInclude(JSON.parse(first.text), { name: "one" });
      assert.deepInclude(JSON.parse(second.text), { name: "two" });
      assert.deepStrictEqual(
        proxy.asked.map(({ target }) => target),
        [new URL(one).host],
      );
      assert.notInclude(`${served.stdout()}${served.stderr()}`, "SECRET");
    }),
  );

  it.live(
    "checks: every error in its own line with exit code 1, or the effective configuration without its secrets",
    () =>
      Effect.gen(function* () {
        const wrong = yield* configured({
          upstreams: { a: { url: "nowhere", credential: "SECRET-1" }, v1: { url: "http://x" } },
          tokens: { t: { token: { env: "NOT_SET" } } },
          lisen: {},
        });
        for (const args of [["--check"], []]) {
          const served = yield* serve(["--config", wrong.path, ...args]);
          assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [1, null]);
          assert.strictEqual(served.stdout(), "");
          assert.deepStrictEqual(served.stderr().replaceAll(`serve: ${wrong.path}: `, "").split("\n"), [
            "$.lisen: expected a known key",
            "",
          ]);
        }
        wrong.write({
          upstreams: { a: { url: "nowhere", credential: "SECRET-1" }, v1: { url: "http://x" } },
          tokens: { t: { token: { env: "NOT_SET" } } },
        });
        const more = yield* serve(["--config", wrong.path, "--check"]);
        assert.deepStrictEqual(yield* Effect.promise(() => more.exited), [1, null]);
        const lines = more.stderr().trim().split("\n");
        assert.lengthOf(lines, 4);
        for (const line of lines) assert.match(line, /^serve: \S+gateway\.json: \$\.\S+: expected /);
        assert.notInclude(more.stderr(), "SECRET");
        const missing = yield* serve(["--config", `${wrong.path}.none`, "--check"]);
        assert.deepStrictEqual(yield* Effect.promise(() => missing.exited), [1, null]);
        assert.match(missing.stderr(), /gateway\.json\.none: the file cannot be read \(ENOENT\)\n$/);
      }),
  );

  it.live(
    "limits how long a run waits for an outage: ten minutes by default, or the file's value, or the flag's over it",
    () =>
      Effect.gen(function* () {
        const file = yield* configured({ budget: { max_outage_ms: 5_000 } });
        const env = { STREAM_RECOVERY_MAX_OUTAGE_MS: "7000" };
        const cases: ReadonlyArray<readonly [ReadonlyArray<string>, Record<string, string>, string]> = [
          [[], {}, "at most 600000 ms"],
          [["--config", file.path], {}, "at most 5000 ms"],
          [["--config", file.path], env, "at most 7000 ms"],
          [["--config", file.path, "--max-outage-ms", "forever"], env, "forever"],
          [["--budget", "max_outage_ms=forever"], {}, "forever"],
        ];
        for (const [args, variables, said] of cases) {
          const checked = yield* serve([...args, "--check"], variables);
          assert.deepStrictEqual(yield* Effect.promise(() => checked.exited), [0, null], checked.stderr());
          assert.include(checked.stdout(), `outages: a run waits ${said}\n`);
        }
      }),
  );

  it.live("refuses a file that others can write, and warns of a secret's file that others can read", () =>
    Effect.gen(function* () {
      const { dir, path } = yield* configured({
        ...small,
        tokens: { dev: { token: { file: "token" }, paths: ["GET /v1/files"] } },
      });
      writeFileSync(join(dir, "token"), "a-token-of-24-characters\n", { mode: 0o644 });
      const checked = yield* serve(["--config", path, "--check"]);
      assert.deepStrictEqual(yield* Effect.promise(() => checked.exited), [0, null]);
      assert.include(checked.stderr(), "serve: warning: ");
      assert.include(checked.stderr(), "$.tokens.dev.token.file: others can read or write this secret's file");
      assert.include(checked.stdout(), "dev: all upstreams, also GET /v1/files");
      chmodSync(path, 0o664);
      for (const args of [["--check"], []]) {
        const refused = yield* serve(["--config", path, ...args]);
        assert.deepStrictEqual(yield* Effect.promise(() => refused.exited), [1, null]);
        assert.include(refused.stderr(), `${path}: expected a file that only its owner can write`);
      }
    }),
  );

  it.live("serves the example of the documentation unchanged", () =>
    Effect.gen(function* () {
      const path = fileURLToPath(new URL("../../docs/gateway.example.json", import.meta.url));
      const checked = yield* serve(["--config", path, "--check"]);
      assert.deepStrictEqual(yield* Effect.promise(() => checked.exited), [0, null]);
      assert.include(checked.stdout(), "groq: https://api.groq.com/openai/v1, at /u/groq/");
      const served = yield* serve(["--config", path, "--port", "0", "--db", "memory"]);
      assert.strictEqual((yield* Effect.promise(() => send(`${served.url}/readyz`))).status, 200);
    }),
  );

  it.live("prints the effective configuration of the documentation's file for a team", () =>
    Effect.gen(function* () {
      const path = fileURLToPath(new URL("../../docs/gateway.team.json", import.meta.url));
      const secret = "SECRET-of-24-characters--";
      const env = Object.fromEntries(
        ["TEAM_OPENAI_KEY", "AZURE_KEY", "GROQ_API_KEY", "LAPTOP_TOKEN", "CI_TOKEN"].map((name) => [
          name,
          `${secret}${name}`,
        ]),
      );
      const checked = yield* serve(["--config", path, "--check"], env);
      assert.deepStrictEqual(yield* Effect.promise(() => checked.exited), [0, null]);
      assert.include(
        checked.stdout(),
        "groq: https://api.groq.com/openai/v1, at /u/groq/, its own credential, openai-chat",
      );
      assert.include(checked.stdout(), "ci: upstreams team-openai azure groq");
      assert.include(
        checked.stdout(),
        "  team-openai: team-openai, then azure, then groq, also for refused\n    azure: the upstream azure, its own credential, models gpt-4o*, sets model\n    groq: the upstream groq, its own credential, sets model, drops openai-beta reasoning_effort",
      );
      assert.match(checked.stdout(), /codex: on_complete, .* \(configured\)/);
      assert.notInclude(`${checked.stdout()}${checked.stderr()}`, "SECRET");
      const served = yield* serve(["--config", path, "--port", "0", "--db", "memory"], env);
      const page = yield* Effect.promise(() => send(`${served.url}/t/${secret}LAPTOP_TOKEN/recovery/`));
      assert.strictEqual(page.status, 200);
      assert.notInclude(`${served.stdout()}${served.stderr()}`, "SECRET");
    }),
  );

  it.live("accepts the configuration of the guide to routes unchanged", () =>
    Effect.gen(function* () {
      const page = readFileSync(new URL("../../docs/routes.md", import.meta.url), "utf8");
      const [, text = ""] = /^```json\n(.*?)^```$/ms.exec(page) ?? [];
      const { path } = yield* configured(JSON.parse(text));
      const secret = "SECRET-of-24-characters--";
      const env = { TEAM_OPENAI_KEY: secret, AZURE_KEY: secret, LAPTOP_TOKEN: secret };
      const checked = yield* serve(["--config", path, "--check"], env);
      assert.deepStrictEqual(yield* Effect.promise(() => checked.exited), [0, null], checked.stderr());
      assert.include(checked.stdout(), "  team-openai: team-openai, then azure, also for refused\n");
    }),
  );

  it.live("leaves no secret of the file or of a client in its store or its log", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const [mine, theirs, token, team] = [
        "SECRET-mine-1",
        "SECRET-theirs-2",
        "SECRET-token-3-of-many",
        "SECRET-team-4",
      ];
      const server = yield* FaultProvider.make({
        script: {
          answers: [
            { break: { kind: "rst", at: "before_head" } },
            { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } },
            { status: 401, body: { error: { message: theirs } } },
          ],
        },
      });
      const { path } = yield* configured({
        ...{ listen: { port: 0 }, db: join(dir, "runs.db") },
        upstreams: {
          a: { url: `${server.url}/v1`, credential: { env: "MINE" }, headers: { "x-team-key": { env: "TEAM" } } },
        },
        tokens: { t: { token: { env: "TOKEN" } } },
      });
      const served = yield* serve(["--config", path, "--log-level", "all"], { MINE: mine, TOKEN: token, TEAM: team });
      const headers = { "x-api-key": theirs, authorization: `Bearer ${theirs}`, "content-type": "application/json" };
      const targets = [
        "/u/a/v1/chat/completions",
        "/on_complete/u/a/v1/chat/completions",
        "/u/none/v1/x",
        "/u/a/v1/messages",
      ];
      for (const target of targets) {
        const url = `${served.url}/t/${token}${target}?key=${theirs}`;
        yield* Effect.promise(() => send(url, { headers, body: chat }));
      }
      yield* Effect.promise(() => send(`${served.url}/t/${token}/T/${token}/v1/models`, { headers }));
      served.child.kill("SIGHUP");
      yield* Effect.promise(() => said(served, /was reloaded/));
      served.child.kill("SIGTERM");
      yield* Effect.promise(() => served.exited);
      assert.match(served.stderr() + served.stdout(), /token=t\b/);
      const kept = readdirSync(dir).map((name) => readFileSync(join(dir, name), "latin1"));
      assert.isAbove(kept.join("").length, 0);
      for (const place of [served.stdout(), served.stderr(), ...kept])
        for (const secret of [mine, theirs, token, team]) assert.notInclude(place, secret);
    }),
  );

  it.live("reads the file again on SIGHUP, and keeps the previous one if it is invalid", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* named("one"), yield* named("two")];
      const config = { ...small, upstreams: { a: { url: `${one}/v1` } } };
      const { path, write } = yield* configured(config);
      const served = yield* serve(["--config", path]);
      const ask = () => Effect.promise(() => send(`${served.url}/u/a/v1/models`));
      assert.deepInclude(JSON.parse((yield* ask()).text), { name: "one" });
      write({ ...config, upstreams: { a: { url: "nowhere" } } });
      served.child.kill("SIGHUP");
      yield* Effect.promise(() => said(served, /the previous one stays in effect: .*\$\.upstreams\.a\.url: expected/));
      assert.deepInclude(JSON.parse((yield* ask()).text), { name: "one" });
      write({ ...config, listen: { port: 1 }, db: "other.db", upstreams: { a: { url: `${two}/v1` } } });
      served.child.kill("SIGHUP");
      yield* Effect.promise(() => said(served, /was reloaded; these need a restart: port, db/));
      assert.deepInclude(JSON.parse((yield* ask()).text), { name: "two" });
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
    }),
  );

  it.live("lets running requests finish with their configuration while it reads the file again", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 20 }], delay_ms: 20 }] } });
      const config = { ...small, upstreams: { a: { url: `${server.url}/v1` } } };
      const { path, write } = yield* configured(config);
      const served = yield* serve(["--config", path]);
      let told = false;
      const got = yield* Effect.promise(() =>
        send(`${served.url}/live/u/a/v1/chat/completions`, {
          body: chat,
          onData: () => {
            if (told) return;
            told = true;
            write(small);
            served.child.kill("SIGHUP");
          },
        }),
      );
      assert.isFalse(got.broken);
      yield* Effect.promise(() => said(served, /was reloaded/));
      const gone = yield* Effect.promise(() => send(`${served.url}/u/a/v1/models`));
      assert.deepStrictEqual([gone.status, recovery(gone, "refused")], [404, "address"]);
    }),
  );
});

describe("stream-recovery serve", () => {
  it.live("keeps running on SIGHUP without a file, if it comes from no terminal", () =>
    Effect.gen(function* () {
      const served = yield* serve(["--port", "0", "--db", "memory"]);
      served.child.kill("SIGHUP");
      yield* Effect.promise(() => said(served, /was reloaded/));
      assert.strictEqual((yield* Effect.promise(() => send(`${served.url}/livez`))).status, 200);
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
    }),
  );

  it.live("listens with TLS", () =>
    Effect.gen(function* () {
      const one = yield* named("one");
      const dir = yield* folder;
      const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
      writeFileSync(cert, Certificates.localhost);
      writeFileSync(key, Certificates.key);
      const args = ["--port", "0", "--db", "memory", "--tls-cert", cert, "--tls-key", key, "--openai-url", `${one}/v1`];
      const served = yield* serve(args);
      assert.match(served.stdout(), /^listening on https:\/\/127\.0\.0\.1:\d+\n$/);
      const url = served.stdout().trim().replace("listening on ", "");
      const status = yield* Effect.promise(
        () =>
          new Promise<number | undefined>((resolve, reject) => {
            httpsRequest(`${url}/v1/models`, { ca: Certificates.localhost, agent: false }, (response) => {
              response.resume();
              resolve(response.statusCode);
            })
              .on("error", reject)
              .end();
          }),
      );
      assert.strictEqual(status, 200);
      const half = yield* serve(args.slice(0, 6));
      assert.deepStrictEqual(yield* Effect.promise(() => half.exited), [2, null]);
      const swapped = yield* serve([...args, "--tls-cert", key]);
      yield* Effect.promise(() => swapped.exited);
      assert.notInclude(swapped.stderr(), "MIGH");
    }),
  );

  it.live("reads clocks, budgets and policies from flags and variables, and names the invalid one", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ break: { kind: "stall", at: "before_head" } }] },
      });
      const args = [
        "--port",
        "0",
        "--db",
        "memory",
        "--openai-url",
        `${server.url}/v1`,
        "--clock",
        "first_progress=50",
      ];
      const served = yield* serve([...args, "--clock", "silence=off"], {
        STREAM_RECOVERY_BUDGET: "max_auto_retries=0,max_after_stall=0",
      });
      const got = yield* Effect.promise(() => send(`${served.url}/v1/chat/completions`, { body: chat }));
      assert.isAtLeast(got.status, 400);
      assert.lengthOf(yield* server.log, 1);
      const wrong: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["--clock", "idle=soon"], "--clock idle: expected whole milliseconds"],
        [["--clock", "sleep=1"], "--clock sleep: expected a known key"],
        [["--budget", "max_auto_retries=-1"], "--budget max_auto_retries: expected"],
        [
          ["--max-outage-ms", "soon"],
          '--max-outage-ms: expected whole milliseconds from 0 to 2147483647, or "forever"',
        ],
        [["--policy", "nothing_shown=auto_retry_once"], "--policy nothing_shown: expected"],
        [["--policy", "no_such=ask_user"], "--policy no_such: expected a rule of the policy"],
      ];
      for (const [flags, line] of wrong) {
        const refused = yield* serve(["--port", "0", "--db", "memory", ...flags]);
        assert.deepStrictEqual(yield* Effect.promise(() => refused.exited), [2, null]);
        assert.include(refused.stderr(), `serve: ${line}`);
      }
    }),
  );
});
