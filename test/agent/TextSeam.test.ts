/**
 * An agent whose response breaks behind shown text goes on with it where the seam is proven: its user reads one text, and its
 * journal gives one message, also to the process behind a crash.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Result } from "effect";
import { ChatRun } from "../../src/agent/conversation/ChatRun.ts";
import { ChatState } from "../../src/agent/conversation/ChatState.ts";
import type { AgentEvent, Entry } from "../../src/agent/index.ts";
import * as Json from "../../src/domain/Json.ts";
import { protocols } from "../../src/provider/Protocols.ts";
import type { SeamPlan } from "../../src/seam/TextSeam.ts";
import * as Judge from "./JournalJudge.ts";
import * as Rig from "./Rig.ts";

const content = [{ reasoning: 2 }, { text: 20 }];
const cutAfter = (n: number) => ({ content, break: { kind: "rst", at: "event", n } }) as const;
const whole = Array.from({ length: 20 }, (_, at) => `r1.${at + 2}·`).join("");
const ids = protocols.ids.filter((id) => protocols.get(id).splice !== undefined);

const textOf = (told: ReadonlyArray<AgentEvent>): string =>
  told.map((event) => (event._tag === "Text" ? event.text : "")).join("");

/** What the model has said, as the next request has it. */
const answers = (history: string): ReadonlyArray<string> => {
  const body = Json.record(JSON.parse(history)) ?? {};
  return Json.list(body.messages ?? body.input ?? body.contents).flatMap((it) => {
    const { content, parts, role } = Json.record(it) ?? {};
    if (role !== "assistant" && role !== "model") return [];
    if (typeof content === "string") return [content];
    return [
      Json.list(content ?? parts)
        .map((part) => Json.string(Json.record(part)?.text))
        .join(""),
    ];
  });
};

describe.each(ids)("The agent goes on behind shown text: %s", (protocol) => {
  it.live("its user reads the whole answer once, and its history holds one message", () =>
    Effect.gen(function* () {
      const asked: Array<string> = [];
      const { agent, told } = yield* Rig.make({
        protocol,
        script: { answers: [cutAfter(14), { goes_on: {} }] },
        ask: ({ rule }) => {
          asked.push(rule);
          return Effect.succeed("stop" as const);
        },
      });
      assert.strictEqual((yield* agent.say("Hello")).how, "done");
      assert.deepStrictEqual(asked, []);
      assert.strictEqual(textOf(told), whole);
      const entries = Judge.read(agent.file);
      assert.deepStrictEqual(answers(Judge.history(entries)), [whole]);
      assert.deepStrictEqual(Judge.problems(entries), []);
      assert.lengthOf(
        entries.filter((entry) => entry._tag === "Attempt" && entry.seam !== undefined),
        1,
      );
    }).pipe(Rig.played),
  );

  it.live("goes on twice, and the journal holds nothing twice", () =>
    Effect.gen(function* () {
      const { agent, told } = yield* Rig.make({
        protocol,
        script: {
          answers: [cutAfter(14), { goes_on: {}, break: { kind: "rst", at: "event", n: 18 } }, { goes_on: {} }],
        },
      });
      assert.strictEqual((yield* agent.say("Hello")).how, "done");
      assert.strictEqual(textOf(told), whole);
      assert.deepStrictEqual(answers(Judge.history(Judge.read(agent.file))), [whole]);
    }).pipe(Rig.played),
  );

  it.live("asks where the model does not begin with the anchor, and shows nothing of what it said", () =>
    Effect.gen(function* () {
      const asked: Array<string> = [];
      const { agent, told } = yield* Rig.make({
        protocol,
        script: { answers: [cutAfter(14), { goes_on: { preface: "Sure! " } }] },
        ask: ({ rule }) => {
          asked.push(rule);
          return Effect.succeed("accept" as const);
        },
      });
      assert.strictEqual((yield* agent.say("Hello")).how, "stopped");
      assert.lengthOf(asked, 1);
      assert.isTrue(whole.startsWith(textOf(told)), textOf(told));
      assert.deepStrictEqual(answers(Judge.history(Judge.read(agent.file))), [textOf(told)]);
    }).pipe(Rig.played),
  );
});

const chat: Extract<Entry, { readonly _tag: "Chat" }> = {
  _tag: "Chat",
  version: 1,
  chat: "test",
  protocol: "openai-chat",
  url: "http://localhost/v1",
  model: "m",
  dir: "/tmp",
  shell: false,
  system: "",
};
const run = "run_1";
const delta = (attempt: number, ordinal: number, content: string): Entry => ({
  _tag: "Part",
  run,
  attempt,
  ordinal,
  event: "message",
  data: JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
});
const shown = "It rained all night. The river rose, and the old bri";
const seam: SeamPlan = { proof: "anchor", at: shown.length, quote: shown };
const first: ReadonlyArray<Entry> = [
  { _tag: "User", text: "Tell me." },
  { _tag: "Run", run },
  { _tag: "Attempt", run, attempt: 1, request: "first", calls: [] },
  delta(1, 1, "It rained all night. "),
  delta(1, 2, "The river rose, and the old bri"),
];
const goesOn = { _tag: "Attempt", run, attempt: 2, request: "continue", calls: [], seam } as const;

const read = (entries: ReadonlyArray<Entry>): ChatState => {
  const state = new ChatState(chat, [], () => Effect.void);
  for (const entry of entries) state.apply(entry);
  return state;
};

describe("A journal with a seam", () => {
  it("gives the process behind a crash the same request, whenever the one before died", () => {
    const body = (state: ChatState) => Result.getOrThrow(Effect.runSync(state.begin(goesOn)));
    const live = body(read(first));
    assert.deepStrictEqual(body(read(first)), live);
    assert.deepStrictEqual(answers(JSON.stringify(live)), [shown]);
    // The attempt began, and nothing of it was handed over: a further one of the same plan sends the same.
    assert.deepStrictEqual(body(read([...first, goesOn])), live);
  });

  it("gives one message of what was joined, however the run ends", () => {
    const entries = [...first, goesOn, delta(2, 1, "dge fell into it at dawn.")];
    for (const ending of ["completed", "stopped", "cancelled"] as const) {
      const state = read([...entries, { _tag: "End", run, ending }]);
      assert.deepStrictEqual(answers(JSON.stringify(state.body)), [`${shown}dge fell into it at dawn.`], ending);
      assert.notInclude(JSON.stringify(state.body), "<cut>", ending);
    }
  });

  it("tells a seam what an earlier process has shown, and a response that begins anew nothing of that", () => {
    const url = "http://localhost/v1/chat/completions";
    const plan = (entries: ReadonlyArray<Entry>) => read(entries).openRun?.seam(url).plan();
    assert.deepStrictEqual(plan(first), seam);
    const joined = `${shown}dge fell.`;
    const further = plan([...first, goesOn, delta(2, 1, "dge fell.")]);
    assert.strictEqual(typeof further === "string" ? further : further?.at, joined.length);
    assert.strictEqual(plan(first.slice(0, 3)), "blank");
    const anew: Entry = { _tag: "Attempt", run, attempt: 2, request: "first", calls: [] };
    assert.strictEqual(plan([...first, anew]), "blank");
  });

  it("leaves it to the run to tell a seam what this process shows", () => {
    const state = new ChatRun(run, protocols.get("openai-chat"), { messages: [] });
    assert.strictEqual(state.seam("http://localhost").plan(), "blank");
    state.begin({ _tag: "Attempt", run, attempt: 1, request: "first", calls: [] });
    state.take({ ...(delta(1, 1, shown) as Extract<Entry, { readonly _tag: "Part" }>) });
    assert.strictEqual(state.seam("http://localhost").plan(), "blank");
  });
});
