/**
 * `npm run scoreboard`: SDKs behind gateways and proxies, against a provider that breaks. The kit judges what the SDK shows, runs and reports.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Effect, Schema } from "effect";
import { ConformanceScoreboard } from "../../src/testing/index.ts";
import { installPeers } from "../bench/gateway/Contenders.ts";
import { write } from "../bench/Report.ts";
import { freePort } from "../programs/FreePort.ts";
import { end, type GatewayUnderTest, gateways, makeFolder, type Place, start } from "./Gateways.ts";
import { markdown, type Played, unsafe } from "./Table.ts";

const help = `Usage: npm run scoreboard -- [options]

Plays every fault of the conformance kit with openai, @anthropic-ai/sdk and AI SDK behind:
${gateways.map(({ name }) => name).join("; ")}.
Takes about ten minutes. To test your own gateway, see docs/scoreboard.md.

  --only NAME      only gateways whose name contains NAME
  --sdk NAME       only openai, anthropic or ai-sdk
  --install        installs the gateways from npm first
  --raw DIR        folder for the raw results and logs; default: a new temporary folder, which is printed
  --write          also writes the tables to docs/scoreboard.md
  --help           prints this text

Exit code: 0 nothing unsafe happened behind this gateway; 1 something did, and is named.`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    sdk: { type: "string" },
    install: { type: "boolean" },
    raw: { type: "string" },
    write: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

/** The SDKs, with the protocols that they are played in. Gemini has no path of its own in most gateways. */
const sdks = {
  openai: ["openai-chat", "openai-responses"],
  anthropic: ["anthropic-messages"],
  "ai-sdk": ["openai-chat", "openai-responses", "anthropic-messages"],
} as const;

/** Length of the healthy silence, in milliseconds. It is shorter than the gateways' timeouts. */
const silenceMs = 3_000;

/** Number of gateways that are played at the same time. */
const concurrency = 4;

const cli = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Tuple([ConformanceScoreboard])));

/** Plays one protocol of an SDK, in a process of its own, so that no SDK shares connections with another. */
const play = async (
  sdk: string,
  protocol: string,
  through: ReadonlyArray<string>,
  raw: string,
): Promise<Played["board"]> => {
  const args = ["--no-warnings", cli, "conformance", sdk, "--without-us", "--json", "--protocol", protocol];
  const child = spawn(process.execPath, [...args, "--silence", String(silenceMs), ...through], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let out = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += String(chunk);
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  writeFileSync(raw, out);
  if (code !== 0) throw new Error(`conformance ${sdk} ${protocol} ended with ${code}`);
  return decode(out)[0];
};

const playGateway = async (gateway: GatewayUnderTest, folder: string): Promise<ReadonlyArray<Played>> => {
  const port = await Effect.runPromise(freePort);
  const upstreamPort = await Effect.runPromise(freePort);
  const place: Place = { port, upstreamPort, folder: makeFolder(folder) };
  const played: Array<Played> = [];
  for (const [sdk, protocols] of Object.entries(sdks))
    for (const protocol of protocols) {
      if (values.sdk !== undefined && values.sdk !== sdk) continue;
      const name = `${gateway.name} ${sdk} ${protocol}`;
      const raw = join(place.folder, `${sdk}-${protocol}.json`);
      // A new process for each column, so that breaks of one column do not count against the retries of the next.
      const command = gateway.command?.(place);
      const started = command === undefined ? undefined : await start(command, place);
      const headers = gateway.headers?.(protocol, `http://127.0.0.1:${upstreamPort}`) ?? [];
      const through =
        started === undefined
          ? []
          : [
              ...["--through", `http://127.0.0.1:${port}`, "--upstream-port", String(upstreamPort)],
              ...headers.flatMap((header) => ["--header", header]),
            ];
      const board = await play(sdk, protocol, through, raw);
      if (started !== undefined) await end(started);
      const { recovered, cells } = board.totals;
      console.error(`${name}: ${recovered} of ${cells} recovered`);
      played.push({ gateway: gateway.name, sdk, protocol, board });
    }
  return played;
};

const main = async (): Promise<number> => {
  if (values.install === true) installPeers();
  const folder = values.raw ?? mkdtempSync(join(tmpdir(), "scoreboard-"));
  mkdirSync(folder, { recursive: true });
  const chosen = gateways.filter(({ name }) => name.includes(values.only ?? ""));
  const probe: Place = { port: 1, upstreamPort: 2, folder };
  const isInstalled = ({ command }: GatewayUnderTest) => command === undefined || command(probe) !== undefined;
  const missing = chosen.filter((gateway) => !isInstalled(gateway));
  for (const { install, name } of missing) console.error(`${name} is not installed: ${install}`);
  // Turns mostly wait, so several gateways are played at the same time, each with its own provider.
  const each = await Effect.runPromise(
    Effect.forEach(chosen.filter(isInstalled), (it) => Effect.promise(() => playGateway(it, folder)), { concurrency }),
  );
  const played = each.flat();
  const text = markdown(
    played,
    missing.map(({ name }) => name),
  );
  console.log(text);
  console.error(`raw results and logs: ${folder}`);
  if (values.write === true) write(new URL("../../docs/scoreboard.md", import.meta.url), "scoreboard", text);
  const wrong = unsafe(played.filter(({ gateway }) => gateway.startsWith("this gateway")));
  for (const line of wrong) console.error(`scoreboard: ${line}`);
  return wrong.length === 0 ? 0 : 1;
};

if (values.help === true) console.log(help);
else process.exitCode = await main();
