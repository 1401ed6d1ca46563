import { playStory } from "./Campaign.ts";

const [from, n, step] = [Number(process.argv[2]), Number(process.argv[3]), Number(process.argv[4] ?? 8)];
const by = new Map<string, Array<number>>();
let broken = 0;
let comp = 0;
let res = 0;
for (let s = from; s < from + n * step; s += step) {
  const t = performance.now();
  const j = await playStory(s);
  if (performance.now() - t > 600) console.log("slow", s, Math.round(performance.now() - t));
  if (j.completed) comp++;
  if (j.resumes > 0) res++;
  if (j.problems.length) broken++;
  for (const k of new Set(j.problems.map((x) => x.replace(/\d+/g, "N").slice(0, 90))))
    by.set(k, [...(by.get(k) ?? []), s]);
  if (process.argv[5]) console.log([...j.problems, j.story, ...j.log].join("\n"));
}
console.log(broken, "broken of", n, "completed", comp, "resumed", res);
for (const [k, s] of [...by].sort((a, b) => b[1].length - a[1].length))
  console.log(String(s.length).padStart(4), k, s.slice(0, 5).join(" "));
process.exit(0);
