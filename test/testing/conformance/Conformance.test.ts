import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Schema } from "effect";
import {
  type ConformanceFaultId,
  type ConformanceOptions,
  type ConformanceRuntime,
  ConformanceScoreboard,
  conformance,
  conformanceFaults,
  conformanceTable,
  FaultListenError,
  isSafe,
  runConformance,
} from "../../../src/testing/index.ts";
import { ids } from "../../samples/index.ts";
import { type Habits, runtimeOf } from "./Clients.ts";

const silenceMs = 200;

const letters = async (
  runtime: ConformanceRuntime,
  faults: ReadonlyArray<ConformanceFaultId>,
  more: Partial<ConformanceOptions> = {},
): Promise<Record<string, string>> => {
  const board = await conformance(runtime, { faults, silenceMs, ...more });
  return Object.fromEntries(board.cells.map((cell) => [cell.fault, `${cell.letter}${cell.requests}`]));
};

const all = conformanceFaults.map(({ id }) => id);

/** A runtime without one good habit, the fault that shows it, and the letter. */
const lacking: ReadonlyArray<readonly [habit: string, habits: Partial<Habits>, Record<string, string>]> = [
  [
    "repeats without taking back",
    { withdraws: false },
    { text_cut: "D2", text_clean_end: "D2", overload_in_text: "D2", args_cut: "R3" },
  ],
  [
    "never repeats",
    { repeats: false },
    { reset_before_head: "E1", text_cut: "E1", args_cut: "E1", rate_limited: "E1" },
  ],
  [
    "takes a clean end for the end",
    { knowsTheEnd: false },
    { text_clean_end: "T1", args_clean_end: "T1", text_cut: "R2" },
  ],
  ["runs a tool before the end, and repeats", { waitsForTheEnd: false }, { call_then_cut: "X2", args_cut: "R2" }],
  ["runs a tool with whatever came", { knowsTheEnd: false, runsAnything: true }, { args_clean_end: "XT3" }],
  ["gives a broken call back to the model", { knowsTheEnd: false, tellsTheModel: true }, { args_clean_end: "M3" }],
];

describe("conformance", () => {
  it("scores a correct runtime with R for every fault", async () => {
    const board = await conformance(runtimeOf({ patienceMs: 2_000 }), { silenceMs });
    assert.deepStrictEqual(
      board.cells.filter((cell) => cell.letter !== "R").map((cell) => [cell.fault, cell.letter, cell.error]),
      [],
    );
    assert.isTrue(isSafe(board));
    assert.strictEqual(board.totals.false_aborts, 0);
    assert.strictEqual(board.totals.recovered, all.length);
    assert.deepStrictEqual(
      board.cells.filter(({ requests }) => requests === 1).map(({ fault }) => fault),
      ["healthy", "silence"],
    );
  });

  for (const [habit, habits, expected] of lacking)
    it(`sees a runtime that ${habit}`, async () => {
      const faults = all.filter((id) => id in expected);
      assert.deepStrictEqual(await letters(runtimeOf(habits), faults), expected);
    });

  it("counts text twice, tools run twice or cut and truncation as unsafe, and an error as safe", async () => {
    const boardOf = (habits: Partial<Habits>, ...faults: ReadonlyArray<ConformanceFaultId>) =>
      conformance(runtimeOf(habits), { faults, silenceMs });
    const doubled = await boardOf({ withdraws: false }, "text_cut");
    assert.strictEqual(doubled.totals.duplicated_text, 1);
    const twice = await boardOf({ waitsForTheEnd: false }, "call_then_cut");
    assert.strictEqual(twice.totals.duplicated_tool_runs, 1);
    const cut = await boardOf({ knowsTheEnd: false, runsAnything: true }, "args_clean_end");
    assert.strictEqual(cut.totals.truncated_tool_runs, 1);
    const short = await boardOf({ knowsTheEnd: false }, "text_clean_end");
    assert.strictEqual(short.totals.silent_truncations, 1);
    for (const board of [doubled, twice, cut, short]) assert.isFalse(isSafe(board), JSON.stringify(board.totals));
    const told = await boardOf({ repeats: false }, "text_cut", "reset_before_head");
    assert.isTrue(isSafe(told));
    assert.strictEqual(told.totals.errors, 2);
    assert.strictEqual(told.totals.lost_work, 1, "only the cut text had been paid");
  });

  it("reports a healthy stream that was aborted, even if its repetition succeeded", async () => {
    const impatient = runtimeOf({ patienceMs: 60, repeats: false });
    const failed = await conformance(impatient, { faults: ["silence"], silenceMs: 5_000, limitMs: 4_000 });
    assert.strictEqual(failed.totals.false_aborts, 1);
    assert.isFalse(isSafe(failed));
    const repeated = await conformance(runtimeOf({ patienceMs: 500 }), { faults: ["silence"], silenceMs: 5_000 });
    assert.deepInclude(repeated.cells[0], { letter: "R", requests: 2, false_abort: true });
    assert.include(conformanceTable([repeated]), "R2!");
  });

  it("aborts a turn that hangs, and abandons one that ignores the abort", async () => {
    let aborted = false;
    const deaf: ConformanceRuntime = {
      name: "deaf",
      protocols: ["openai-chat"],
      turn: ({ screen, signal }) => {
        screen.write("nothing of a provider");
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        return new Promise(() => undefined);
      },
    };
    assert.deepStrictEqual(await letters(deaf, ["healthy"], { limitMs: 50 }), { healthy: "H0" });
    assert.isTrue(aborted);
    const patient = runtimeOf({});
    assert.deepStrictEqual(await letters(patient, ["stall"], { limitMs: 400 }), { stall: "H1" });
  });

  it("rejects a turn without a request, or with text that no provider sent", async () => {
    const turn = (text: string) => ({
      name: "lazy",
      protocols: ["openai-chat"] as const,
      turn: async () => ({ text }),
    });
    assert.deepStrictEqual(await letters(turn("r9.0·"), ["healthy"]), { healthy: "T0" });
  });

  it("accepts reports and errors of runtimes that cannot use the screen", async () => {
    const inner = runtimeOf({ repeats: false });
    const reporting: ConformanceRuntime = {
      ...inner,
      turn: async (task) => {
        const ran: Array<unknown> = [];
        const tools = task.tools.map((tool) => ({
          ...tool,
          execute: (input: unknown) => Promise.resolve(`${ran.push(input)}`),
        }));
        let text = "";
        const screen = {
          write: (more: string) => {
            text += more;
          },
          replace: (by: string) => {
            text = by;
          },
          text: () => text,
        };
        const failed = await Promise.resolve(inner.turn({ ...task, tools, screen })).then(() => undefined, String);
        return { text, tools: ran, ...(failed === undefined ? {} : { ended: "error" as const, error: failed }) };
      },
    };
    const board = await conformance(reporting, { faults: ["healthy_call", "text_cut"], silenceMs });
    assert.deepStrictEqual(
      board.cells.map(({ error, letter, requests }) => [`${letter}${requests}`, error]),
      [
        ["R2", undefined],
        ["E1", "TypeError: terminated"],
      ],
    );
  });

  it("is data: a scoreboard goes through JSON, and a table has a column for each runtime", async () => {
    const board = await conformance(runtimeOf({}), { faults: ["healthy", "text_cut"], silenceMs });
    const decoded = Schema.decodeUnknownSync(ConformanceScoreboard)(JSON.parse(JSON.stringify(board)));
    assert.deepStrictEqual(decoded, board);
    const table = conformanceTable([board, { ...board, runtime: "another", versions: { a: "1.2.3" } }]);
    assert.include(table, "| fault in the first response | test, chat | another, chat |");
    assert.include(table, "| text cut                    | R2         | R2            |");
    assert.include(table, "a 1.2.3");
  });

  it("reports each cell as soon as it is scored", async () => {
    const told: Array<string> = [];
    await conformance(runtimeOf({}), {
      faults: ["healthy", "reset_before_head"],
      silenceMs,
      onCell: ({ fault }) => void told.push(fault),
    });
    assert.deepStrictEqual(told.sort(), ["healthy", "reset_before_head"]);
  });
});

/** Listens on any free port of the loopback and returns it. */
const listen = async (server: ReturnType<typeof createServer>): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  assert.isObject(address);
  return typeof address === "object" && address !== null ? address.port : 0;
};

describe("a gateway under test", () => {
  it("receives the requests with its headers, and what it forwards is judged", async () => {
    const spare = createServer();
    const port = await listen(spare);
    spare.close();
    await once(spare, "close");
    const received: Array<IncomingMessage> = [];
    const gateway = createServer((request, response) => {
      received.push(request);
      const { headers, method, url } = request;
      const onward = httpRequest({ host: "127.0.0.1", port, agent: false, headers, method, path: url ?? "/" });
      onward.on("response", (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        // Like many proxies, it ends a cut response as if it were complete.
        answer.on("data", (chunk) => response.write(chunk)).on("close", () => response.end());
        answer.on("error", () => response.end());
      });
      onward.on("error", () => (response.headersSent ? response.end() : response.writeHead(502).end()));
      request.pipe(onward);
    });
    const url = `http://127.0.0.1:${await listen(gateway)}`;
    const through = { url, port, headers: { "x-gateway": "yes" } };
    const faults = ["healthy", "text_cut", "overloaded"] as const;
    const found = await letters(runtimeOf({ knowsTheEnd: false }), faults, { through });
    gateway.close();
    gateway.closeAllConnections();
    assert.deepStrictEqual(found, { healthy: "R1", text_cut: "T1", overloaded: "R2" });
    assert.strictEqual(received.length, 4);
    for (const { headers } of received) assert.strictEqual(headers["x-gateway"], "yes");
  });

  it("needs a free port for the provider behind it", async () => {
    const taken = createServer();
    const port = await listen(taken);
    const through = { url: "http://127.0.0.1:1", port };
    const error = await conformance(runtimeOf({}), { faults: ["healthy"], through }).catch((cause: unknown) => cause);
    taken.close();
    assert.instanceOf(error, FaultListenError);
    assert.include(String(error), String(port));
  });
});

class NoMore extends Schema.TaggedError<NoMore>()("NoMore", { message: Schema.String }) {}

class Greeting extends Context.Service<Greeting, { readonly text: string }>()("test/Greeting") {}

describe("runConformance", () => {
  it.live("judges turns that are Effects, with the services that they need, and their typed failures", () =>
    Effect.gen(function* () {
      const board = yield* runConformance(
        {
          name: "effects",
          protocols: ["openai-chat"],
          turn: ({ screen }) => Effect.flatMap(Greeting, ({ text }) => Effect.sync(() => screen.write(text))),
        },
        { faults: ["healthy"], silenceMs },
      );
      assert.strictEqual(board.cells[0]?.letter, "T", "it showed what no provider said");
      const failing = yield* runConformance(
        { name: "failing", protocols: ["openai-chat"], turn: () => Effect.fail(new NoMore({ message: "no more" })) },
        { faults: ["healthy"], silenceMs },
      );
      assert.deepInclude(failing.cells[0], { letter: "E", error: "NoMore: no more", false_abort: true });
    }).pipe(Effect.provideService(Greeting, { text: "hello" })),
  );

  it.live("aborts the signal of an Effect that hangs", () =>
    Effect.gen(function* () {
      let reason: unknown;
      const board = yield* runConformance(
        {
          name: "hanging",
          protocols: ["openai-chat"],
          turn: ({ signal }) => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (reason = signal.reason))),
        },
        { faults: ["healthy"], silenceMs, limitMs: 50 },
      );
      assert.strictEqual(board.cells[0]?.letter, "H");
      assert.match(String(reason), /longer than 50 ms/);
    }),
  );
});

describe("the fault matrix", () => {
  it("has every fault once and a healthy end for each", () => {
    assert.strictEqual(new Set(all).size, all.length);
    for (const fault of conformanceFaults)
      for (const protocol of ids) {
        const last = fault.script(protocol, 1).answers?.at(-1);
        assert.isUndefined(last?.break, `${fault.id} ends healthy`);
        assert.isUndefined(last?.status);
      }
  });
});
