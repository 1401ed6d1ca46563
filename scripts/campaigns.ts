/**
 * `npm run campaigns -- --times 4`: runs the campaigns of the long suite with a multiple of their seeds. CI runs each with its own seeds.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));

const usage = `npm run campaigns -- [--times 4]

Runs each seed campaign of the long suite with N times its seeds, and names each seed that fails.
`;

const { values } = parseArgs({
  options: { times: { type: "string", default: "4" }, help: { type: "boolean", default: false } },
});
if (values.help || !(Number(values.times) >= 1)) {
  console.log(usage);
  process.exit(values.help ? 0 : 2);
}

const args = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts", "Campaign.test"];
const env = { ...process.env, CAMPAIGN_TIMES: values.times };
const { error, status } = spawnSync(process.execPath, args, { cwd: root, env, stdio: "inherit" });
if (error !== undefined) throw error;
process.exit(status ?? 1);
