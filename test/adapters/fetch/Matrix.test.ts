/**
 * Client libraries as they are, on a fetch that recovers: kinds of break × moments × what the answer holds × reveal.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { Answers, FaultJudge, type FaultScript } from "../../../src/testing/index.ts";
import type { Block } from "../../../src/testing/script/FaultScript.ts";
import { setup } from "./Cases.ts";
import { type Client, clients, playTurn } from "./Clients.ts";

type Break = NonNullable<FaultScript.Answer["break"]>;

/** `seen`: a byte client was shown something before the break, so that a live run cannot be repeated. */
interface Moment {
  readonly name: string;
  readonly content: ReadonlyArray<Block>;
  readonly at: Break["at"];
  readonly n?: (client: Client) => number;
  readonly seen: boolean;
}

const text: ReadonlyArray<Block> = [{ text: 4 }];
const thoughts: ReadonlyArray<Block> = [{ reasoning: 2 }, { text: 2 }];
const call: ReadonlyArray<Block> = [{ tool: "pay", input: { amount: 7, note: "é·" } }];
const calls: ReadonlyArray<Block> = [...call, { tool: "bash", input: { cmd: "ls" } }];
const spoken: ReadonlyArray<Block> = [{ text: 2 }, ...call];

/** The first event of a role, counted from 1: the break comes right after it. */
const after =
  (content: ReadonlyArray<Block>, role: Answers.EventRole) =>
  ({ protocol }: Client): number =>
    Answers.render(protocol, 1, { content }).findIndex((event) => event.role === role) + 1;

const moments: ReadonlyArray<Moment> = [
  { name: "before the head", content: text, at: "before_head", seen: false },
  { name: "after the head", content: thoughts, at: "after_head", seen: false },
  { name: "inside the first character", content: text, at: "utf8", seen: false },
  { name: "after a thought", content: thoughts, at: "event", n: after(thoughts, "reasoning"), seen: true },
  { name: "after text", content: text, at: "event", n: after(text, "text"), seen: true },
  { name: "before the marker", content: text, at: "terminal", seen: true },
  { name: "inside arguments", content: call, at: "tool_arguments", seen: false },
  { name: "after a call", content: call, at: "terminal", seen: false },
  { name: "after two calls", content: calls, at: "terminal", seen: false },
  { name: "inside arguments after text", content: spoken, at: "tool_arguments", seen: true },
  { name: "after text and a call", content: spoken, at: "terminal", seen: true },
];

const kinds = ["rst", "fin", "end", "stall", "keep_alive"] as const;

const canHappen = (kind: Break["kind"], { at }: Moment): boolean =>
  at !== "before_head" || (kind !== "end" && kind !== "keep_alive");

/** Short, so that a stall is found in the time of a test; a healthy answer here comes at once. */
const clocks = { first_progress: 1000, idle: 1000 };

const cell = (client: Client, reveal: "live" | "on_complete", kind: Break["kind"], moment: Moment) =>
  Effect.gen(function* () {
    const broken = { content: moment.content, break: { kind, at: moment.at, n: moment.n?.(client) ?? 0 } };
    const made = yield* setup({ answers: [broken, { content: moment.content }] }, { reveal, clocks });
    const turn = yield* Effect.promise(() => playTurn(client, made.fetch, made.server.url));
    const log = yield* made.server.log;
    const name = `${client.name}, ${reveal}, ${kind} ${moment.name}: ${String(turn.error)}`;
    const verdict = FaultJudge.judge({ transcript: turn.text, tools: turn.tools, completed: turn.completed, log });
    assert.isTrue(FaultJudge.isClean(verdict), `${name}: ${JSON.stringify(verdict)}`);
    // What comes in one piece with its break was not shown: then also these are repeated unseen.
    if (reveal === "on_complete" || !moment.seen) assert.isTrue(turn.completed, name);
    // On a machine that is short of time a stall may come twice.
    if (kind !== "stall" && kind !== "keep_alive") assert.strictEqual(log.length, turn.completed ? 2 : 1, name);
  }).pipe(Effect.scoped);

describe("recoveringFetch under real clients", () => {
  for (const client of clients) {
    for (const kind of kinds) {
      it.live(`${client.name}: ${kind} at every moment, in both reveals, duplicates, cuts and loses nothing`, () =>
        Effect.forEach(
          moments.filter((moment) => canHappen(kind, moment)),
          (moment) => Effect.andThen(cell(client, "live", kind, moment), cell(client, "on_complete", kind, moment)),
          { concurrency: "unbounded", discard: true },
        ),
      );
    }

    it.live(`${client.name}: a healthy answer is one request, and so is one that resets behind its marker`, () =>
      Effect.gen(function* () {
        const content: ReadonlyArray<Block> = [{ ping: 2 }, { reasoning: 2 }, { text: 3 }, ...calls];
        const events = Answers.render(client.protocol, 1, { content }).length;
        // Gemini's marker needs a clean end.
        const behind =
          client.protocol === "google-gemini" ? {} : { break: { kind: "rst", at: "event", n: events } as const };
        for (const answer of [{ content }, { content, ...behind }, { content, delay_ms: 2, write_bytes: 5 }]) {
          const made = yield* setup({ answers: [answer] });
          const turn = yield* Effect.promise(() => playTurn(client, made.fetch, made.server.url));
          const log = yield* made.server.log;
          const verdict = FaultJudge.judge({
            transcript: turn.text,
            tools: turn.tools,
            completed: turn.completed,
            log,
          });
          assert.isTrue(turn.completed, String(turn.error));
          assert.isTrue(FaultJudge.isClean(verdict), JSON.stringify(verdict));
          assert.strictEqual(log.length, 1);
        }
      }),
    );

    it.live(`${client.name}: refusals before the answer are retried, and a final one keeps its status`, () =>
      Effect.gen(function* () {
        const retried = [{ status: 429, headers: { "retry-after": "0" } }, { status: 529 }, { content: text }];
        const made = yield* setup({ answers: retried });
        const turn = yield* Effect.promise(() => playTurn(client, made.fetch, made.server.url));
        assert.isTrue(turn.completed, String(turn.error));
        assert.strictEqual((yield* made.server.log).length, 3);
        const refused = yield* setup({ answers: [{ status: 403 }] });
        const { error } = yield* Effect.promise(() => playTurn(client, refused.fetch, refused.server.url));
        assert.strictEqual(Reflect.get(Object(error), "status"), 403, String(error));
      }),
    );
  }
});
