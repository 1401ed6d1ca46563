/**
 * An agent on real sockets, in four protocols: its work breaks at every moment, and each effect of a tool happens once.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect } from "effect";
import type { AgentEvent } from "../../src/agent/index.ts";
import { type ProtocolId, protocols } from "../../src/provider/Protocols.ts";
import * as Judge from "./JournalJudge.ts";
import { linesOf } from "./Marks.ts";
import * as Rig from "./Rig.ts";

const work = [
  { reasoning: 1 },
  { text: 2 },
  { tool: "shell", input: { command: "echo mark >> marks" } },
  { tool: "write_file", input: { path: "notes/a.txt", content: "noted" } },
];
const answer = { content: [{ text: 2 }] };

/** What the history does not have of what the user sees, and what it has that was withdrawn from them. */
const differences = (file: string, told: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const history = Judge.history(Judge.read(file));
  const left: ReadonlyArray<string> = seen(told).match(/r\d+\.\d+·/g) ?? [];
  const shown = told.flatMap((event) => (event._tag === "Text" ? (event.text.match(/r\d+\.\d+·/g) ?? []) : []));
  return [
    ...left.filter((serial) => !history.includes(serial)).map((serial) => `${serial} is seen, and not in the history`),
    ...shown
      .filter((serial) => !left.includes(serial) && history.includes(serial))
      .map((serial) => `${serial} was withdrawn, and is in the history`),
  ];
};

/** What an agent's user sees: what was shown and not withdrawn. */
const seen = (told: ReadonlyArray<AgentEvent>): string => {
  let texts: Array<{
    readonly step: number;
    readonly attempt: number;
    readonly ordinal: number;
    readonly text: string;
  }> = [];
  let step = 0;
  for (const event of told) {
    if (event._tag === "StepStarted") step += 1;
    if (event._tag === "Text") texts.push({ ...event, step });
    if (event._tag === "Withdrawn")
      texts = texts.filter(
        (it) => it.step !== step || it.attempt !== event.attempt || it.ordinal <= event.keep_through,
      );
  }
  return texts.map((it) => it.text).join("");
};

describe("The agent against a provider that does not break", () => {
  for (const protocol of protocols.ids) {
    it.live(`works with its tools and answers: ${protocol}`, () =>
      Effect.gen(function* () {
        const { agent, box, provider, told } = yield* Rig.make({
          protocol,
          script: { answers: [{ content: work }, answer] },
        });
        const end = yield* agent.say("Tidy up");
        assert.strictEqual(end.how, "done");
        assert.lengthOf(linesOf(join(box, "marks")), 1);
        assert.strictEqual(readFileSync(join(box, "notes/a.txt"), "utf8"), "noted");
        assert.lengthOf(yield* provider.log, 2);
        assert.strictEqual(seen(told), (yield* provider.log).flatMap((row) => row.text).join(""));
        assert.deepStrictEqual(Judge.problems(Judge.read(agent.file)), []);
        // The second turn: what was said before stands in the request.
        assert.strictEqual((yield* agent.say("Thank you")).how, "done");
        assert.deepStrictEqual(Judge.problems(Judge.read(agent.file)), []);
      }).pipe(Rig.played),
    );
  }
});

describe("The agent against a provider that breaks in the middle of its work", () => {
  for (const protocol of protocols.ids) {
    for (const kind of ["rst", "end"] as const) {
      it.live(`${protocol}, ${kind} at every second event: each effect once, nothing withdrawn in the history`, () =>
        Effect.gen(function* () {
          const moments = Array.from({ length: 26 }, (_, n) => n);
          yield* Effect.forEach(
            moments.filter((n) => n % 2 === (kind === "rst" ? 0 : 1)),
            (n) => broken(protocol, kind, n),
            { concurrency: 2, discard: true },
          );
        }),
      );
    }
  }
});

const broken = (protocol: ProtocolId, kind: "rst" | "end", n: number) =>
  Effect.gen(function* () {
    const script = {
      answers: [{ content: work, break: { kind, at: "event" as const, n } }, { content: work }, answer],
    };
    const { agent, box, told } = yield* Rig.make({ protocol, script });
    const end = yield* agent.say("Tidy up");
    const entries = Judge.read(agent.file);
    const where = `${protocol} ${kind} ${n}`;
    assert.deepStrictEqual(Judge.problems(entries), [], where);
    assert.strictEqual(end.how, "done", `${where}: ${end.message}`);
    assert.deepStrictEqual(differences(agent.file, told), [], where);
    const { settled, started } = Judge.tally(entries, "shell");
    assert.strictEqual(linesOf(join(box, "marks")).length, settled, where);
    assert.strictEqual(started, settled, where);
    assert.strictEqual(new Set(seen(told).match(/r\d+\.\d+·/g)).size, seen(told).match(/r\d+\.\d+·/g)?.length, where);
  }).pipe(Rig.played);

describe("A break while a tool works", () => {
  for (const protocol of ["anthropic-messages", "openai-responses", "google-gemini"] as const) {
    it.live(`${protocol}: the next request has its result, and the text that had come behind its call`, () =>
      Effect.gen(function* () {
        const slow = { tool: "shell", input: { command: "sleep 0.2; echo mark >> marks" } };
        const { agent, box, provider, told } = yield* Rig.make({
          protocol,
          script: {
            answers: [
              { content: [{ text: 1 }, slow, { text: 3 }], one_write: true, break: { kind: "rst", at: "terminal" } },
              answer,
            ],
          },
        });
        assert.strictEqual((yield* agent.say("Work")).how, "done");
        assert.lengthOf(linesOf(join(box, "marks")), 1);
        assert.lengthOf(yield* provider.log, 2);
        assert.include(seen(told), "r1.3·");
        assert.deepStrictEqual(differences(agent.file, told), []);
        assert.deepStrictEqual(Judge.problems(Judge.read(agent.file)), []);
      }).pipe(Rig.played),
    );
  }
});

describe("A break while the first of three calls works", () => {
  it.live("the second one runs, the third is told as not run, and the text behind them is in the next request", () =>
    Effect.gen(function* () {
      const slow = { tool: "shell", input: { command: "sleep 0.2; echo mark >> marks" } };
      const { agent, box, told } = yield* Rig.make({
        protocol: "anthropic-messages",
        script: {
          answers: [
            {
              content: [{ text: 1 }, slow, slow, slow, { text: 3 }],
              one_write: true,
              break: { kind: "rst", at: "terminal" },
            },
            answer,
          ],
        },
      });
      assert.strictEqual((yield* agent.say("Work")).how, "done");
      const entries = Judge.read(agent.file);
      assert.deepStrictEqual(Judge.problems(entries), []);
      assert.deepStrictEqual(differences(agent.file, told), []);
      const { settled } = Judge.tally(entries, "shell");
      assert.strictEqual(linesOf(join(box, "marks")).length, settled);
      assert.include(seen(told), "r1.3·");
      const refused = told.filter((event) => event._tag === "ToolRefused").length;
      assert.strictEqual(Judge.history(entries).split("This tool call was not run").length - 1, refused);
      assert.strictEqual(settled + refused, 3);
    }).pipe(Rig.played),
  );
});

describe("Questions", () => {
  const script = { answers: [{ content: [{ text: 4 }], break: { kind: "rst", at: "terminal" } }, answer] } as const;
  const protocol = "anthropic-messages";

  it.live("a break after text asks; what is answered with retry is withdrawn", () =>
    Effect.gen(function* () {
      const { agent, told } = yield* Rig.make({
        protocol,
        script,
        continueText: "ask",
        ask: ({ choices }) => Effect.succeed(choices.includes("retry") ? ("retry" as const) : ("stop" as const)),
      });
      assert.strictEqual((yield* agent.say("Hello")).how, "done");
      assert.isTrue(told.some((event) => event._tag === "Withdrawn" && event.keep_through === 0));
      assert.strictEqual(seen(told), "r2.0·r2.1·");
      assert.deepStrictEqual(differences(agent.file, told), []);
      assert.deepStrictEqual(Judge.problems(Judge.read(agent.file)), []);
    }).pipe(Rig.played),
  );

  it.live("a question without an answer: the run is parked, and the next process asks again and goes on", () =>
    Effect.gen(function* () {
      const at = yield* Rig.folder;
      const first = Effect.gen(function* () {
        const { agent } = yield* Rig.make({
          protocol,
          script,
          at,
          continueText: "ask",
          ask: () => Effect.succeed("parked" as const),
        });
        return [yield* agent.say("Hello"), agent.chat.url] as const;
      });
      const [end, url] = yield* Rig.played(first);
      assert.strictEqual(end.how, "parked");
      const asked: Array<string> = [];
      const second = yield* Rig.make({
        protocol,
        script: { answers: [answer] },
        at,
        url,
        continueText: "ask",
        ask: ({ rule }) => {
          asked.push(rule);
          return Effect.succeed("accept" as const);
        },
      });
      assert.isTrue(second.agent.isOpen());
      assert.strictEqual((yield* second.agent.goOn).how, "stopped");
      assert.deepStrictEqual(asked, ["text_shown"]);
      assert.isFalse(second.agent.isOpen());
      assert.deepStrictEqual(Judge.problems(Judge.read(second.agent.file)), []);
    }).pipe(Rig.played),
  );
});

describe("Cancelling", () => {
  it.live("stops the tool that runs with everything that it has started, and ends the turn", () =>
    Effect.gen(function* () {
      const running = yield* Deferred.make<void>();
      const { agent, box, provider } = yield* Rig.make({
        protocol: "openai-responses",
        script: {
          answers: [{ content: [{ tool: "shell", input: { command: "(sleep 60; echo late >> late) & sleep 60" } }] }],
        },
        watch: (event) => {
          if (event._tag === "ToolStarted") Deferred.doneUnsafe(running, Effect.void);
        },
      });
      const cancel = Effect.andThen(Deferred.await(running), agent.cancel);
      const [end] = yield* Effect.all([agent.say("Wait"), cancel], { concurrency: "unbounded" });
      assert.strictEqual(end.how, "cancelled");
      assert.lengthOf(yield* provider.log, 1);
      assert.lengthOf(linesOf(join(box, "late")), 0);
      assert.deepStrictEqual(Judge.problems(Judge.read(agent.file)), []);
    }).pipe(Rig.played),
  );

  it.live("stops an answer that stalls", () =>
    Effect.gen(function* () {
      const shown = yield* Deferred.make<void>();
      const { agent } = yield* Rig.make({
        protocol: "openai-chat",
        script: { answers: [{ content: [{ text: 5 }], break: { kind: "stall", at: "event", n: 4 } }] },
        watch: (event) => {
          if (event._tag === "Text") Deferred.doneUnsafe(shown, Effect.void);
        },
      });
      const cancel = Effect.andThen(Deferred.await(shown), agent.cancel);
      const [end] = yield* Effect.all([agent.say("Wait"), cancel], { concurrency: "unbounded" });
      assert.strictEqual(end.how, "cancelled");
      assert.isFalse(agent.isOpen());
    }).pipe(Rig.played),
  );
});

describe("Limits", () => {
  it.live("a model that never stops calling is stopped", () =>
    Effect.gen(function* () {
      const { agent, provider } = yield* Rig.make({
        protocol: "google-gemini",
        script: { answers: [{ content: [{ tool: "list_files", input: {} }] }] },
        stepsMax: 3,
      });
      assert.strictEqual((yield* agent.say("Look")).how, "steps");
      assert.lengthOf(yield* provider.log, 3);
    }).pipe(Rig.played),
  );

  it.live("a tool that there is not is answered, and not run", () =>
    Effect.gen(function* () {
      const { agent, told } = yield* Rig.make({
        protocol: "anthropic-messages",
        script: { answers: [{ content: [{ tool: "launch", input: {} }] }, answer] },
      });
      assert.strictEqual((yield* agent.say("Launch")).how, "done");
      assert.isTrue(told.some((event) => event._tag === "ToolEnded" && event.failed));
    }).pipe(Rig.played),
  );
});
