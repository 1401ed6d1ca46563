import { Effect, Context, Layer } from "effect";
import { mkdtempSync } from "node:fs";
import { RunRecorder } from "./src/recorder/RunRecorder.ts";
import * as RunStore from "./src/recorder/store/RunStore.ts";
import * as E from "./test/recorder/Entries.ts";
import { readFileSync } from "node:fs";
const pg = readFileSync("/tmp/pgdev.out","utf8").trim();
const kind = process.argv[2]; const conc = Number(process.argv[3] ?? 200); const total = Number(process.argv[4] ?? 4000);
const file = kind === "pg" ? pg : mkdtempSync("/tmp/bench-") + "/runs.db";
const prog = Effect.gen(function* () {
  const recorder = Context.get(yield* Layer.build(RunStore.layer({ file, synchronous: "normal", retention: false })), RunRecorder);
  const one = (id: string) => Effect.gen(function* () {
    yield* recorder.write(id, [E.begun(id), E.attempt(1)]);
    yield* recorder.write(id, [E.raised(1, { shown: "text", progress: "output" })]);
    yield* recorder.write(id, [E.ended()]);
  });
  const round = (n: number, pre: string) => Effect.forEach(Array.from({ length: n }, (_, i) => `${pre}-${i}`), one, { concurrency: conc, discard: true });
  yield* round(1000, "warm" + Date.now());
  const cpu = process.cpuUsage(), t = performance.now();
  yield* round(total, "run" + Date.now());
  const used = process.cpuUsage(cpu), ms = performance.now() - t;
  console.log(kind, { us_a_run: Math.round((used.user + used.system) / total), runs_s: Math.round(total / ms * 1000) });
});
Effect.runPromise(Effect.scoped(prog) as any).then(() => process.exit(0), (e) => { console.log(e); process.exit(2); });
