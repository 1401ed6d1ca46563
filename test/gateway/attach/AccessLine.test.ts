/** What the log and the metrics say of clients that leave a run, and of those that attach to it. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric, Redacted } from "effect";
import { Traffic } from "../../../src/gateway/api/Traffic.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { found } from "../../Polling.ts";
import { paths, send } from "../GatewayCases.ts";
import { logging } from "../log/Logged.ts";
import { again, ask, attach, eventsOf, longMs, providerOf, whole } from "./AttachCases.ts";

const protocol = "openai-chat" as const;
const events = eventsOf(protocol);
const all = Buffer.concat(events).byteLength;
const key = { authorization: "Bearer sk-SECRET-one" };
const secret = "a-token-of-24-characters";

/** A gateway whose log is kept, and a run of it whose client has left behind some events. */
const left = (program: GatewayProgram = {}) =>
  Effect.gen(function* () {
    const provider = yield* providerOf(events);
    const it = yield* logging(provider.at, { lingerMs: longMs, ...program }, "Info");
    const first = ask(it, protocol, key);
    const sent = yield* provider.nth(0);
    sent.send(4);
    const head = yield* Effect.promise(() => first.head);
    first.leave();
    yield* whole(first);
    const run = String(head.headers["x-recovery-run"]);
    const { status } = Context.get(it.services, Traffic);
    const isIn = (state: string) =>
      found(
        Effect.map(status, ({ attachable }) => attachable?.find((one) => one.run_id === run && one.state === state)),
      );
    yield* isIn("left");
    return { ...it, provider, sent, first, run, isIn };
  });

/** What a gateway's metrics count, by name and labels; only the gateway's own requests and attachments. */
const counted = ({ url }: { readonly url: string }) =>
  Effect.map(
    Effect.promise(() => send(`${url}/metrics`)),
    ({ text }) =>
      text
        .split("\n")
        .filter((line) => /^stream_recovery_gateway_(?:attached|evicted|served|lingering_runs)/.test(line))
        .map((line) => line.replace("stream_recovery_gateway_", "").replace(/client="[^"]*",/, "")),
  );

/** Each gateway counts for itself. */
const alone = Effect.provideServiceEffect(
  Metric.MetricRegistry,
  Effect.sync(() => new Map()),
);

describe("The access line of a client that left", () => {
  it.live(
    "reports the bytes that the client got; the line of its repeat reports the attachment: one run, two lines",
    () =>
      Effect.gen(function* () {
        const it = yield* left();
        assert.deepStrictEqual(yield* counted(it), ["lingering_runs 1"]);
        const second = ask(it, protocol, { ...key, ...again });
        yield* it.isIn("read");
        assert.sameMembers(yield* counted(it), ['attached_total{how="repeat"} 1', "lingering_runs 0"]);
        it.sent.finish();
        yield* whole(second);
        const lines = yield* it.accessed(2);
        const [one, two] = lines.toSorted((a, b) => a.outcome.localeCompare(b.outcome)).toReversed();
        const shared = { method: "POST", path: paths[protocol], status: 200, upstream: "openai", run_id: it.run };
        assert.deepInclude(one, { ...shared, level: "info", outcome: "left", attempts: 1 });
        assert.isAtLeast(one?.bytes ?? 0, it.first.got().byteLength);
        assert.isBelow(one?.bytes ?? all, all);
        assert.notProperty(one, "attached_at");
        assert.deepInclude(two, { ...shared, level: "info", outcome: "attached", attached_at: 0, bytes: all });
        assert.isAtMost(two?.head_ms ?? Number.NaN, two?.ms ?? 0);
        assert.lengthOf(it.provider.asked, 1);
        assert.sameMembers(yield* counted(it), [
          'attached_total{how="repeat"} 1',
          'served_total{upstream="openai",outcome="left",reason="none"} 1',
          'served_total{upstream="openai",outcome="attached",reason="none"} 1',
          "lingering_runs 0",
        ]);
      }).pipe(alone),
  );

  it.live("and that of one which reads on by the run's name says from which byte", () =>
    Effect.gen(function* () {
      const it = yield* left();
      it.sent.finish();
      yield* it.isIn("ended");
      yield* it.accessed(1);
      const from = 17;
      yield* whole(attach(it, it.run, { ...key, "last-event-id": String(from) }));
      yield* whole(attach(it, it.run, key, "HEAD"));
      const [, read, head] = yield* it.accessed(3);
      const shared = { path: `/recovery/streams/${it.run}`, status: 200, run_id: it.run, level: "info" };
      assert.deepInclude(read, { ...shared, method: "GET", outcome: "attached", attached_at: from, bytes: all - from });
      assert.deepInclude(head, { ...shared, method: "HEAD", outcome: "completed", bytes: 0 });
      assert.notProperty(head, "attached_at");
      assert.sameMembers(yield* counted(it), [
        'attached_total{how="stream"} 1',
        'served_total{upstream="openai",outcome="left",reason="none"} 1',
        'served_total{upstream="none",outcome="attached",reason="none"} 1',
        'served_total{upstream="none",outcome="completed",reason="none"} 1',
        "lingering_runs 0",
      ]);
    }).pipe(alone),
  );

  it.live("has another line for a client that attached and left again", () =>
    Effect.gen(function* () {
      const it = yield* left();
      const second = attach(it, it.run, key);
      yield* Effect.promise(() => second.head);
      second.leave();
      yield* whole(second);
      const [again] = yield* it.accessed(1);
      const shared = { outcome: "left", run_id: it.run, status: 200 } as const;
      assert.deepInclude(again, { ...shared, method: "GET", attached_at: 0 });
      yield* whole(attach(it, it.run, key, "DELETE"));
      const first = (yield* it.accessed(3)).find(({ method }) => method === "POST");
      assert.deepInclude(first, { ...shared, rule: "user_cancelled" });
      assert.sameMembers(yield* counted(it), [
        'attached_total{how="stream"} 1',
        'served_total{upstream="openai",outcome="left",reason="none"} 1',
        'served_total{upstream="none",outcome="left",reason="none"} 1',
        'served_total{upstream="none",outcome="completed",reason="none"} 1',
        "lingering_runs 0",
      ]);
    }).pipe(alone),
  );

  it.live("is of a run that its user has cancelled, when its time is over", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const it = yield* logging(provider.at, { lingerMs: 10 });
      const first = ask(it, protocol, key);
      (yield* provider.nth(0)).send(4);
      yield* Effect.promise(() => first.head);
      first.leave();
      const [line] = yield* it.accessed(1);
      assert.deepInclude(line, { outcome: "left", status: 200, rule: "user_cancelled", failure: "cancelled" });
    }).pipe(alone),
  );

  it.live("and that of a Stop by the run's name has the run, and no outcome but that it was done", () =>
    Effect.gen(function* () {
      const it = yield* left();
      yield* whole(attach(it, it.run, key, "DELETE"));
      yield* whole(attach(it, it.run, key, "DELETE"));
      const lines = yield* it.accessed(3);
      const [stop, none, first] = lines.toSorted((a, b) => a.method.localeCompare(b.method));
      assert.deepInclude(first, { method: "POST", outcome: "left", run_id: it.run, rule: "user_cancelled" });
      assert.deepInclude(stop, { method: "DELETE", outcome: "completed", status: 204, run_id: it.run, bytes: 0 });
      assert.deepInclude(none, { method: "DELETE", outcome: "refused", status: 404, refused: "stream" });
      assert.notProperty(none, "run_id");
      assert.sameMembers(yield* counted(it), [
        'served_total{upstream="openai",outcome="left",reason="none"} 1',
        'served_total{upstream="none",outcome="completed",reason="none"} 1',
        'served_total{upstream="none",outcome="refused",reason="stream"} 1',
        "lingering_runs 0",
      ]);
    }).pipe(alone),
  );

  it.live("names no run to who must not have it, no key and no token", () =>
    Effect.gen(function* () {
      const tokens = [{ name: "red", token: Redacted.make(secret), page: false, metrics: true }];
      const provider = yield* providerOf(events);
      const it = yield* logging(provider.at, { lingerMs: longMs, tokens });
      const at = { url: `${it.url}/t/${secret}` };
      const first = ask(at, protocol, key);
      (yield* provider.nth(0)).send(4);
      const { headers } = yield* Effect.promise(() => first.head);
      const run = String(headers["x-recovery-run"]);
      yield* whole(attach(at, run, { authorization: "Bearer sk-SECRET-two" }));
      yield* whole(attach(at, `${run}?key=AIzaSECRETsecret-of-24-letters`, key));
      yield* whole(attach(it, run, key));
      const lines = yield* it.accessed(3);
      for (const line of lines.slice(0, 2)) {
        assert.deepInclude(line, { outcome: "refused", refused: "stream", status: 404, token: "red" });
        assert.notProperty(line, "run_id");
        assert.notProperty(line, "attached_at");
      }
      assert.deepInclude(lines[2], { outcome: "refused", refused: "token", status: 401 });
      (yield* provider.nth(0)).finish();
      yield* whole(first);
      yield* it.accessed(4);
      assert.notMatch(it.texts.join("\n"), /SECRET|a-token/);
    }).pipe(alone),
  );
});

describe("The metrics of a response that becomes too long", () => {
  it.live("count it once as evicted, by why", () =>
    Effect.gen(function* () {
      const long = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(1024 * 1024)}"}}]}\n\n`);
      const provider = yield* providerOf([...events.slice(0, 3), ...Array.from({ length: 9 }, () => long)]);
      const it = yield* logging(provider.at, { lingerMs: longMs });
      const first = ask(it, protocol, key);
      const sent = yield* provider.nth(0);
      sent.send(3);
      const { headers } = yield* Effect.promise(() => first.head);
      first.leave();
      yield* whole(first);
      sent.send(9);
      const [line] = yield* it.accessed(1);
      assert.deepInclude(line, { outcome: "left", run_id: String(headers["x-recovery-run"]) });
      yield* whole(attach(it, String(headers["x-recovery-run"]), key));
      const [, refused] = yield* it.accessed(2);
      assert.deepInclude(refused, { outcome: "refused", refused: "evicted", status: 410 });
      assert.sameMembers(yield* counted(it), [
        'evicted_total{why="run_bytes"} 1',
        'served_total{upstream="openai",outcome="left",reason="none"} 1',
        'served_total{upstream="none",outcome="refused",reason="evicted"} 1',
        "lingering_runs 0",
      ]);
    }).pipe(alone),
  );
});
