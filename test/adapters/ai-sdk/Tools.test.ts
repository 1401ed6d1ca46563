import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { assert, describe, it } from "@effect/vitest";
import { isStepCount, jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { Effect } from "effect";
import { CallInterrupted, make, type Recovery } from "../../../src/adapters/ai-sdk/AiSdk.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { ToolRefused } from "../../../src/runtime/tools/ToolGuard.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import { quiet } from "./Turn.ts";

const openai = (url: string) => createOpenAI({ apiKey: "a key of a test", baseURL: `${url}/v1` });

const schema = jsonSchema<{ readonly serial?: string }>({ type: "object" });

const call = { content: [{ tool: "bash", input: { cmd: "ls" } }] } as const;

/** Runs a test with a recovery on services whose recorder it can read. */
const onServices = (
  answers: ReadonlyArray<object>,
  run: (server: FaultProvider["Service"], recovery: Recovery, recorder: RunRecorder["Service"]) => Promise<void>,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers } });
      const recovery = yield* make;
      const recorder = yield* RunRecorder;
      yield* Effect.promise(() => run(server, recovery, recorder));
    }),
  ).pipe(Effect.provide(quiet));

const ask = <T extends ToolSet>(recovery: Recovery, url: string, tools: T) =>
  streamText({
    model: recovery.recover(openai(url).chat("fault-model")),
    prompt: "hello",
    tools,
    stopWhen: isStepCount(2),
    onError: () => undefined,
  });

const runsOf = (recorder: RunRecorder["Service"]) => Effect.runPromise(recorder.runs());

/** How `execute` refuses. */
const refusal = async (started: unknown): Promise<string> => {
  try {
    await started;
    return "started";
  } catch (error) {
    assert.instanceOf(error, ToolRefused);
    return error instanceof ToolRefused ? error.reason : "";
  }
};

const told = (toolCallId: string) => ({ toolCallId, messages: [], context: {} as never });

describe("a guarded tool", () => {
  it.live("starts once, on record before its handler, and is settled by what it says", () =>
    onServices([call, { content: [{ text: 1 }] }], async (server, recovery, recorder) => {
      const seen: Array<unknown> = [];
      const bash = tool({
        inputSchema: schema,
        execute: async () => {
          const [run] = await runsOf(recorder);
          seen.push(run?.attempts.at(-1)?.facts.tools);
          return "ran";
        },
      });
      const tools = recovery.guardTools({ bash }, { effects: { bash: "mutating" } });
      assert.strictEqual(await ask(recovery, server.url, tools).text, "r2.0·");
      const row = { call: "0.0", tool: "bash", executor: "runtime", effect: "mutating" } as const;
      assert.deepEqual(seen, [[{ ...row, phase: "dispatched" }]]);
      const first = (await runsOf(recorder)).at(-1);
      assert.deepEqual(first?.attempts.at(-1)?.facts.tools, [{ ...row, phase: "settled" }]);
      assert.isTrue(first?.attempts.at(-1)?.facts.side_effects?.guarded);
      assert.strictEqual(await refusal(tools.bash.execute?.({}, told("call_r1.t1"))), "already_dispatched");
      assert.strictEqual(seen.length, 1);
    }),
  );

  it.live("may have a name that every object has", () =>
    onServices([{ content: [{ text: 1 }] }], async (server, recovery) => {
      const plain = tool({ inputSchema: schema, execute: () => "ran" });
      const given: ToolSet = { constructor: plain, bash: plain };
      const tools = recovery.guardTools(given, { effects: { bash: "mutating" } });
      assert.strictEqual(await ask(recovery, server.url, tools).text, "r1.0·");
    }),
  );

  it.live("starts for no call that a recovered model has not handed over", () =>
    onServices([call], async (_server, recovery) => {
      let ran = 0;
      const bash = tool({
        inputSchema: schema,
        execute: () => {
          ran += 1;
          return "ran";
        },
      });
      const tools = recovery.guardTools({ bash });
      assert.strictEqual(await refusal(tools.bash.execute?.({}, told("call_r1.t1"))), "unknown_call");
      assert.strictEqual(ran, 0);
    }),
  );

  it.live("runs for its own call where two conversations use one id at the same time", () =>
    onServices([call, call, { content: [{ text: 1 }] }], async (server, recovery) => {
      const ran: Array<string> = [];
      const both = Promise.withResolvers<void>();
      // Nothing tells the calls apart: their ids count from zero, and what they ask for is the same.
      const plain = openai(server.url).chat("fault-model");
      const model: typeof plain = Object.create(plain);
      model.doStream = async (params) => {
        const result = await plain.doStream(params);
        return {
          ...result,
          stream: result.stream.pipeThrough(
            new TransformStream({
              transform: (part, controller) =>
                controller.enqueue(part.type === "tool-call" ? { ...part, toolCallId: "0", input: "{}" } : part),
            }),
          ),
        };
      };
      const bash = tool({
        inputSchema: schema,
        execute: async (input) => {
          ran.push(JSON.stringify(input));
          if (ran.length === 2) both.resolve();
          await both.promise;
          return "ran";
        },
      });
      const tools = recovery.guardTools({ bash });
      const results = ["one", "two"].map((prompt) =>
        streamText({ model: recovery.recover(model), prompt, tools, onError: () => undefined }),
      );
      const outputs = await Promise.all(results.map((result) => result.toolResults));
      assert.deepEqual(
        outputs.map((all) => all.map((it) => it.output)),
        [["ran"], ["ran"]],
      );
      assert.deepEqual(ran, ["{}", "{}"]);
    }),
  );

  it.live("runs once for a call that a person approves later, however often the approval is sent", () =>
    onServices([call, { content: [{ text: 1 }] }], async (server, recovery) => {
      let ran = 0;
      const bash = tool({
        inputSchema: schema,
        execute: () => {
          ran += 1;
          return "ran";
        },
      });
      const asked = {
        model: recovery.recover(openai(server.url).chat("fault-model")),
        tools: recovery.guardTools({ bash }),
        toolApproval: { bash: "user-approval" },
        onError: () => undefined,
      } as const;
      const prompt: ModelMessage = { role: "user", content: "hello" };
      const first = streamText({ ...asked, messages: [prompt] });
      const request = (await first.content).find((part) => part.type === "tool-approval-request");
      assert.strictEqual(ran, 0);
      const approval: ModelMessage = {
        role: "tool",
        content: [{ type: "tool-approval-response", approvalId: request?.approvalId ?? "", approved: true }],
      };
      const messages = [prompt, ...(await first.response).messages, approval];
      assert.strictEqual(await streamText({ ...asked, messages }).text, "r2.0·");
      await streamText({ ...asked, messages }).text;
      assert.strictEqual(ran, 1);
    }),
  );

  it.live("forwards preliminary results of a generator at once, and its error to the model", () =>
    onServices([call, { content: [{ text: 1 }] }, call, { content: [{ text: 1 }] }], async (server, recovery) => {
      const bash = tool({
        inputSchema: schema,
        execute: async function* () {
          yield "half";
          yield "whole";
        },
      });
      const outputs: Array<unknown> = [];
      for await (const part of ask(recovery, server.url, recovery.guardTools({ bash })).fullStream) {
        if (part.type === "tool-result") outputs.push([part.output, part.preliminary ?? false]);
      }
      assert.deepEqual(outputs, [
        ["half", true],
        ["whole", true],
        ["whole", false],
      ]);
      const broken = tool({
        inputSchema: schema,
        execute: (): string => {
          throw new Error("no such command");
        },
      });
      const errors: Array<unknown> = [];
      for await (const part of ask(recovery, server.url, recovery.guardTools({ bash: broken })).fullStream) {
        if (part.type === "tool-error") errors.push(part.error);
      }
      assert.deepEqual(errors, [new Error("no such command")]);
    }),
  );
});

describe("what a request exposes", () => {
  it.live("is sent as its caller wrote it: the mark of a guarded tool does not leave the process", () =>
    onServices([{ content: [{ text: 1 }] }], async (server, recovery) => {
      const bash = tool({ inputSchema: schema, execute: () => "ran", providerOptions: { openai: { strict: true } } });
      const plain = openai(server.url).chat("fault-model");
      let sent: unknown;
      const spy: typeof plain = Object.create(plain);
      spy.doStream = (params) => {
        sent = params.tools;
        return plain.doStream(params);
      };
      const tools = recovery.guardTools({ bash });
      await streamText({ model: recovery.recover(spy), prompt: "hello", tools }).text;
      const ours = sent;
      await streamText({ model: spy, prompt: "hello", tools: { bash } }).text;
      assert.deepEqual(ours, sent);
      const log = await Effect.runPromise(server.log);
      assert.strictEqual(log[0]?.body_hash, log[1]?.body_hash);
    }),
  );

  it.live("is guarded only where the very tools of the request are", () =>
    onServices([{ content: [{ text: 1 }] }], async (server, recovery, recorder) => {
      const bash = tool({ inputSchema: schema, execute: () => "ran" });
      recovery.guardTools({ bash });
      await ask(recovery, server.url, { bash }).text;
      const [run] = await runsOf(recorder);
      assert.isFalse(run?.attempts.at(-1)?.facts.side_effects?.guarded);
    }),
  );

  it.live("is a tool that its caller runs elsewhere, with its effect and without a proof", () =>
    onServices([{ content: [{ text: 1 }] }], async (server, recovery, recorder) => {
      const asked: ToolSet = { ask: { inputSchema: schema } };
      const tools = recovery.guardTools(asked, { effects: { ask: "read_only" } });
      assert.isUndefined(tools.ask?.execute);
      await ask(recovery, server.url, tools).text;
      const effects = (await runsOf(recorder))[0]?.attempts.at(-1)?.facts.side_effects;
      assert.deepEqual([effects?.guarded, effects?.runtime.read_only], [false, 1]);
    }),
  );

  it.live("distinguishes hosted tools: a search is replayed, a hosted MCP server asks", () =>
    onServices([{ status: 500 }, { content: [{ text: 1 }] }, { status: 500 }], async (server, recovery) => {
      const provider = openai(server.url);
      const model = recovery.recover(provider.responses("fault-model"));
      const asked = { model, prompt: "hello", onError: () => undefined };
      const search = provider.tools.webSearch({});
      assert.strictEqual(await streamText({ ...asked, tools: { search } }).text, "r2.0·");
      const mcp = provider.tools.mcp({ serverLabel: "files", serverUrl: "https://mcp.example" });
      const error = await streamText({ ...asked, tools: { mcp } }).text.then(undefined, (thrown: unknown) => thrown);
      assert.instanceOf(error, CallInterrupted);
      assert.strictEqual(error instanceof CallInterrupted ? error.rule : "", "side_effects_unprovable");
      assert.strictEqual((await Effect.runPromise(server.log)).length, 3);
    }),
  );

  it.live("counts a provider's call that was made, and does not ask the provider for it again", () =>
    onServices(
      [{ content: [{ provider_tool: "web_search" }, { text: 1 }], break: { kind: "end", at: "terminal" } }],
      async (server, recovery, recorder) => {
        const provider = createAnthropic({ apiKey: "a key of a test", baseURL: `${server.url}/v1` });
        const search = provider.tools.webSearch_20250305({});
        const result = streamText({
          model: recovery.recover(provider("fault-model")),
          prompt: "hello",
          maxOutputTokens: 100,
          tools: recovery.guardTools({ web_search: search }, { effects: { web_search: "mutating" } }),
          onError: () => undefined,
        });
        const error = await result.text.then(undefined, (thrown: unknown) => thrown);
        assert.strictEqual(error instanceof CallInterrupted ? error.rule : error, "provider_tool_activity");
        const [run] = await runsOf(recorder);
        const rows = run?.attempts.at(-1)?.facts.tools.map(({ effect, executor }) => ({ effect, executor }));
        assert.deepEqual(rows, [{ effect: "mutating", executor: "provider" }]);
      },
    ),
  );
});
