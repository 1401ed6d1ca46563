import { assert, describe, it } from "@effect/vitest";
import { readPathPattern } from "../../../src/gateway/config/PathPattern.ts";
import { type PathVerdict, verdictOf } from "../../../src/gateway/routing/AccountPaths.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { allIds, samples } from "../../samples/index.ts";

const all = allIds;

const verdict = (
  asked: string,
  protocols: ReadonlyArray<ProtocolId> | undefined = undefined,
  paths: ReadonlyArray<string> = [],
): PathVerdict => {
  const [method = "", target = ""] = asked.split(" ");
  const [path = "", query = ""] = target.split("?");
  const patterns = paths.map((entry) => {
    const pattern = readPathPattern(entry);
    if (pattern === undefined) throw new Error(`${entry} cannot be read`);
    return pattern;
  });
  return verdictOf({ method, path, query: new URLSearchParams(query) }, { protocols, paths: patterns });
};

const isSent = (...given: Parameters<typeof verdict>): boolean => verdict(...given)._tag !== "Refused";

const models = ["GET /v1/models", "GET /models", "HEAD /v1/models", "GET /v1beta/models", "GET /v1beta/models/m"];

/** What an account holds beside its models. */
const account = [
  ...["GET /v1/files", "DELETE /v1/files/file-1", "POST /v1/files", "GET /v1/files/file-1/content", "POST /v1/uploads"],
  ...["GET /v1/chat/completions", "GET /v1/chat/completions/c1", "DELETE /v1/chat/completions/c1"],
  ...["GET /v1/responses", "PUT /v1/responses/resp_1", "POST /v1/responses/resp_1", "GET /v1/responses/a/b"],
  ...["POST /v1/conversations", "GET /v1/conversations/conv_1/items", "DELETE /v1/conversations/conv_1"],
  ...["GET /v1/organization/admin_api_keys", "POST /v1/organization/admin_api_keys", "GET /v1/organization/costs"],
  ...[
    "POST /v1/batches",
    "GET /v1/batches",
    "POST /v1/fine_tuning/jobs",
    "GET /v1/vector_stores",
    "GET /v1/containers",
  ],
  ...["POST /v1/images/generations", "POST /v1/audio/speech", "POST /v1/realtime/client_secrets", "GET /v1/assistants"],
  ...["POST /v1/complete", "POST /v1/moderations", "DELETE /v1/models/ft:gpt-4o:org::1", "POST /v1/models"],
  ...["GET /v1/messages/batches", "POST /v1/messages/batches", "GET /v1/organizations/users", "POST /v1/complete"],
  ...["GET /v1/organizations/api_keys", "GET /v1/messages", "GET /v1/skills"],
  ...["GET /v1beta/files", "POST /upload/v1beta/files", "GET /v1beta/cachedContents", "GET /v1beta/interactions/v1_a"],
  ...[
    "POST /v1beta/models/m:batchGenerateContent",
    "POST /v1beta/models/m:asyncBatchEmbedContent",
    "GET /v1beta/batches",
  ],
  ...["POST /v1beta/models/m:predict", "GET /v1beta/models/m/operations", "POST /v1beta/tunedModels", "POST /batch"],
  ...[
    "POST /v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict",
    "GET /v1/projects/p/locations/l/jobs",
  ],
  ...["POST /v1internal:onboardUser", "POST /model/m/async-invoke", "POST /api/pull", "POST /key/generate", "GET /"],
  "GET ",
];

/** Spellings of what is refused, and of what is sent only as it is written. */
const tricks = [
  ...["POST /v1/chat/completions/../../files", "POST /v1/chat/completions/..", "POST /v1/./chat/completions"],
  ...["POST //v1/chat/completions", "POST /v1//chat/completions", "POST /v1/chat/completions/", "GET /v1/models/"],
  ...["POST /v1/chat/%63ompletions", "POST /v1/chat%2Fcompletions", "POST /v1/chat/completions%2f..%2f..%2ffiles"],
  ...["POST /v1/chat/completions;/files", "POST /v1/chat/completions;x=1", "POST /V1/chat/completions"],
  ...[
    "POST /v1/Chat/Completions",
    "post /v1/chat/completions",
    "POST /v1/chat/completions%00",
    "POST /v1/chat/completions%20",
  ],
  ...["GET /v1/models/..%2Ffiles", "GET /v1/models/%2e%2e%2Ffiles", "GET /v1/models/x%2F..%2F..%2Ffiles"],
  ...["GET /v1/models/x%2F.%2Fy", "GET /v1/models/..", "GET /v1/models/../files", "GET /v1/models/x%5C..%5Cfiles"],
  ...["GET /v1/models/x%252F..%252Ffiles", "GET /v1/responses/resp_1%2F..%2F..%2Ffiles", "GET /v1/responses/.."],
  ...["GET /v1/responses/.", "GET /v1/responses/resp_1;a", "GET /v1/responses/", "DELETE /v1/responses/resp_1/"],
  ...["POST /v1/files/chat/completions", "POST /v1/organization/v1/messages", "POST /x/v1/responses"],
  ...["GET /v1/models?$httpMethod=DELETE", "GET /v1/models?%24httpHeaders=a", "POST /v1/messages?_method=GET"],
];

describe("what is asked with the operator's credential", () => {
  it("is every model request, token count and list of models of the upstream's protocols", () => {
    for (const protocol of all)
      for (const call of samples[protocol].calls) {
        assert.isTrue(isSent(call), call);
        assert.isTrue(isSent(call, [protocol]), `${call} of ${protocol}`);
        assert.isFalse(
          isSent(
            call,
            all.filter((id) => id !== protocol),
          ),
          `${call} without ${protocol}`,
        );
      }
    for (const call of models) for (const protocol of all) assert.isTrue(isSent(call, [protocol]), call);
    assert.isTrue(isSent("GET /v1/models/meta-llama%2FLlama-3"));
    assert.isTrue(isSent("GET /v1/models/ft:gpt-4o:org::id"));
  });

  it("is an embedding, which changes nothing", () => {
    for (const id of ["openai-chat", "openai-responses"] as const) assert.isTrue(isSent("POST /v1/embeddings", [id]));
    assert.isFalse(isSent("POST /v1/embeddings", ["anthropic-messages"]));
    assert.isFalse(isSent("GET /v1/embeddings"));
  });

  it("is nothing else of the account", () => {
    for (const call of account) assert.deepStrictEqual(verdict(call), { _tag: "Refused", why: "path" }, call);
  });

  it("is no path in another spelling", () => {
    for (const call of tricks) assert.isFalse(isSent(call), call);
  });

  it("names what the account stores, so that its owner can be asked", () => {
    const stored = { _tag: "Stored", id: "resp_1", isListed: false } as const;
    for (const call of ["GET /v1/responses/resp_1", "DELETE /responses/resp_1", "POST /v1/responses/resp_1/cancel"])
      assert.deepStrictEqual(verdict(call), stored, call);
    for (const call of ["POST /v1/responses", "POST /responses/compact", "POST /v1/responses/input_tokens"])
      assert.deepStrictEqual(verdict(call), { _tag: "Named" }, call);
    assert.deepStrictEqual(verdict("POST /v1/chat/completions"), { _tag: "Sent" });
    assert.deepStrictEqual(verdict("GET /v1/responses/resp_1", undefined, ["GET /v1/responses/*"]), {
      ...stored,
      isListed: true,
    });
    assert.deepStrictEqual(verdict("GET /v1/conversations/c_1/items", ["openai-chat"], ["/v1/conversations/*/items"]), {
      ...{ _tag: "Stored", id: "c_1", isListed: true },
    });
    const proxied = ["/proxy/v1/responses", "/proxy/v1/responses/*"];
    assert.deepStrictEqual(verdict("POST /proxy/v1/responses", undefined, proxied), { _tag: "Named" });
    assert.deepInclude(verdict("GET /proxy/v1/responses/resp_1", undefined, proxied), { _tag: "Stored", id: "resp_1" });
    assert.deepStrictEqual(verdict("POST /v1/conversations", undefined, ["POST /v1/conversations"]), { _tag: "Named" });
  });
});

describe("paths", () => {
  it("permit what they say, whatever version stands in front", () => {
    const files = ["GET /v1/files", "DELETE /v1/files/*", "/v1/batches"];
    for (const call of ["GET /v1/files", "GET /files", "DELETE /v1/files/f-1", "POST /v1/batches", "GET /batches"])
      assert.isTrue(isSent(call, ["openai-chat"], files), call);
    for (const call of [
      ...["POST /v1/files", "GET /v1/files/f-1", "HEAD /v1/files", "DELETE /v1/files", "DELETE /v1/files/"],
      ...["DELETE /v1/files/f/g", "DELETE /v1/files/f%2Fg", "DELETE /v1/files/..", "GET /v1/filesx", "GET /x/v1/files"],
      ...["GET /v1/batches/b", "DELETE /v1/files/f;g"],
    ])
      assert.isFalse(isSent(call, ["openai-chat"], files), call);
    assert.isTrue(isSent("POST /v1beta/models/imagen-4:predict", undefined, ["POST /v1beta/models/*:predict"]));
    assert.isFalse(isSent("POST /v1beta/modelsXm:predict", undefined, ["POST /v1beta/models/*:predict"]));
  });

  it("are read only in their form", () => {
    for (const text of ["GET /v1/files", "/v1/files", "GET /v1/files/*/content", "GET /v1/models/*:predict"])
      assert.isDefined(readPathPattern(text), text);
    for (const text of [
      ...["", "GET", "*", "v1/files", "get /v1/files", "GET  /v1/files", "GET /v1/files ", "TRACE /v1/files", "GET /"],
      ...["GET /v1/../files", "GET /v1/./files", "GET //files", "GET /v1/files/", "GET /v1/files?x", "GET /v1/%66iles"],
      ...["GET /v1/(a|b)", "GET /v1/**", `GET /${"a".repeat(300)}`],
    ])
      assert.isUndefined(readPathPattern(text), text);
  });
});
