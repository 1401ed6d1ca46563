/**
 * Plays one turn of an agent against one fault: a provider, optionally our gateway in front of it, and the agent in temporary folders.
 */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Effect } from "effect";
import { clientRows, unknownRow } from "../../src/gateway/clients/ClientRows.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import { type Agent, gatewayOrigin, type Place } from "./Agent.ts";
import { findCause } from "./Continued.ts";
import { awayMs, type Fault, marksFile, scriptOf } from "./Faults.ts";
import { type Cell, judge } from "./Letter.ts";
import * as Outage from "./Outage.ts";
import { type Ended, run, startBackground } from "./Program.ts";

/** The path from the agent to the provider: without a gateway, or through one with a reveal mode. */
export const ways = ["direct", "live", "on_complete"] as const;
export type Way = (typeof ways)[number];

/** Absence of a dead provider, in milliseconds. It is longer than any turn. */
const deadMs = 600_000;

/** Time limit of a turn, in milliseconds. It covers the silence, the agents' own delays of some seconds, and a slow machine. */
const turnMs = 90_000;

/**
 * Time limit without a gateway if the fault never stops, in milliseconds. Some agents retry forever, and their number of requests is
 * conclusive sooner.
 */
const endlessMs = 40_000;

/** Time limit with the gateway if it meets endless 429 responses, in milliseconds. It waits between its attempts. */
const refusedMs = 120_000;

/** The agents' silence timeout for held responses, in milliseconds, if they have such a setting. It is far shorter than the response. */
const patienceMs = 5_000;

/**
 * Time for which the head of a held response is withheld, and the interval of its no-ops, in milliseconds. Both are a fifth of the agents'
 * timeout, so that the no-ops are what keeps an agent waiting.
 */
const noOpMs = 1_000;

/** Timeout for the gateway to listen, in milliseconds. */
const gatewayMs = 60_000;

/** Time that the agent has before a break to read and act on what was sent, in milliseconds. */
const readMs = 500;

/** Timeout for the log entry about the end of the last request, in milliseconds. */
const logMs = 2_000;

/** If this variable is set, each turn prints the agent's output and the provider's log. */
const traceVariable = "AGENTS_TRACE";

/** Compile cache that the gateways of all turns share. */
const compiled = join(tmpdir(), "stream-recovery-agents-compiled");

const gateway = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

/**
 * Plays a turn and judges it by the provider's log, the marks of the commands, and the agent's output.
 *
 * @param modules the folder in which the agents are installed
 * @param extra additional environment for agent and gateway
 */
export const playTurn = (
  agent: Agent,
  fault: Fault,
  way: Way,
  modules: string,
  extra: Readonly<Record<string, string>>,
): Promise<Cell> => Effect.runPromise(Effect.scoped(turn(agent, fault, way, modules, extra)));

const turn = Effect.fnUntraced(function* (
  agent: Agent,
  fault: Fault,
  way: Way,
  modules: string,
  extra: Readonly<Record<string, string>>,
) {
  let leave: Effect.Effect<void> = Effect.void;
  const provider = yield* FaultProvider.make({
    script: scriptOf(agent, fault),
    beforeBreak: () =>
      Effect.andThen(
        Effect.sleep(readMs),
        Effect.suspend(() => leave),
      ),
  });
  const outage = fault.away === undefined ? undefined : yield* Outage.make(provider.url);
  if (outage !== undefined && fault.away === "at_break") leave = outage.leave(awayMs);
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "agents-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true, maxRetries: 3 })),
  );
  const environment = { ...environmentOf(folder), ...extra };
  const url = outage?.url ?? provider.url;
  const second = fault.away === "dead" ? provider.url : undefined;
  const origin = way === "direct" ? url : yield* startGateway({ url, second }, way, fault, folder, environment);
  if (outage !== undefined && fault.away !== "at_break") {
    // The gateway must have seen the path work before it goes away.
    yield* Effect.promise(() => fetch(`${origin}/v1/models`).then((response) => response.text()));
    yield* outage.leave(fault.away === "dead" ? deadMs : awayMs);
  }
  const place: Seat = {
    origin,
    bin: join(folder, "bin"),
    baseUrl: agent.protocol.startsWith("openai") ? `${origin}/v1` : origin,
    home: join(folder, "home"),
    work: join(folder, "work"),
    modules,
    ...(fault.measure === "held" ? { patienceMs } : {}),
  };
  const prompt = `Do your task: ${fault.title}.`;
  const ended = yield* Effect.promise(() => runAgent(agent, place, prompt, environment, limitOf(fault, way)));
  yield* provider
    .until((rows) => (rows.some(({ outcome }) => outcome === "open") ? undefined : true))
    .pipe(Effect.timeoutOption(logMs));
  const said = agent.read(ended);
  const cause =
    fault.measure === "continue" && way !== "direct" ? yield* Effect.promise(() => causeOf(origin)) : undefined;
  if (process.env[traceVariable] !== undefined) console.error(ended, said, yield* provider.log);
  return judge(fault, {
    text: said.text,
    error: said.error,
    ...ended,
    gateway: way !== "direct",
    cause,
    marks: marksIn(place.work),
    // Without the request that tests the path before the turn.
    log: (yield* provider.log).filter(({ method, script }) => script === "" && method === "POST"),
  });
});

/** Starts `stream-recovery serve` in front of a provider, for one turn only, because the gateway's memory must not affect another turn. */
const startGateway = (
  { second, url }: { readonly url: string; readonly second: string | undefined },
  reveal: Exclude<Way, "direct">,
  { measure }: Fault,
  cwd: string,
  env: Readonly<Record<string, string>>,
) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const upstreams = ["--openai-url", `${url}/v1`, "--anthropic-url", url, "--gemini-url", url];
      const file = join(cwd, "gateway.json");
      const configuration =
        measure === "held" ? impatient : second === undefined ? undefined : makeSecondRouteConfig(second);
      if (configuration !== undefined) await writeFile(file, JSON.stringify(configuration));
      const waiting = configuration === undefined ? [] : ["--config", file];
      const args = [
        gateway,
        "serve",
        "--port",
        "0",
        "--db",
        "memory",
        ...(reveal === "on_complete" ? ["--reveal", reveal] : []),
        ...(measure === "continue" ? ["--continue-text", "auto"] : []),
        ...waiting,
        ...upstreams,
      ];
      const started = { command: process.execPath, args: ["--no-warnings", ...args], cwd };
      return startBackground({ ...started, env: { ...env, NODE_COMPILE_CACHE: compiled } }, gatewayMs);
    }),
    ({ stop }) => Effect.promise(stop),
  ).pipe(Effect.map(({ firstLine }) => firstLine.replace(/^listening on /, "").trim()));

const causeOf = async (origin: string) => findCause(await (await fetch(`${origin}/metrics`)).text());

/** A configuration that expects every client to have little patience. */
const impatient = {
  comment_ms: noOpMs,
  clients: Object.fromEntries([...clientRows, unknownRow].map(({ name }) => [name, { patience_ms: noOpMs }])),
};

/** A configuration with a second route for each upstream, which takes the client's own credential. */
const makeSecondRouteConfig = (url: string) => ({
  upstreams: {
    "second-openai": { url: `${url}/v1` },
    "second-anthropic": { url },
    "second-gemini": { url },
  },
  routes: Object.fromEntries(
    ["openai", "anthropic", "gemini"].map((name) => [name, [{ id: `second-${name}`, upstream: `second-${name}` }]]),
  ),
});

const limitOf = ({ measure, title }: Fault, way: Way): number => {
  if (measure !== "always") return turnMs;
  if (way === "direct") return endlessMs;
  return title === "429" ? refusedMs : turnMs;
};

/** A place with everything that the setup line needs. */
interface Seat extends Place {
  readonly origin: string;
  /** The folder of the programs that the setup line calls. */
  readonly bin: string;
  /** The folder in which the agents are installed. */
  readonly modules: string;
}

const runAgent = async (
  agent: Agent,
  place: Seat,
  prompt: string,
  environment: Readonly<Record<string, string>>,
  limitMs: number,
): Promise<Ended> => {
  const { args, env, files } = agent.launch(place, prompt);
  for (const folder of [place.home, place.work, place.bin]) await mkdir(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  await writeFile(join(place.bin, agent.program), startScript(agent.command(place.modules)), { mode: 0o755 });
  const line = `${agent.setup.replaceAll(gatewayOrigin, place.origin)} "$@"`;
  const path = [place.bin, environment.PATH].join(delimiter);
  const what = { command: "/bin/sh", args: ["-c", line, "sh", ...args], cwd: place.work };
  return run({ ...what, env: { ...environment, ...env, PATH: path } }, limitMs);
};

/** A start script for a program under the name that the setup line uses. */
const startScript = (command: ReadonlyArray<string>): string =>
  `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`;

/** An environment without the user's keys, configuration and history. */
const environmentOf = (folder: string): Readonly<Record<string, string>> => {
  const home = join(folder, "home");
  const system = ["/usr/local/bin", "/usr/bin", "/bin"];
  return {
    PATH: [dirname(process.execPath), ...system].join(delimiter),
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    XDG_STATE_HOME: join(home, ".local", "state"),
    XDG_CACHE_HOME: join(home, ".cache"),
    TMPDIR: tmpdir(),
    LANG: "C.UTF-8",
    TERM: "dumb",
    NO_COLOR: "1",
  };
};

const marksIn = (work: string): ReadonlyArray<string> => {
  const file = join(work, marksFile);
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
};
