/**
 * `npm run release`: publishes this version with provenance, the registry's signed statement of the commit and the job that built it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const help = `Usage: npm run release -- [--dry-run]

Publishes the version of package.json from a CI job that may request an identity token (permission \`id-token: write\`): checks that the tag
v$VERSION names this commit, that nothing is uncommitted, and that the manifest names its repository, then checks the packed package and
runs \`npm publish --provenance\`. Play \`npm run release-check\` before you set the tag.

  --dry-run   checks everything that can be checked outside of such a job, and publishes nothing
  --help      prints this text

Exit code: 0 published, or nothing stands against it; 1 not published, with every reason.`;

const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({ options: { "dry-run": { type: "boolean" }, help: { type: "boolean", short: "h" } } });
const isDry = values["dry-run"] === true;

const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();

/** Lists what stands against publishing. */
const obstacles = (): ReadonlyArray<string> => {
  const { repository, version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const tags = git("tag", "--points-at", "HEAD").split("\n");
  // The registry refuses a provenance whose repository is not that of the manifest.
  const url = typeof repository === "string" ? repository : repository?.url;
  return [
    ...(git("status", "--porcelain") === "" ? [] : ["there are uncommitted changes"]),
    ...(tags.includes(`v${version}`)
      ? []
      : [`expected the tag v${version} at this commit, got ${tags.join(", ") || "none"}`]),
    ...(typeof url === "string"
      ? []
      : ["package.json: expected `repository`, the address that provenance names, got none"]),
    ...(isDry || process.env.ACTIONS_ID_TOKEN_REQUEST_URL !== undefined || process.env.SIGSTORE_ID_TOKEN !== undefined
      ? []
      : ["expected a CI job with an identity token (ACTIONS_ID_TOKEN_REQUEST_URL or SIGSTORE_ID_TOKEN), got none"]),
  ];
};

const run = (command: string, ...args: ReadonlyArray<string>): boolean =>
  spawnSync(command, args, { cwd: root, stdio: "inherit" }).status === 0;

const main = (): number => {
  const found = obstacles();
  for (const line of found) console.error(`release: ${line}`);
  if (found.length > 0) return 1;
  if (!run(process.execPath, "scripts/package-check.ts")) return 1;
  return run("npm", "publish", "--provenance", "--access", "public", ...(isDry ? ["--dry-run"] : [])) ? 0 : 1;
};

if (values.help === true) console.log(help);
else process.exitCode = main();
