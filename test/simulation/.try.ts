import { generate } from "/work/main/test/simulation/Generator.ts";
import { simulate } from "/work/main/test/simulation/Simulation.ts";
const n = Number(process.argv[2] ?? 20), from = Number(process.argv[3] ?? 1);
const t = performance.now();
let worst = 0;
for (let seed = from; seed < from + n; seed++) {
  const t0 = performance.now();
  const trace = await simulate(generate(seed));
  const took = performance.now() - t0;
  if (took > worst) { worst = took; console.log("slowest", seed, took.toFixed(1)); }
  if (!trace.ended || !trace.closed) console.log(seed, "ended", trace.ended, "closed", trace.closed, trace.journal.length);
}
console.log(((performance.now() - t) / n).toFixed(2), "ms a run");
