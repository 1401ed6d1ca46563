import { generate, generateCalm } from "./Generator.ts";
import { simulate } from "./Simulation.ts";
import { judge } from "./Judge.ts";
const [from, n, filter] = [Number(process.argv[2] ?? 20261121), Number(process.argv[3] ?? 1000), process.argv[4]];
const by = new Map<string, Array<number>>();
let broken = 0;
for (let s = from; s < from + n; s++) {
  const t = performance.now();
  const sc = (process.argv[5] === "calm" ? generateCalm : generate)(s);
  const v = judge(await simulate(sc));
  const d = performance.now() - t;
  if (d > 300) console.log("slow", s, Math.round(d));
  if (v.length === 0) continue;
  broken++;
  const axes = Object.entries(sc.world).filter(([, x]) => Array.isArray(x) ? x.length > 0 : x !== null && x !== "none").map(([k]) => k).concat(sc.consumer.kind === "impatient" ? ["impatient"] : []).join("+");
  const keys = new Set(v.map((x) => x.invariant + " " + x.found.replace(/\d+/g, "N").slice(0, 60)));
  for (const k of keys) { const key = `${k} [${axes}]`; by.set(key, [...(by.get(key) ?? []), s]); }
}
console.log(broken, "broken of", n);
for (const [k, s] of [...by].sort((a, b) => b[1].length - a[1].length)) if (filter === undefined || k.includes(filter)) console.log(String(s.length).padStart(4), k, s.slice(0, 4).join(" "));
process.exit(0);
