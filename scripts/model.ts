/**
 * `npm run model`: simulates the model of ownership, and each control that lacks one guard. Exit code 1 if the model is violated or a
 * control is not.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { controls, drawTraces, replayed, simulate, whole } from "./model/Model.ts";

/** Traces that the tests replay against the stores. */
const traces = new URL("../test/fixtures/model/ownership.json", import.meta.url);

const { values } = parseArgs({
  options: {
    samples: { type: "string", default: "2000" },
    seed: { type: "string" },
    traces: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const samples = Number(values.samples);
const isGood = samples > 0 && (values.seed === undefined || /^0x[0-9a-f]+$/.test(values.seed));
if (values.help || !isGood) {
  console.log(`npm run model -- [--samples 2000] [--seed 0xN] [--traces]

  --samples N   runs of the model, and at most of each control (default 2000)
  --seed 0xN    seed of the first run (default: a new one, which is printed)
  --traces      instead: draws the traces in test/fixtures/model that tests replay against the stores`);
  process.exit(values.help ? 0 : 2);
}

if (values.traces) {
  const drawn = drawTraces(replayed.count, replayed.seed);
  writeFileSync(traces, `[\n${drawn.map((trace) => JSON.stringify(trace)).join(",\n")}\n]\n`);
  console.log(`${drawn.length} traces, ${drawn.flat().length} operations`);
} else {
  let isGoodModel = true;
  const { holds, seed, text } = simulate(whole, { samples, seed: values.seed });
  if (!holds) {
    isGoodModel = false;
    console.log(text);
  }
  console.log(`${whole}: ${holds ? `no violation in ${samples} runs` : "VIOLATED"}, seed ${seed}`);
  for (const control of Object.keys(controls)) {
    const found = simulate(control, { samples, seed: values.seed });
    if (found.holds) isGoodModel = false;
    console.log(`${control}: ${found.holds ? "NOT VIOLATED" : "violated, as it must be"}, seed ${found.seed}`);
  }
  process.exitCode = isGoodModel ? 0 : 1;
}
