import { assert, describe, it } from "@effect/vitest";
import * as OpenAiResponses from "../../../src/provider/openai-responses/Decode.ts";
import { inputCharactersMax, itemsMax } from "../../../src/provider/openai-responses/Slots.ts";
import { checkGrowth } from "../Decoded.ts";
import { event, last, phases, player, ready, signals } from "../Play.ts";
import { added, args, argsDone, completed, created, done, fn, incomplete, message } from "./Frames.ts";

const play = player(OpenAiResponses.protocol);

describe("runtime calls of a Responses stream", () => {
  it("a function call is complete with its arguments and ready with its item", () => {
    const played = play(added(0, fn("c", "")), args(0, "{}"), argsDone(0, "{}"), done(0, fn("c", "{}")), completed());
    assert.deepStrictEqual(phases(played), ["0 input_started", "0 input_complete", "0 ready"]);
    assert.deepInclude(signals(played)[2], { id: "c", tool: "read", executor: "runtime", input: "{}" });
    assert.deepInclude(played.seen[1], { progress: "output", shows: "nothing", characters: 0 });
  });

  it("skipped events lose no call: without added, without deltas, without done, with nothing but the final response", () => {
    const final = completed({ output: [fn("c", '{"a":1}')] });
    const stories = [
      [done(0, fn("c", '{"a":1}')), final],
      [args(0, '{"a":1}'), argsDone(0, '{"a":1}'), done(0, fn("c", '{"a":1}')), final],
      [added(0, fn("c", "")), argsDone(0, '{"a":1}'), final],
      [added(0, fn("c", "")), argsDone(0, '{"a":1}'), completed({ output: [] })],
      [added(0, fn("c", "")), args(0, '{"a":1}'), final],
      [created, final],
    ];
    for (const story of stories) {
      const played = play(...story);
      assert.deepStrictEqual(ready(played), [[0, '{"a":1}']], JSON.stringify(story));
      assert.isTrue(played.end.complete);
    }
  });

  it("a final list that leaves items out or moves them repeats no call", () => {
    const stream = [added(0, { type: "reasoning" }), done(1, fn("a", "{}")), done(2, fn("", "{}"))];
    for (const output of [[fn("a", "{}"), fn("", "{}")], [fn("", "{}")], []])
      assert.deepStrictEqual(ready(play(...stream, completed({ output }))), [
        [0, "{}"],
        [1, "{}"],
      ]);
  });

  it("cut arguments are never ready, and no fault of a response that met a limit", () => {
    const cut = fn("c", '{"a":"b', { status: "incomplete" });
    for (const frames of [
      [args(0, '{"a":"b')],
      [argsDone(0, '{"a":"b')],
      [args(0, '{"a"'), done(0, cut)],
      [done(0, fn("c", '{"a":"b'))],
    ]) {
      const played = play(added(0, fn("c", "")), ...frames, incomplete("max_output_tokens", { output: [cut] }));
      assert.deepStrictEqual(ready(played), []);
      assert.isUndefined(last(played)?.failure);
      assert.isTrue(played.end.complete);
    }
  });

  it("an item that says it was cut is not ready, even where its input reads like a whole one", () => {
    for (const status of ["incomplete", "failed", "cancelled"])
      for (const item of [
        fn("c", "{}", { status }),
        { type: "custom_tool_call", name: "sql", input: "SELECT 1", status },
      ])
        assert.deepStrictEqual(phases(play(done(0, item), incomplete("max_output_tokens"))), ["0 input_started"]);
  });

  it("whole arguments of an item that did not finish are not ready when the response met a limit", () => {
    assert.deepStrictEqual(ready(play(added(0, fn("c", "")), argsDone(0, "{}"), incomplete("max_output_tokens"))), []);
  });

  it("broken arguments of a finished response are invalid tool input, with the marker seen", () => {
    for (const frames of [
      [done(0, fn("c", '{"a":'))],
      [argsDone(0, '{"a":')],
      [argsDone(0, '{"a":'), done(0, fn("c", '{"a":'))],
    ]) {
      const played = play(added(0, fn("c", "")), ...frames, completed());
      checkGrowth(played.parts);
      assert.deepStrictEqual(ready(played), []);
      assert.isTrue(last(played)?.terminal);
      assert.deepStrictEqual(last(played)?.failure, {
        kind: "invalid_tool_input",
        in_band: true,
        code: "incomplete_call",
      });
      assert.isFalse(played.end.complete);
    }
  });

  it("empty, repeated and rotating ids are read by their index", () => {
    for (const id of ["", "0", "same"]) {
      const played = play(added(0, fn(id, "")), done(0, fn(id, "{}")), added(1, fn(id, "")), done(1, fn(id, "[]")));
      assert.deepStrictEqual(ready(played), [
        [0, "{}"],
        [1, "[]"],
      ]);
    }
    const rotating = [
      added(0, fn("a", "", { id: "r1" })),
      { ...argsDone(0, "{}"), item_id: "r2" },
      done(0, fn("b", "{}", { id: "r3" })),
    ];
    assert.deepStrictEqual(phases(play(...rotating)), ["0 input_started", "0 input_complete", "0 ready"]);
  });

  it("a server that numbers every item 0 loses no call", () => {
    const one = [added(0, fn("a", "")), done(0, fn("a", '"a"')), added(0, fn("b", "")), done(0, fn("b", '"b"'))];
    assert.deepStrictEqual(ready(play(...one)), [
      [0, '"a"'],
      [1, '"b"'],
    ]);
    const bare = [done(0, fn("a", "{}")), done(0, fn("b", "{}"))];
    assert.deepStrictEqual(phases(play(...bare)), ["0 ready", "1 ready"]);
    const woven = [
      added(0, fn("a", "", { id: "ia" })),
      added(0, fn("b", "", { id: "ib" })),
      { ...argsDone(0, '"a"'), item_id: "ia" },
      done(0, fn("a", '"a"')),
      done(0, fn("b", '"b"')),
    ];
    assert.deepStrictEqual(phases(play(...woven)), [
      "0 input_started",
      "1 input_started",
      "0 input_complete",
      "0 ready",
      "1 ready",
    ]);
  });

  it("a final response that tells nothing new proves nothing but the end", () => {
    const item = fn("a", "{}");
    assert.deepInclude(last(play(done(0, item), completed({ output: [item] }))), { progress: "started", calls: [] });
  });

  it("the same item sent twice is one call", () => {
    const twice = [added(0, fn("a", "")), added(0, fn("a", "")), done(0, fn("a", "{}")), done(0, fn("a", "{}"))];
    assert.deepStrictEqual(phases(play(...twice)), ["0 input_started", "0 ready"]);
  });

  it("a custom tool takes any text, a function no arguments, the others their action", () => {
    const rows = [
      [{ type: "custom_tool_call", name: "sql", input: "SELECT {" }, "sql", "SELECT {"],
      [{ type: "custom_tool_call", name: "sql", input: "" }, "sql", ""],
      [fn("c", ""), "read", "{}"],
      [{ type: "local_shell_call", action: { command: ["ls"] } }, "local_shell", '{"command":["ls"]}'],
      [{ type: "shell_call", action: { commands: ["ls"] } }, "shell", '{"commands":["ls"]}'],
      [{ type: "shell_call", environment: { type: "local" }, action: {} }, "shell", "{}"],
      [{ type: "apply_patch_call", operation: { type: "delete_file" } }, "apply_patch", '{"type":"delete_file"}'],
      [{ type: "computer_call", action: { type: "click" } }, "computer", '{"type":"click"}'],
      [{ type: "tool_search_call", execution: "client", arguments: { goal: "x" } }, "tool_search", '{"goal":"x"}'],
      [{ type: "mcp_approval_request", name: "t", arguments: "{}" }, "mcp_approval_request", "{}"],
    ] as const;
    for (const [item, tool, input] of rows)
      assert.deepInclude(signals(play(done(0, item)))[0], { executor: "runtime", phase: "ready", tool, input });
    for (const item of [{ type: "custom_tool_call", name: "sql" }, { type: "shell_call" }, fn("c")])
      assert.deepStrictEqual(phases(play(done(0, item), completed())), ["0 input_started"]);
  });
});

describe("provider-executed calls of a Responses stream", () => {
  it("the executor of an item is read from it, and what looks like a call and is not known runs at the provider", () => {
    const rows = [
      ["web_search_call", {}, "web_search"],
      ["file_search_call", {}, "file_search"],
      ["code_interpreter_call", { container_id: "c" }, "code_interpreter"],
      ["image_generation_call", {}, "image_generation"],
      ["mcp_call", { server_label: "s", name: "web_search" }, "mcp.s.web_search"],
      ["tool_search_call", { execution: "server" }, "tool_search"],
      ["tool_search_call", {}, "tool_search"],
      ["shell_call", { environment: { type: "container_reference", container_id: "c" } }, "shell"],
      ["program", { code: "" }, "program"],
      ["x_search_call", {}, "x_search"],
      ["robot_arm_call", {}, "robot_arm"],
      ["openrouter:web_search", {}, "openrouter:web_search"],
      ["custom_tool_call", { name: "x_keyword_search", call_id: "xs_call_1" }, "x_keyword_search"],
    ] as const;
    for (const [type, item, tool] of rows)
      assert.deepInclude(signals(play(added(0, { type, ...item })))[0], {
        executor: "provider",
        tool,
        phase: "input_started",
      });
    assert.strictEqual(
      signals(play(added(0, { type: "custom_tool_call", name: "x_keyword_search" })))[0]?.executor,
      "runtime",
    );
    const exposes = { type: "response.created", response: { tools: [{ type: "x_search" }] } };
    const hosted = play(exposes, added(0, { type: "custom_tool_call", name: "x_keyword_search" }));
    assert.strictEqual(signals(hosted)[0]?.executor, "provider");
  });

  it("a status without its item begins the call", () => {
    const seen = (type: string, more: object = {}) => signals(play({ type, output_index: 0, ...more }));
    assert.deepInclude(seen("response.web_search_call.searching")[0], { tool: "web_search", executor: "provider" });
    assert.deepInclude(seen("response.mcp_call_arguments.delta", { delta: "{" })[0], {
      tool: "mcp",
      executor: "provider",
    });
    assert.deepInclude(seen("response.robot_call.moving")[0], { tool: "robot", executor: "provider" });
    assert.deepInclude(seen("response.shell_call_output_content.delta")[0], { executor: "provider" });
  });

  it("what comes late takes nothing back: a status after the result, an event of another type", () => {
    const about = (type: string) => ({ type: `response.${type}`, output_index: 0, code: "1" });
    const settled = [about("code_interpreter_call.completed"), about("code_interpreter_call_code.done")];
    assert.deepStrictEqual(phases(play(...settled)), ["0 input_started", "0 settled"]);
    const other = [added(0, { type: "web_search_call" }), about("code_interpreter_call.completed")];
    assert.deepStrictEqual(phases(play(...other)), ["0 input_started"]);
  });

  it("a shell in a container is settled by its output, not by its own item", () => {
    const item = { type: "shell_call", call_id: "c", environment: { type: "container_auto" } };
    const played = play(
      added(0, item),
      done(0, item),
      added(1, { type: "shell_call_output", call_id: "c" }),
      done(1, { type: "shell_call_output", call_id: "c" }),
    );
    assert.deepStrictEqual(phases(played), ["0 input_started", "0 input_complete", "0 input_complete", "0 settled"]);
  });

  it("a call that turns out to run elsewhere is a call of its own", () => {
    const played = play(
      added(0, { type: "shell_call", call_id: "c" }),
      done(0, { type: "shell_call", call_id: "c", environment: { type: "container_auto" } }),
    );
    assert.deepStrictEqual(
      signals(played).map((call) => [call.ordinal, call.executor]),
      [
        [0, "runtime"],
        [1, "provider"],
      ],
    );
  });

  it("a result for a runtime call, or without any, counts as a provider's call of unknown effect", () => {
    const output = { type: "function_call_output", call_id: "c", output: "x" };
    assert.deepInclude(signals(play(done(0, output)))[0], {
      executor: "provider",
      phase: "settled",
      tool: "function_call_output",
    });
    const played = play(done(0, fn("c", "{}")), done(1, output));
    assert.deepStrictEqual(
      signals(played).map((call) => [call.ordinal, call.executor, call.phase]),
      [
        [0, "runtime", "ready"],
        [1, "provider", "settled"],
      ],
    );
  });

  it("a search result without an id settles the search before it", () => {
    const played = play(
      done(0, { type: "tool_search_call", execution: "server", call_id: null }),
      done(1, { type: "tool_search_output", call_id: null }),
    );
    assert.deepStrictEqual(phases(played), ["0 input_complete", "0 settled"]);
  });

  it("a picture is text to the caller", () => {
    const partial = {
      type: "response.image_generation_call.partial_image",
      output_index: 0,
      partial_image_b64: "iVBO",
    };
    const played = play(
      added(0, { type: "image_generation_call" }),
      partial,
      done(0, { type: "image_generation_call", result: "iVBO" }),
    );
    assert.deepStrictEqual(
      played.seen.map((one) => one.shows),
      ["nothing", "text", "text"],
    );
    assert.deepStrictEqual(phases(played), ["0 input_started", "0 settled"]);
    const drawn = done(0, { type: "code_interpreter_call", outputs: [{ type: "image", url: "data:" }] });
    assert.strictEqual(last(play(drawn))?.shows, "text");
  });

  it("text before the calls of one part is told from text after them", () => {
    const both = (...output: ReadonlyArray<object>) => last(play(completed({ output })));
    assert.deepInclude(both(message("Hi"), fn("c", "{}")), { shows: "text", characters: 2, text_before_calls: true });
    assert.isNotTrue(both(fn("c", "{}"), message("Hi"))?.text_before_calls);
    assert.isNotTrue(both(message("Hi"), fn("c", "{}"), message("Ho"))?.text_before_calls);
  });

  it("items and held arguments past their limits are oversize, not memory", () => {
    const many = play(...Array.from({ length: itemsMax + 1 }, (_, index) => added(index, { type: "compaction" })));
    assert.deepInclude(last(many)?.failure, { kind: "protocol", reason: "oversize" });
    assert.isUndefined(many.seen[itemsMax - 1]?.failure);
    const half = "x".repeat(inputCharactersMax / 2);
    const long = play(argsDone(0, half), argsDone(1, half), argsDone(2, "x"));
    assert.deepInclude(last(long)?.failure, { kind: "protocol", reason: "oversize" });
    assert.isUndefined(long.seen[1]?.failure);
  });

  it("a step changes nothing of the state before it", () => {
    const before = OpenAiResponses.step(OpenAiResponses.initial(), event(added(0, fn("c", ""))))[0];
    const copy = structuredClone(before);
    OpenAiResponses.step(before, event(argsDone(0, "{}")));
    OpenAiResponses.step(before, event(done(0, fn("c", "{}"))));
    assert.deepStrictEqual(before, copy);
  });
});
