import { Socket } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { credentialIn } from "../../src/adapters/relay/RelayTransport.ts";
import { mannerOf } from "../../src/gateway/clients/Manner.ts";
import { GatewayError, type GatewayOptions, settingsOf } from "../../src/gateway/config/GatewayOptions.ts";
import { headOf } from "../../src/gateway/RequestHead.ts";
import { addressOf } from "../../src/gateway/routing/Address.ts";
import { requestHeadersOf } from "../../src/gateway/upstream/Headers.ts";

const settingsFor = (options: GatewayOptions = {}) => {
  const settings = settingsOf(options);
  return settings instanceof GatewayError ? assert.fail(settings.message) : settings;
};

const pathOf = (target: string) => {
  const address = addressOf(target);
  return "refused" in address ? assert.fail(address.refused.message) : address;
};

const rawOf = (more: ReadonlyArray<string> = [], length = 10): Array<string> => [
  ...["Host", "127.0.0.1", "Content-Length", String(length), "Authorization", "Bearer sk-1"],
  ...more,
];

describe("the headers of a request", () => {
  it("are one list for the requests of a connection that repeat them, whatever their length is", () => {
    const socket = new Socket();
    const first = requestHeadersOf({ socket, rawHeaders: rawOf() });
    assert.strictEqual(requestHeadersOf({ socket, rawHeaders: rawOf([], 20) }), first);
    assert.deepStrictEqual(first, [
      ["Host", "127.0.0.1"],
      ["Authorization", "Bearer sk-1"],
    ]);
  });

  it("are another list for another value, for a header more or less, and on another connection", () => {
    const socket = new Socket();
    for (const more of [[], ["Accept", "*/*"], ["Accept", "text/plain"], ["accept", "text/plain"], []]) {
      const rawHeaders = rawOf(more);
      const before = requestHeadersOf({ socket: new Socket(), rawHeaders });
      const headers = requestHeadersOf({ socket, rawHeaders });
      assert.notStrictEqual(headers, before);
      assert.deepStrictEqual(headers, before);
    }
  });
});

describe("the decision about a head", () => {
  const headers = requestHeadersOf({ socket: new Socket(), rawHeaders: rawOf() });
  const address = pathOf("/v1/chat/completions");
  const settings = settingsFor();

  it("is taken once for all requests of a connection that have the same head", () => {
    const head = headOf({ method: "POST", headers, address }, settings);
    assert.strictEqual(headOf({ method: "POST", headers, address }, settings), head);
    if ("reason" in head.admitted) return assert.fail(head.admitted.message);
    assert.strictEqual(head.destination(head.admitted), head.destination(head.admitted));
    assert.strictEqual(head.destination(head.admitted).upstream, "openai");
  });

  it("is taken again for another method, path or configuration", () => {
    const head = () => headOf({ method: "POST", headers, address }, settings);
    head();
    const strict = settingsFor({ token: "a-token-of-24-characters" });
    const { admitted } = headOf({ method: "POST", headers, address }, strict);
    assert.strictEqual("reason" in admitted ? admitted.reason : "", "token");
    assert.isFalse("reason" in head().admitted);
    for (const other of [
      { method: "GET", headers, address },
      { method: "POST", headers, address: pathOf("/v1/responses") },
    ]) {
      const before = head();
      assert.notStrictEqual(headOf(other, settings), before);
    }
  });
});

describe("what is derived from a list of headers", () => {
  const headers = requestHeadersOf({ socket: new Socket(), rawHeaders: rawOf() });

  it("is the credential of each address, which may contain a key", () => {
    const [plain, keyed] = ["https://a.example/v1", "https://a.example/v1?key=AIza-1"];
    const credentials = [plain, keyed, plain, keyed].map((url) => credentialIn(url, headers));
    assert.strictEqual(credentials[0], credentials[2]);
    assert.strictEqual(credentials[1], credentials[3]);
    assert.notStrictEqual(credentials[0], credentials[1]);
  });

  it("is the treatment in each protocol, mode and configuration", () => {
    const protocol = "openai-chat";
    const [live, held] = [
      mannerOf({ headers, protocol, asked: "live" }),
      mannerOf({ headers, protocol, asked: "on_complete" }),
    ];
    assert.deepStrictEqual([live.reveal, held.reveal], ["live", "on_complete"]);
    const asked = "live" as const;
    assert.strictEqual(mannerOf({ headers, protocol, asked }, { holdMaxMs: 5 }).holdMaxMs, 5);
    assert.notStrictEqual(mannerOf({ headers, protocol, asked }).holdMaxMs, 5);
    assert.strictEqual(mannerOf({ headers, protocol: "anthropic-messages", asked }).client, live.client);
  });
});
