import { generate } from "./Generator.ts"; import { simulate } from "./Simulation.ts"; import { judge } from "./Judge.ts";
const n = Number(process.argv[2] ?? 20), from = Number(process.argv[3] ?? 1);
const t = performance.now(); const by = new Map<string, number[]>(); const ex = new Map<string,string>();
for (let seed = from; seed < from + n; seed++) {
  const s = generate(seed);
  if (process.argv[4] !== "all" && (s.recorder.dies.length || s.classifyThrows || s.answers.some(a => a.choice === "dies"))) continue;
  const t0 = performance.now();
  if (process.env.V) console.log("seed", seed); const trace = await simulate(s);
  if (performance.now() - t0 > 300) console.log("slow", seed, performance.now() - t0);
  for (const v of judge(trace)) { const k = v.invariant + " " + v.found.replace(/[\d.]+/g, "N").slice(0, 60); by.set(k, [...(by.get(k) ?? []), seed]); if (!ex.has(k)) ex.set(k, v.found.slice(0, 300)); }
}
for (const [k, v] of by) console.log(v.length, k, [...new Set(v)].slice(0, 8).join(" "), "\n    ", ex.get(k));
console.log(((performance.now() - t) / n).toFixed(2), "ms a run");
