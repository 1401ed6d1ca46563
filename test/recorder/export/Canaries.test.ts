/**
 * Plants secrets, prompts and paths in every place of a record, and searches the export for them.
 */
import { assert, describe, it } from "@effect/vitest";
import { defaultBudget, fresh as freshRun } from "../../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../../src/domain/RunIncident.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { encode, exportIncident, exportRun, IncidentExportError } from "../../../src/recorder/export/IncidentExport.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { seeded } from "../../Seeded.ts";
import * as E from "../Entries.ts";
import { canaries, canary, found, leaves, named, replanted } from "./Planted.ts";

const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_121);

/** A record that has a value in every field. */
const rich = (): RunRecord => {
  const tools = [
    { call: "0.0", tool: "bash", executor: "runtime", effect: "mutating", phase: "dispatched" },
    { call: "0.1", tool: "web_search", executor: "provider", effect: "read_only", phase: "settled" },
  ] as const;
  const counters = {
    parts: 3,
    bytes: 4,
    characters: 5,
    input_tokens: 6,
    output_tokens: 7,
    rows_folded: 0,
    suspended_ms: 1,
  };
  const facts = E.facts({ progress: "output", shown: "text", text_through: 1, call_through: 2, tools, counters });
  const failure = {
    kind: "transport",
    code: "ECONNRESET",
    http2_code: "CANCEL",
    operation: "body",
    status: 502,
    retry_after_ms: 5,
    fingerprint: { name: "TypeError", code: "UND_ERR_SOCKET", depth: 1 },
  } as const;
  const base = E.incident("r", 1, { facts, failure, answer: "stop", policy: "default" });
  const incident: RunIncident = { ...base, decision: RecoveryPolicy.decide(base) };
  const record = E.folded([...E.life("r").slice(0, -3), E.noted(41, "watchdog", "idle"), E.opened("r", 3)]);
  const rejected = { kind: "rejected", reason: "quota", status: 429 } as const;
  const second = {
    ...base,
    id: "r.2",
    failure: rejected,
    decision: RecoveryPolicy.decide({ ...base, failure: rejected }),
  };
  return {
    ...record,
    provider: { id: "openai", model: "gpt-5", reasoning: true },
    incidents: [incident, second],
    policy: "default",
    budget: defaultBudget,
    transcript: "a digest",
    retry_of: "another run",
    parked: "answered",
    calls: [{ attempt: 1, call: "0.0", id: "call", tool: "bash", verdict: "it_ran", verdict_by: "verify" }],
    attempts: record.attempts.map((attempt) => ({
      ...attempt,
      request: "continue",
      run: freshRun,
      seam: { at: 7, proof: "anchor", proven: true },
    })),
    questions: record.questions.map((question) => ({
      ...question,
      attempt: 1,
      default_choice: "stop",
      asked_at: 1,
      expires_at: 2,
      answered_by: "person",
    })),
  };
};

/** Fields with free text: a name or an id that a provider, a model or a caller wrote. */
const free =
  /(?:^|\.)(?:run_id|id|model|call|tool|code|http2_code|name|detail|policy|policy_version|transcript|retry_of|message|because|may_repeat|incident)$|^end\.reason$/;

const exported = (value: unknown): string => encode(exportRun(value as RunRecord));

/** The result of an export: the document, or the refusal with everything attached to it. */
const outcome = (value: unknown): string => {
  try {
    return exported(value);
  } catch (error) {
    if (!(error instanceof IncidentExportError)) throw error;
    return `refused ${JSON.stringify(error)} ${error.message} ${error.stack} ${String(error.cause)}`;
  }
};

/** Stays unchanged: canaries are planted in a copy. */
const plain = rich();

const clean = exported(plain);

describe(`No planted secret, prompt or path comes out of an export (seed ${seed})`, () => {
  it("contains no canary at first, so that the search proves something", () => {
    assert.deepStrictEqual(found(clean, canaries), []);
    assert.deepStrictEqual(found(JSON.stringify(["x hunter2 y"]), canaries), ["hunter2"]);
    for (const planted of canaries) assert.deepStrictEqual(found(JSON.stringify({ planted }), [planted]), [planted]);
  });

  it("in any free text: each one separately, with every canary, and the export still succeeds", () => {
    const paths = leaves(plain).filter(([path, leaf]) => typeof leaf === "string" && free.test(named(path)));
    assert.isAtLeast(new Set(paths.map(([path]) => named(path))).size, 20);
    for (const [path] of paths) {
      for (const planted of canaries) {
        const record = replanted(plain, (at, leaf) => (at.join() === path.join() ? planted : leaf));
        assert.deepStrictEqual(found(exported(record), [planted]), [], `${path.join(".")}: ${planted}`);
      }
    }
  });

  it("in any other leaf: a value that is no enum or number is refused, and the refusal does not repeat it", () => {
    const paths = leaves(plain).filter(([path]) => !free.test(named(path)));
    assert.isAtLeast(paths.length, 60);
    for (const [path] of paths) {
      for (const planted of canaries.slice(0, 6)) {
        const record = replanted(plain, (at, leaf) => (at.join() === path.join() ? planted : leaf));
        assert.deepStrictEqual(found(outcome(record), [planted]), [], `${path.join(".")}: ${planted}`);
      }
    }
  });

  it("in all texts at once, at random", () => {
    const random = seeded(seed);
    for (let round = 0; round < 600; round += 1) {
      const planted = new Set<string>();
      const record = replanted(plain, (path, leaf) => {
        if (typeof leaf !== "string" || !free.test(named(path)) || random() < 0.3) return leaf;
        const one = canary(random);
        planted.add(one);
        return one;
      });
      assert.deepStrictEqual(found(exported(record), planted), [], `seed ${seed}, round ${round}`);
      const [incident] = (record as RunRecord).incidents;
      if (incident === undefined) throw new Error("the record has an incident");
      assert.deepStrictEqual(found(encode(exportIncident(incident)), planted), [], `seed ${seed}, round ${round}`);
    }
  });

  it("in unknown keys, on every object, including the names of methods", () => {
    const secret = "CANARY-secret-value";
    const grown = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(grown);
      if (typeof value !== "object" || value === null) return value;
      const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, grown(inner)]));
      const extra = {
        headers: { authorization: secret },
        stack: secret,
        cause: new Error(secret),
        url: secret,
        body: secret,
      };
      return Object.assign(copy, extra, { [secret]: secret, [Symbol(secret)]: secret, toString: () => secret });
    };
    assert.strictEqual(exported(grown(rich())), clean);
  });

  it("in prototypes, getters and toJSON", () => {
    const secret = "CANARY-secret-value";
    const tricked = (value: unknown, trick: (copy: object) => object): unknown => {
      if (Array.isArray(value)) return value.map((inner) => tricked(inner, trick));
      if (typeof value !== "object" || value === null) return value;
      return trick(Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, tricked(inner, trick)])));
    };
    const extra = { code: secret, detail: secret, answer: secret, model: secret, message: secret, operation: secret };
    const tricks: ReadonlyArray<(copy: object) => object> = [
      (copy) => Object.setPrototypeOf(copy, extra) as object,
      (copy) => Object.setPrototypeOf(copy, Object.create(null, { cause: { value: secret } })) as object,
      (copy) => JSON.parse(JSON.stringify(copy).replace("{", `{"__proto__":{"code":"${secret}"},`)) as object,
      (copy) => Object.defineProperty(copy, "toJSON", { enumerable: true, value: () => ({ secret }) }),
      (copy) =>
        Object.defineProperty(copy, "tool", {
          enumerable: true,
          get: () => secret,
        }),
      (copy) => {
        let reads = 0;
        return Object.defineProperty(copy, "id", {
          enumerable: true,
          get: () => (reads++ % 2 === 0 ? "bash" : secret),
        });
      },
      (copy) =>
        Object.defineProperty(copy, "phase", {
          enumerable: true,
          get: () => {
            throw new Error(secret);
          },
        }),
      (copy) =>
        new Proxy(copy, {
          get: (target, key) => Reflect.get(target, key) ?? (key === "then" ? undefined : secret),
        }),
    ];
    for (const [index, trick] of tricks.entries()) {
      assert.deepStrictEqual(found(outcome(tricked(rich(), trick)), [secret]), [], `trick ${index}`);
    }
    // An instance of a class keeps its values elsewhere than a plain object: it is exported or refused, but never leaked.
    assert.deepStrictEqual(found(outcome(Object.create(rich())), [secret]), []);
  });

  it("in values that are no record at all", () => {
    for (const value of [undefined, null, 7, "hunter2", ["hunter2"], { incidents: "hunter2" }, new Error("hunter2")]) {
      assert.match(outcome(value), /^refused .*not_a_record/);
      assert.deepStrictEqual(found(outcome(value), canaries), []);
    }
  });
});
