/**
 * Plays schedules of leaving, attaching and breaking that a seed draws.
 */
import { assert } from "@effect/vitest";
import { Effect } from "effect";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
import * as S from "../../runtime/Scripted.ts";
import { seeded } from "../../Seeded.ts";
import * as R from "./Readers.ts";

/** The names of the parts that steps give. */
export const names = (steps: ReadonlyArray<S.Step>): ReadonlyArray<string> =>
  steps.flatMap((step) => ("part" in step ? [step.part.name] : "parts" in step ? step.parts.map((it) => it.name) : []));

/** Plays so many seeds, one after the other. */
export const leavesAnywhere = (first: number, seeds: number) =>
  Effect.forEach(
    Array.from({ length: seeds }, (_, at) => first + at),
    (seed) => simulated(seed),
    { discard: true },
  );

const simulated = (seed: number) =>
  Effect.gen(function* () {
    const random = seeded(seed);
    const below = (n: number) => Math.floor(random() * n);
    const step = (): S.Step =>
      [
        S.text("t"),
        S.text("u"),
        S.wait(100 * below(20)),
        S.reasoning("r"),
        S.ping,
        S.together(S.text("v"), S.text("w")),
      ][below(6)] ?? S.ping;
    const steps = () => [S.start, ...Array.from({ length: below(12) }, step)];
    const breaks = below(3);
    const script = [...Array.from({ length: breaks }, () => [...steps(), S.reset]), [...steps(), S.text("z"), S.done]];
    const provider = S.scripted(...script);
    const discardable = random() < 0.5;
    const options = S.options(provider, { runId: "r", linger: Linger.of(3_600_000), discardable });
    const processor = yield* StreamProcessor;
    let reader = yield* R.reads(processor.run(options), 1 + below(20));
    let had: R.Reading["events"] = [];
    const seen = new Set<string>();
    const look = () => {
      for (const event of reader.events)
        if (event._tag === "Part" && event.part.says.shows === "text") seen.add(String(event.attempt));
    };
    for (let turn = 0; turn < 12; turn += 1) {
      yield* R.passed(100 * below(15));
      look();
      if (reader.end() === undefined && random() < 0.5) yield* reader.leave;
      if (reader.end() === undefined && random() < 0.7) continue;
      const all = [...had, ...reader.events];
      const isFresh = random() < 0.3;
      had = isFresh ? [] : all;
      reader = yield* R.reads(
        processor.attach<S.ScriptedPart>(
          "r",
          R.after(had) === undefined ? {} : { after: R.after(had) ?? { parts: 0 } },
        ),
        1 + below(20),
      );
    }
    had = [...had, ...reader.events];
    look();
    if (reader.end() === undefined) yield* reader.leave;
    const last = yield* R.reads(
      processor.attach<S.ScriptedPart>("r", R.after(had) === undefined ? {} : { after: R.after(had) ?? { parts: 0 } }),
    );
    for (let turn = 0; turn < 40 && last.end() === undefined; turn += 1) yield* R.passed(2_000);
    const record = yield* S.recordOf("r");
    const context = `seed ${seed}: ${record.end?.state} ${record.end?.reason}`;
    const events = [...had, ...last.events];
    const parts = R.parts(events);
    assert.strictEqual(new Set(parts).size, parts.length, `${context}: no part twice`);
    for (const [at, own] of script.entries()) {
      const mine = parts.filter((it) => it.startsWith(`${at + 1}.`)).map((it) => it.slice(it.indexOf(" ") + 1));
      assert.deepStrictEqual(mine, names(own).slice(0, mine.length), `${context}: attempt ${at + 1} in order`);
    }
    if (record.end?.state === "completed") {
      const attempt = provider.attempts.length;
      assert.deepStrictEqual(R.kept(events), names(script[attempt - 1] ?? []), context);
    } else assert.isFalse(discardable, `${context}: a caller that can discard loses nothing`);
    for (const { attempt, facts } of record.incidents)
      if (facts.shown === "nothing") assert.isFalse(seen.has(String(attempt)), `${context}: shown is true`);
    assert.isAtMost(provider.attempts.length, script.length, context);
  }).pipe(Effect.provide(S.processor(["retry"])));
