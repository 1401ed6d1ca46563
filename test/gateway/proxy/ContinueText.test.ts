/** Shown text continued by the gateway over real sockets: the setting, the client's view, and the provider's requests. */
import { gzipSync } from "node:zlib";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { servedText } from "../../../src/cli/serve/ServedText.ts";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import { GatewayError, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { honest, type ModelServer, type Said, serveModel, written } from "../../adapters/relay/seam/HonestModel.ts";
import { readAs, requests, targets } from "../../adapters/relay/seam/SeamCases.ts";
import { type Fronted, front, type Got, recovery, type Sending, send } from "../GatewayCases.ts";

/** Protocols whose text can be continued. */
const ids = protocols.ids.filter((id) => protocols.get(id).splice !== undefined);

const said: Said = {
  text: "The lock is taken in open() and given back in close(). 鍵は一つだけです。 A second caller waits for it 👩‍👩‍👧, and goes on.",
  call: { name: "read", input: { path: "lock.ts" } },
};

const ask = (fronted: Pick<Fronted, "url">, protocol: ProtocolId, sending: Sending = {}): Effect.Effect<Got> =>
  Effect.promise(() =>
    send(`${fronted.url}${targets[protocol]}`, { body: JSON.stringify(requests[protocol]), ...sending }),
  );

/** Counts the requests for a break after shown text with these settings. */
const asked = (
  program: Parameters<typeof front>[1],
  headers: Readonly<Record<string, string>>,
  path = targets["openai-chat"],
) =>
  Effect.gen(function* () {
    const model: ModelServer = yield* serveModel(honest("openai-chat", said, [6]));
    const named = program?.named?.map((it) => ({ ...it, url: `${model.url}/v1` }));
    const gateway = yield* front(model.url, { ...program, ...(named === undefined ? {} : { named }) });
    const body = JSON.stringify(requests["openai-chat"]);
    const got = yield* Effect.promise(() =>
      send(`${gateway.url}${path}`, { body, headers: { "content-type": "application/json", ...headers } }),
    );
    return { got, model };
  }).pipe(Effect.scoped);

describe("a gateway with --continue-text auto", () => {
  for (const protocol of ids) {
    const events = written(protocol, said, { number: 1, piece: 7 });
    const whole = readAs(protocol, events.join(""));
    const firstText = events.findIndex((event) => readAs(protocol, event).text !== "");

    it.live(
      `${protocol}: a client whose response breaks reads one whole response, with the provider's own bytes up to the seam`,
      () =>
        Effect.gen(function* () {
          for (const at of [firstText + 1, firstText + 5, firstText + 12]) {
            const model = yield* serveModel(honest(protocol, said, [at]));
            const gateway = yield* front(model.url, { continueText: "auto" });
            const got = yield* ask(gateway, protocol, { headers: { "content-type": "application/json" } });
            const read = readAs(protocol, got.text);
            assert.deepStrictEqual([got.status, got.broken, read.whole, read.text], [200, false, true, said.text]);
            assert.deepStrictEqual([read.calls, read.finishes], [whole.calls, whole.finishes]);
            assert.isTrue(got.text.startsWith(events.slice(0, at).join("")));
            assert.strictEqual(model.asked.length, 2);
            const [record] = yield* gateway.runs;
            assert.deepInclude(record?.attempts.at(-1)?.seam ?? {}, { proof: "anchor" });
          }
        }),
    );
  }

  it.live("counts the seam, and reports in its metrics how it was proven", () =>
    Effect.gen(function* () {
      const model = yield* serveModel(honest("openai-chat", said, [6]));
      const gateway = yield* front(model.url, { continueText: "auto" });
      // Metrics belong to the process, in which other test files may have counted seams.
      const counted = Effect.map(Effect.provideContext(Metrics.text(), gateway.services), (text) =>
        [...text.matchAll(/stream_recovery_seams_total\{[^}]*anchor[^}]*\} (\d+)/g)].reduce(
          (sum, [, n]) => sum + Number(n),
          0,
        ),
      );
      const before = yield* counted;
      yield* ask(gateway, "openai-chat");
      yield* gateway.until(([run]) => run?.end);
      assert.strictEqual(yield* counted, before + 1);
    }),
  );

  it.live("continues a request that came compressed, and sends the continuation uncompressed", () =>
    Effect.gen(function* () {
      const body = gzipSync(JSON.stringify(requests["openai-chat"]));
      const model = yield* serveModel(honest("openai-chat", said, [6]));
      const gateway = yield* front(model.url, { continueText: "auto" });
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      const got = yield* ask(gateway, "openai-chat", { body, headers });
      assert.strictEqual(readAs("openai-chat", got.text).text, said.text);
      assert.strictEqual(model.asked[0]?.headers["content-encoding"], "gzip");
      assert.isUndefined(model.asked[1]?.headers["content-encoding"]);
      assert.strictEqual(yield* gateway.gateway.keptBytes, 0);
    }),
  );

  it.live("leaves a document broken", () =>
    Effect.gen(function* () {
      const plain = { ...requests["openai-chat"], stream: false };
      const model = yield* serveModel((_, number) => ({
        events: ['{"choices":'],
        breakAt: number > 5 ? undefined : 1,
      }));
      const fronted = yield* front(model.url, { continueText: "auto" });
      yield* ask(fronted, "openai-chat", { body: JSON.stringify(plain) });
      assert.isTrue(model.asked.every(({ quote }) => quote === undefined));
    }),
  );
});

describe("the source of the setting for continued text", () => {
  const named = (continueText: "auto" | "ask") => [{ name: "local", url: "", headers: [], continueText }];
  const local = "/u/local/v1/chat/completions";
  const rows: ReadonlyArray<
    readonly [string, Parameters<typeof front>[1], Readonly<Record<string, string>>, string | undefined, number]
  > = [
    ["nobody", {}, {}, undefined, 1],
    ["the flag", { continueText: "auto" }, {}, undefined, 2],
    ["the upstream, over the flag", { named: named("auto") }, {}, local, 2],
    ["the upstream against the flag", { continueText: "auto", named: named("ask") }, {}, local, 1],
    ["the header, over everything", { named: named("ask") }, { "x-recovery-continue-text": "auto" }, local, 2],
    ["the header against the flag", { continueText: "auto" }, { "x-recovery-continue-text": "ask" }, undefined, 1],
  ];
  for (const [name, program, headers, path, requestsMade] of rows) {
    it.live(`is ${name}`, () =>
      Effect.gen(function* () {
        const { model } = yield* asked(program, headers, path);
        assert.strictEqual(model.asked.length, requestsMade);
        const sent = model.asked
          .flatMap((one) => Object.keys(one.headers))
          .filter((key) => key.startsWith("x-recovery"));
        assert.deepStrictEqual(sent, []);
      }),
    );
  }

  it.live("an invalid value is refused", () =>
    Effect.gen(function* () {
      const { got, model } = yield* asked({}, { "x-recovery-continue-text": "yes" });
      assert.deepStrictEqual([got.status, recovery(got, "refused"), model.asked.length], [400, "continue_text", 0]);
    }),
  );

  it("serve --check prints it", () => {
    const text = (program: Parameters<typeof front>[1] = {}) => {
      const settings = settingsOf(program);
      if (settings instanceof GatewayError) throw settings;
      return servedText(settings, program);
    };
    assert.match(
      text(),
      /^if a response breaks after text was shown: the response ends broken, or a person is asked$/m,
    );
    assert.match(
      text({ continueText: "auto" }),
      /^if a response breaks after text was shown: the text continues if the join is proven$/m,
    );
    const local = { name: "local", url: "http://127.0.0.1:1/v1", headers: [], continueText: "auto" } as const;
    assert.match(text({ named: [local] }), /^ {2}local: .*, shown text: auto$/m);
  });
});
