/**
 * `npm run fuzz`: looks for bytes for which a reader of foreign bytes breaks its property. Exit code 1 if some are found; they are then
 * in test/fixtures/fuzz, where tests repeat them.
 */
import { parseArgs } from "node:util";
import { fuzz, keep, keepFound } from "./fuzz/Fuzzing.ts";
import { targets } from "./fuzz/Targets.ts";

const { values } = parseArgs({
  options: {
    target: { type: "string" },
    inputs: { type: "string", default: "100000" },
    seed: { type: "string", default: String(1 + (process.pid % 1_000_000)) },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const [names, inputs, seed] = [Object.keys(targets), Number(values.inputs), Number(values.seed)];
const isGood =
  inputs > 0 && Number.isSafeInteger(seed) && (values.target === undefined || names.includes(values.target));
if (values.help || !isGood) {
  console.log(`npm run fuzz -- [--target NAME] [--inputs 100000] [--seed N] [--keep]

  --target NAME   one of ${names.join(", ")} (default: all)
  --inputs N      inputs to try per target (default 100000)
  --seed N        seed of the changes (default: a new one, which is printed)
  --keep          replaces the corpus in test/fixtures/fuzz by the fewest inputs that reach the same code`);
  process.exit(values.help ? 0 : 2);
}
for (const name of values.target === undefined ? names : [values.target]) {
  const began = performance.now();
  const { found, kept, places, tried } = await fuzz(name, { inputs, seed });
  const perSecond = Math.round((1_000 * tried) / (performance.now() - began));
  console.log(
    `${name}: seed ${seed}, ${tried} inputs (${perSecond}/s), ${places} places, ${kept.length} inputs reach them`,
  );
  if (values.keep && found === undefined) keep(name, kept);
  if (found === undefined) continue;
  process.exitCode = 1;
  console.log(`FAILED: ${keepFound(name, found.input)}`);
  console.log(JSON.stringify(Buffer.from(found.input).toString()).slice(0, 1_000));
  console.log(found.error);
}
