import { assert, describe, it } from "@effect/vitest";
import { attachTriesMax, GatewayOrigins, StreamAttachment } from "../../../src/adapters/fetch/StreamAttachment.ts";

const request = {
  method: "POST",
  url: "http://gateway.test/v1/responses",
  headers: [["authorization", "k"]] as const,
  body: "{}",
};
const kept = [
  ["x-recovery-run", "gw_1"],
  ["x-recovery-linger", "1000"],
] as const;

/** A gateway that gives the response on, and whose connection breaks each time before a byte of it. */
const attached = (origins = new GatewayOrigins()) => {
  const asked: Array<string> = [];
  const fetch: typeof globalThis.fetch = (url, init) => {
    const from = new Headers(init?.headers).get("last-event-id") ?? "";
    asked.push(`${init?.method} ${String(url)} ${from}`);
    return Promise.resolve(new Response("", { headers: { "x-recovery-attached": from } }));
  };
  const attachment = StreamAttachment.of({ status: 200, headers: kept }, request, [
    fetch,
    {},
    { sleep: () => Promise.resolve(), origins },
  ]);
  return { asked, attachment };
};

describe("What goes on with a gateway's response", () => {
  it("is asked for a bounded number of times in a row without a byte of it, also where it is given each time", async () => {
    const { asked, attachment } = attached();
    const { signal } = new AbortController();
    for (let time = 0; time < attachTriesMax; time += 1) assert.isDefined(await attachment?.requestRest(5, signal));
    assert.isUndefined(await attachment?.requestRest(5, signal));
    assert.lengthOf(asked, attachTriesMax);
    assert.isDefined(await attachment?.requestRest(6, signal), "a byte has come");
    assert.strictEqual(asked.at(-1), "GET http://gateway.test/recovery/streams/gw_1 6");
  });
});

describe("Where a gateway may stand", () => {
  it("is wherever nothing has answered yet, and not where a server has answered as none", () => {
    const origins = new GatewayOrigins();
    assert.isTrue(origins.mayBe("http://a"));
    origins.recordResponse("http://a", false, 200);
    assert.isFalse(origins.mayBe("http://a"));
  });

  it("is told by no error: what stands before a gateway may refuse in its stead", () => {
    const origins = new GatewayOrigins();
    origins.recordResponse("http://a", false, 502);
    assert.isTrue(origins.mayBe("http://a"));
  });

  it("stays where a run was kept once, whatever another request of the same gateway asks for", () => {
    const origins = new GatewayOrigins();
    origins.recordResponse("http://a", true, 200);
    origins.recordResponse("http://a", false, 200);
    assert.isTrue(origins.mayBe("http://a"));
  });

  it("is remembered for a bounded number of servers", () => {
    const origins = new GatewayOrigins();
    for (let port = 0; port <= 64; port += 1) origins.recordResponse(`http://a:${port}`, false, 200);
    assert.isTrue(origins.mayBe("http://a:0"));
    assert.isFalse(origins.mayBe("http://a:1"));
  });
});
