/**
 * Replays traces of the model of ownership (`scripts/model/Ownership.qnt`) against a store. Each operation must have the outcome that the
 * model says, and leave the records that the model says.
 */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema, type Scope } from "effect";
import { Step } from "../../../scripts/model/Model.ts";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { Entry, RunRecord } from "../../../src/recorder/RunRecord.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "./Bench.ts";

const file = new URL("../../fixtures/model/ownership.json", import.meta.url);
const traces = Schema.decodeUnknownSync(Schema.Array(Schema.Array(Step)))(JSON.parse(readFileSync(file, "utf8")));

type Refused = { readonly reason: string };
type Processes = (name: string) => Recorder;

/** What a process would write next in run "d": the model counts attempts, calls and questions, and the store needs their entries. */
class Draft {
  #facts = 0;
  #phase: "dispatched" | "settled" | undefined;

  raise(attempt: number, phase = this.#phase): Entry {
    this.#facts += 1;
    this.#phase = phase;
    return E.raised(attempt, this.#shown);
  }

  startAttempt(attempt: number): Entry {
    [this.#facts, this.#phase] = [0, undefined];
    return E.attempt(attempt, attempt === 1 ? "first" : "replay");
  }

  ask(attempt: number, revision: number): ReadonlyArray<Entry> {
    const facts = E.facts(this.#facts === 0 ? {} : this.#shown);
    return [E.opened("d", revision, { attempt, facts }), E.asked("d", revision)];
  }

  get #shown() {
    const tools = this.#phase === undefined ? [] : [E.call(this.#phase)];
    return { progress: "output", shown: "text", text_through: this.#facts, tools } as const;
  }
}

const volatile = (by: string): Entry => {
  const start = E.begun("v");
  return start._tag === "RunStarted" ? { ...start, volatile: true, started_by: `${by}.1` } : start;
};

/** Carries out an operation of the model. */
const perform = (
  [op, by, about, outcome, , attempts, , answer, revision]: Step,
  draft: Draft,
  at: Processes,
): Effect.Effect<unknown, Refused> => {
  const it = at(by);
  // A refused write has changed nothing in the model, so it is a write of what came next for its process.
  const refused = outcome !== "ok";
  switch (op) {
    case "start":
      return it.write("d", [E.begun("d"), draft.startAttempt(attempts)]);
    case "attempt":
      return it.write("d", [refused ? E.attempt(attempts + 1, "replay") : draft.startAttempt(attempts)]);
    case "dispatch":
      return it.write("d", [refused ? late(attempts) : draft.raise(attempts, "dispatched")]);
    case "settle":
      return it.write("d", [refused ? late(attempts) : draft.raise(attempts, "settled")]);
    case "grow":
      return it.write("d", [draft.raise(attempts)]);
    case "ask":
      return it.write("d", draft.ask(attempts, refused ? revision + 1 : revision));
    case "answer":
      // Safe: the model draws its answers from the choices of `Entries.asked`.
      return it.answer({ run_id: "d", revision, choice: about as Choice, by: "person" });
    case "carry_out":
      if (refused) return it.write("d", [E.attempt(attempts + 1, "replay")]);
      return it.write("d", [
        answer === "retry" ? draft.startAttempt(attempts) : E.ended({ state: "stopped", reason: "text_shown" }),
      ]);
    case "park":
      return it.write("d", [E.parked("interrupted")]);
    case "end":
      return it.write("d", [E.ended()]);
    case "claim":
      return Effect.andThen(it.claim("d"), it.write("d", [{ _tag: "RunResumed" }]));
    case "fence":
      return it.processEnded?.(about) ?? Effect.die(new Error("the store fences no process"));
    case "flush":
      return it.write("v", [
        ...(about.includes("start") ? [volatile(by), E.attempt(1)] : []),
        ...(about.includes("end") ? [E.ended()] : []),
      ]);
    case "sweep":
      return Effect.andThen(
        it.claim("v"),
        it.write("v", [E.ended({ state: "stopped", reason: "process_lost", assumed: true })]),
      );
    default:
      return Effect.die(new Error(`the model has an operation that no store has: ${op}`));
  }
};

/** A late write of facts, by a process that has lost the run. */
const late = (attempt: number): Entry => E.raised(attempt, { tools: [E.call("dispatched", { call: "0.9" })] });

const told = (record: RunRecord | undefined) => {
  if (record === undefined) return ["", 0, "none", "", 0];
  const question = record.questions.at(-1);
  const phase = record.attempts.at(-1)?.facts.tools[0]?.phase ?? "none";
  return [record.state, record.attempts.length, phase, question?.answer ?? "", question?.revision ?? 0];
};

/**
 * Declares the test of the traces over a store.
 *
 * @param open opens the recorders of three processes over an empty store
 * @param count traces to replay; default: all
 */
export const modelTraces = <F>(
  name: string,
  open: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Recorder>, F, Scope.Scope>,
  count = traces.length,
): void => {
  describe(`${name}, beside the model of ownership`, () => {
    it.live(`does what ${count} traces of the model say (L6, L7, L8)`, () =>
      Effect.forEach(traces.slice(0, count), (trace, nth) => Effect.scoped(replay(trace, `trace ${nth}`, open)), {
        discard: true,
      }),
    );
  });
};

const replay = <F>(
  trace: ReadonlyArray<Step>,
  title: string,
  open: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Recorder>, F, Scope.Scope>,
) =>
  Effect.gen(function* () {
    const names = ["a", "b", "c"];
    const recorders = yield* open(names);
    const at: Processes = (process) => {
      const found = recorders[names.indexOf(process)];
      if (found === undefined) throw new Error(`no process ${process}`);
      return found;
    };
    const draft = new Draft();
    for (const [nth, step] of trace.entries()) {
      const [op, by, , expected, ...runs] = step;
      const place = `${title}, operation ${nth + 1}: ${step.slice(0, 4).join(" ")}`;
      const outcome = yield* Effect.match(perform(step, draft, at), {
        onFailure: ({ reason }) => reason,
        onSuccess: () => "ok",
      });
      if (op !== "crash") assert.strictEqual(outcome, expected, place);
      const [d, v] = [yield* at(by).run("d"), yield* at(by).run("v")];
      const end = v?.end === undefined ? "" : v.end.assumed === true ? "assumed" : "own";
      assert.deepStrictEqual([...told(d), v?.state ?? "", end], runs, place);
    }
  });
