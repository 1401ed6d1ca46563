/**
 * Recovery after a crash: a first process dies while its tool runs, and this one takes its run up from the store. The tool itself reports
 * that the payment was made, so it is not made twice.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, Layer, Stream } from "effect";
import {
  type AttemptContext,
  Observation,
  RunRecorder,
  StreamProcessor,
  ToolGuard,
  UserDecisions,
} from "effect-stream-recovery";
import { SqlRunRecorder } from "effect-stream-recovery/sqlite";

const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "crash-"));
const paid = join(folder, "paid.txt");
const call = { choice: 0, ordinal: 0, id: "call_1", tool: "pay", executor: "runtime", phase: "ready" } as const;

// Your provider: it calls the tool. Asked to continue with the outcome of the call, it ends.
const attempt = () => Stream.concat(Stream.make("[pay]"), Stream.never);
const canContinue = ({ calls }: AttemptContext) => Stream.make(`The tool: ${calls[0]?.outcome}`, "[end]");
const observe = (part: string) => {
  if (part === "[pay]") return Observation.calls([call]);
  return part === "[end]" ? Observation.terminal("stop") : Observation.text(part.length);
};

const program = Effect.gen(function* () {
  const processor = yield* StreamProcessor;
  const work = Effect.andThen(
    Effect.sync(() => appendFileSync(paid, "42 EUR\n")),
    Effect.never, // the process dies before the tool returns
  );
  const verify = () => Effect.sync(() => (existsSync(paid) ? ("it_ran" as const) : ("it_did_not_run" as const)));
  const pay = (yield* ToolGuard).mutating("pay", () => work, { verify });
  const transcript = "pay the invoice"; // only its digest is kept: the process that takes up the run passes the same text
  const request = { provider: { id: "example" }, tools: [pay], attempt, canContinue, observe, transcript };
  const known = yield* (yield* RunRecorder).run("invoice");
  if (known?.state === "ended") return; // its calls: `CallOutcomes.of("invoice", tools)`
  const run =
    known === undefined
      ? processor.run({ ...request, runId: "invoice" })
      : processor.takeUp("invoice", { request, transcript });
  yield* Stream.runForEach(run, (event) => {
    if (event._tag !== "Part") return Effect.void;
    if (event.part.startsWith("The tool")) console.log(event.part);
    return Effect.forEach(event.calls ?? [], (it) => pay.run(it, undefined), { discard: true });
  });
});

if (process.argv[2] === undefined) {
  const first = spawn(process.execPath, [process.argv[1] ?? "", folder], { stdio: "inherit" });
  while (!existsSync(paid)) await new Promise((wake) => setTimeout(wake, 20));
  first.kill("SIGKILL");
  await once(first, "close");
  // Until its lease expires (15 s by default), a dead process counts as alive, and `takeUp` is refused.
  await new Promise((wake) => setTimeout(wake, 1_500));
}
const store = SqlRunRecorder.layerFile({ file: join(folder, "runs.db"), leaseMs: 1_000 });
const services = StreamProcessor.layer.pipe(
  Layer.provideMerge(UserDecisions.layerDurable()),
  Layer.provideMerge(store),
);
await Effect.runPromise(Effect.provide(program, services));
console.log(`paid: ${readFileSync(paid, "utf8").trim()}`);
