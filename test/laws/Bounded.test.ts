/** Law L11: every buffer, list, delay, attempt and record has a named limit with a unit. */
import { globSync, readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Limits from "../../src/domain/Limits.ts";
import { attemptsMax } from "../../src/recorder/RunRecord.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import * as S from "../runtime/Scripted.ts";

const root = new URL("../..", import.meta.url).pathname;

/** A named limit: an exported number whose name says that it is a limit. */
interface Limit {
  readonly file: string;
  readonly name: string;
  readonly doc: string;
}

/** Matches a plain number or an expression of numbers; not a function and not a schema. */
const exported = /((?:\/\*\*(?:[^*]|\*(?!\/))*\*\/\n)?)export const (\w+) = ([\d_.*+ \w]+);/g;

const limits: ReadonlyArray<Limit> = globSync("src/**/*.ts", { cwd: root }).flatMap((file) =>
  [...readFileSync(`${root}/${file}`, "utf8").matchAll(exported)].flatMap(([, doc = "", name = "", value = ""]) =>
    /\d/.test(value) && /(Max|Ms|Bytes|PerSecond)(Default)?$|Max[A-Z]\w*$/.test(name) ? [{ file, name, doc }] : [],
  ),
);

/** Matches a unit of time or size, or the thing that is counted. */
const units =
  /\b(ms|milliseconds?|seconds?|s|bytes?|UTF-16|code units|characters?|most|maximum|at most|how (long|many)|longest|number of|counts?|within|between|per second|once|time|limit|rows?|tokens?|entries|providers|retries|deepest|first|last|runs|parts|wait|hosts)\b/i;

describe("L11 bounded", () => {
  it("the list of limits is not empty", () => {
    assert.isAbove(limits.length, 30);
    for (const name of ["heldBytesMax", "closeGraceMs", "evidenceLastMax", "attemptsMax", "tokensMax", "ledgersMax"]) {
      assert.isTrue(
        limits.some((limit) => limit.name === name),
        name,
      );
    }
  });

  it("every limit has a docstring that names the limited thing and its unit", () => {
    const bare = limits.filter(
      ({ doc, name }) => doc === "" || !(units.test(doc) || /(Ms|Bytes|Characters)/.test(name)),
    );
    assert.deepStrictEqual(
      bare.map(({ file, name }) => `${file}: ${name}`),
      [],
    );
  });

  it("a list that lives as long as a run or a process has a limit in its own file or in Limits.ts", () => {
    const unbounded = globSync("src/{runtime,recorder,policy,facts}/**/*.ts", { cwd: root }).filter((file) => {
      const text = readFileSync(`${root}/${file}`, "utf8");
      const keeps = /^ {2}(?:readonly )?#\w+(?:: Array<[^=]*)? = (?:\[\]|new (?:Map|Set)\b)/m.test(text);
      return keeps && !/\b\w+Max\b|\bbounded\b|\bbound\b|at most/i.test(text);
    });
    assert.deepStrictEqual(unbounded, []);
  });

  it.effect("a person who retries forever leaves a record of bounded size", () =>
    Effect.gen(function* () {
      const attempts = attemptsMax * 3;
      const broken = [S.start, S.text("half"), S.wait(1), S.reset];
      const scripts = [...Array.from({ length: attempts }, () => broken), [S.start, S.done]];
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(S.scripted(...scripts), { runId: "r" })));
      assert.strictEqual(seen.lines.at(-1), "completed");
      const record = yield* S.recordOf("r");
      assert.strictEqual(record.attempts.length, attemptsMax);
      assert.strictEqual(record.attempts.length + record.attempts_omitted, attempts + 1);
      assert.isAtMost(record.incidents.length, Limits.incidentsMax);
      assert.strictEqual(record.incidents.length + record.incidents_omitted, attempts);
      assert.isAtMost(record.questions.length, Limits.incidentsMax);
      assert.isAtMost(record.evidence.first.length, Limits.evidenceFirstMax);
      assert.isAtMost(record.evidence.last.length, Limits.evidenceLastMax);
    }).pipe(Effect.provide(S.processor(["retry"]))),
  );

  it.effect("a model that calls without end leaves a ledger of bounded size", () =>
    Effect.gen(function* () {
      const calls = Array.from({ length: Limits.toolRowsMax * 2 }, (_, ordinal) => S.callReady("bash", ordinal));
      const tools = [{ name: "bash", executor: "runtime", effect: "mutating" } as const];
      const run = S.options(S.scripted([S.start, ...calls, S.done]), { runId: "r", tools });
      yield* S.played((yield* StreamProcessor).run(run));
      const facts = (yield* S.recordOf("r")).attempts[0]?.facts;
      assert.isAtMost(facts?.tools.length ?? Number.POSITIVE_INFINITY, Limits.toolRowsMax + 1);
      assert.isAbove(facts?.counters.rows_folded ?? 0, 0);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("forty thousand deltas leave no more evidence than forty", () =>
    Effect.gen(function* () {
      const deltas = (count: number) => [S.start, ...Array.from({ length: count }, () => S.text("x")), S.done];
      const processor = yield* StreamProcessor;
      yield* S.played(processor.run(S.options(S.scripted(deltas(40)), { runId: "short" })));
      yield* S.played(processor.run(S.options(S.scripted(deltas(40_000)), { runId: "long" })));
      const size = (record: {
        readonly evidence: { readonly first: ReadonlyArray<unknown>; readonly last: ReadonlyArray<unknown> };
      }) => record.evidence.first.length + record.evidence.last.length;
      const [short, long] = [yield* S.recordOf("short"), yield* S.recordOf("long")];
      assert.strictEqual(size(long), size(short));
      assert.isAtMost(size(long), Limits.evidenceFirstMax + Limits.evidenceLastMax);
      assert.strictEqual(long.attempts[0]?.facts.counters.parts, 40_002);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a marker in every part leaves bounded evidence, and the omitted rest is counted", () =>
    Effect.gen(function* () {
      const markers = Array.from({ length: 500 }, () => S.done);
      const processor = yield* StreamProcessor;
      yield* S.played(processor.run(S.options(S.scripted([S.start, ...markers, S.text("x")]), { runId: "r" })));
      const { evidence } = yield* S.recordOf("r");
      assert.isAtMost(evidence.first.length + evidence.last.length, Limits.evidenceFirstMax + Limits.evidenceLastMax);
      assert.isAbove(evidence.omitted, 400);
    }).pipe(Effect.provide(S.processor())),
  );

  it("a label is cut to its limit, whatever a provider sends", () => {
    assert.strictEqual(Limits.label("x".repeat(100_000)).length, Limits.labelCharactersMax);
  });
});
