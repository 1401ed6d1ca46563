import { assert, describe, it } from "@effect/vitest";
import { Origins } from "../../../src/client/connection/Origin.ts";
import { type ExchangeContext, UpstreamExchange } from "../../../src/gateway/upstream/UpstreamExchange.ts";

type Handler = Parameters<ExchangeContext["wire"]["agent"]["dispatch"]>[1];

/** An exchange over connections that only take its handler. */
const opened = () => {
  let taken: Handler | undefined;
  const wire = {
    agent: {
      dispatch: (_: unknown, handler: Handler) => {
        taken = handler;
        return true;
      },
    },
    connector: { withWaiting: (_: unknown, dispatch: () => unknown) => dispatch() },
  };
  const exchange = new UpstreamExchange(
    { method: "POST", url: "http://127.0.0.1:1/v1", headers: [], body: "{}" },
    { delivery: () => undefined, bytes: () => undefined },
    {
      // Of the connections only what is above is used.
      wire: wire as unknown as ExchangeContext["wire"],
      origin: new Origins().of("http://127.0.0.1:1"),
      monotonicMs: () => 0,
      nowMs: () => 0,
      onOver: () => undefined,
    },
  );
  if (taken === undefined) throw new Error("nothing was dispatched");
  return { exchange, handler: taken };
};

/** What undici gives of a request: its first bytes, and its headers as views of them. */
const controllerOf = (bytes: Buffer, ...lengths: ReadonlyArray<number>) => {
  let at = 0;
  const rawHeaders = lengths.map((length) => {
    at += length;
    return bytes.subarray(at - length, at);
  });
  return { aborted: false, paused: false, reason: null, rawHeaders, abort() {}, pause() {}, resume() {} };
};

describe("UpstreamExchange", () => {
  it("keeps the headers unchanged, without a view of the received bytes (L11)", () => {
    const { exchange, handler } = opened();
    const controller = controllerOf(Buffer.from("X-Oneé", "latin1"), 5, 1);
    handler.onRequestStart?.(controller, undefined);
    assert.isUndefined(exchange.pollHead());
    handler.onResponseStart?.(controller, 200, { "x-one": "é" }, "OK");
    const polled = exchange.pollHead();
    assert.deepInclude(polled?._tag === "head" ? polled.head.headers : [], ["X-One", "é"]);
    assert.isNull(controller.rawHeaders);
  });
});
