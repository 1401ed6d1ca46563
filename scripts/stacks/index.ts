/**
 * `npm run stacks`: the ending of a broken response in common HTTP stacks, directly and behind proxies.
 *
 * Each stack reads 2 MB slowly. The table shows the error it reported and the bytes it lost, for each ending.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { endings, serve } from "./Endings.ts";
import { hasCommand, install } from "./Packages.ts";
import { needs, startProxies } from "./Proxies.ts";
import { closeBrowser, installedStacks, type Stack, stacks } from "./Stacks.ts";
import { markdown, write, wrong } from "./StackTable.ts";
import { play, type Trial } from "./Trials.ts";

const help = `Usage: npm run stacks -- [options]

Reads a broken response of 2 MB slowly with each HTTP stack: ${stacks.map(({ name }) => name).join("; ")}.
As root on a Debian, installs missing stacks and proxies from Debian's packages.

  --only NAME      only stacks whose name contains NAME
  --no-install     plays only what is installed
  --write          also writes the table to docs/agents.md
  --help           prints this text

Exit code: 0 every stack reports an error for the gateway's ending, or cannot for a known reason, and none loses a byte; 1 some stack
does not, and is named.`;

/** Number of concurrent plays. */
const concurrency = 4;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    "no-install": { type: "boolean" },
    write: { type: "boolean" },
    help: { type: "boolean" },
  },
});

const main = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "stacks-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true })),
  );
  const everything = [...stacks.map((stack) => stack.needs), ...Object.values(needs)];
  const missing =
    values["no-install"] === true
      ? everything.filter((need) => !hasCommand(need)).flatMap(({ packages }) => packages)
      : install(everything);
  const played = installedStacks().filter(({ name }) => name.toLowerCase().includes((values.only ?? "").toLowerCase()));
  const served = yield* serve;
  const ports = yield* startProxies(served, folder);
  yield* Effect.forEach(new Set(played.map(({ prepare }) => prepare)), (prepare) =>
    Effect.promise(async () => prepare?.(folder)),
  );
  const trials = yield* Effect.forEach(
    [...ports].flatMap((way) => played.flatMap((stack: Stack) => endings.map((ending) => ({ way, stack, ending })))),
    ({ ending, stack, way }) => Effect.promise((): Promise<Trial> => play(stack, way, ending, served, folder)),
    { concurrency },
  );
  yield* Effect.promise(closeBrowser);
  const text = markdown(trials, [...new Set(missing)]);
  console.log(text);
  if (values.write === true) write(new URL("../../docs/agents.md", import.meta.url), text);
  const failed = wrong(trials);
  for (const line of failed) console.error(`stacks: the gateway's ending failed: ${line}`);
  return failed.length === 0 ? 0 : 1;
});

if (values.help === true) console.log(help);
else process.exitCode = await Effect.runPromise(Effect.scoped(main));
