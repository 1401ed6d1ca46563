import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { readConfig } from "../../../src/gateway/config/ConfigFile.ts";
import { GatewayError, type GatewayOptions, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import type { ProgramOptions } from "../../../src/gateway/config/ProgramOptions.ts";

const url = "https://llm.example/v1";

const read = (config: object) =>
  readConfig({
    text: JSON.stringify({
      upstreams: {
        azure: { url, protocols: ["openai-chat"], credential: { env: "KEY" } },
        claude: { url, protocols: ["anthropic-messages"] },
        plain: { url },
        chat: { url, protocols: ["openai-chat", "openai-responses"] },
      },
      ...config,
    }),
    shared: true,
    env: () => "a-secret-of-24-characters",
    file: () => undefined,
  });

const optionsIn = (config: object): ProgramOptions => {
  const found = read(config);
  if ("problems" in found) throw new Error(JSON.stringify(found.problems));
  return found.options;
};

const problemsIn = (config: object): ReadonlyArray<string> => {
  const found = read(config);
  return "problems" in found ? found.problems.map(({ message, path }) => `${path}: ${message}`) : [];
};

const refusal = (options: GatewayOptions): string => {
  const settings = settingsOf(options);
  return settings instanceof GatewayError ? settings.message : "";
};

describe("routes of a configuration file", () => {
  it("are read into their options, with the finishes that move; an id is the upstream's name where it is left out", () => {
    const { routes } = optionsIn({
      routes: {
        openai: [
          {
            ...{ id: "eu", upstream: "azure", models: ["gpt-4o*"] },
            set: { headers: { "x-team": "a" }, body: { model: "gpt-4o-eu", "stream_options.include_usage": true } },
            drop: { headers: ["openai-beta"], body: ["reasoning_effort"] },
          },
          { upstream: "plain" },
        ],
      },
      moves_on: { openai: ["refused", "empty"] },
    });
    assert.deepStrictEqual(routes, {
      openai: {
        movesOn: ["refused", "empty"],
        routes: [
          {
            ...{ id: "eu", upstream: "azure", models: ["gpt-4o*"] },
            set: {
              headers: [["x-team", "a"]],
              body: [
                ["model", "gpt-4o-eu"],
                ["stream_options.include_usage", true],
              ],
            },
            drop: { headers: ["openai-beta"], body: ["reasoning_effort"] },
          },
          { id: "plain", upstream: "plain", set: { headers: [], body: [] }, drop: { headers: [], body: [] } },
        ],
      },
    });
    assert.notProperty(optionsIn({}), "routes");
  });

  it("tell all that is wrong, each by its path", () => {
    const route = (more: object) => ({ routes: { openai: [{ upstream: "plain", ...more }] } });
    const cases: ReadonlyArray<readonly [object, string]> = [
      [{ routes: { nobody: [{ upstream: "plain" }] } }, "$.routes.nobody: expected the name of an upstream"],
      [{ routes: { openai: [] } }, "$.routes.openai: expected 1 to 15 routes"],
      [route({ upstream: "nobody" }), "$.routes.openai[0].upstream: expected the name of an upstream"],
      [route({ upstream: undefined }), "$.routes.openai[0].upstream: expected this key"],
      [route({ url }), "$.routes.openai[0].url: expected a known key"],
      [route({ id: "EU" }), "$.routes.openai[0].id: expected a name of 1 to 32 of a-z, 0-9 and -"],
      [
        route({ id: "openai" }),
        "$.routes.openai[0].id: expected a different id: this one is the upstream's own, which is the first route",
      ],
      [
        { routes: { openai: [{ upstream: "plain" }, { upstream: "plain" }] } },
        "$.routes.openai[1].id: expected each id once per list",
      ],
      [
        route({ id: "azure" }),
        "$.routes.openai[0].id: expected an id that no other upstream uses as an id or as its name",
      ],
      [
        { routes: { openai: [{ id: "eu", upstream: "plain" }], gemini: [{ id: "eu", upstream: "chat" }] } },
        "$.routes.gemini[0].id: expected an id that no other upstream uses as an id or as its name",
      ],
      [
        { routes: { azure: [{ upstream: "claude" }] } },
        "$.routes.azure[0].upstream: expected an upstream with one of these protocols (openai-chat)",
      ],
      [
        { routes: { openai: [{ id: "again", upstream: "openai" }] } },
        "$.routes.openai[0].upstream: expected a different upstream, or fields in `set` or `drop`",
      ],
      [route({ models: [] }), "$.routes.openai[0].models: expected 1 to 64 models"],
      [route({ models: [""] }), "$.routes.openai[0].models[0]: expected 1 to 128 characters"],
      [
        route({ set: { headers: { Host: "x" } } }),
        "$.routes.openai[0].set.headers.Host: expected the name of a request header",
      ],
      [
        route({ set: { headers: { "Content-Encoding": "gzip" } } }),
        "$.routes.openai[0].set.headers.Content-Encoding: expected the name of a request header",
      ],
      [
        route({ set: { headers: { "x-recovery-token": "x" } } }),
        "$.routes.openai[0].set.headers.x-recovery-token: expected the name of a request header",
      ],
      [
        route({ set: { headers: { Authorization: "Bearer x" } } }),
        "$.routes.openai[0].set.headers.Authorization: expected a header without a credential: the upstream holds the credential",
      ],
      [
        route({ set: { headers: { "x-a": "a\nb" } } }),
        "$.routes.openai[0].set.headers.x-a: expected a valid header value",
      ],
      [
        route({ set: { headers: { "x-a": "1" } }, drop: { headers: ["X-A"] } }),
        "$.routes.openai[0].drop.headers[0]: expected each header once",
      ],
      [
        route({ set: { body: { "a.b.c": 1 } } }),
        '$.routes.openai[0].set.body["a.b.c"]: expected a field of the body, or two names joined by a dot',
      ],
      [
        route({ set: { body: { stream: false } } }),
        "$.routes.openai[0].set.body.stream: expected a field that does not change the prompt or the form of the response",
      ],
      [
        route({ set: { body: { "prompt.id": "p" } } }),
        '$.routes.openai[0].set.body["prompt.id"]: expected a field that does not change the prompt or the form of the response',
      ],
      [
        route({ drop: { body: ["conversation.id"] } }),
        "$.routes.openai[0].drop.body[0]: expected a field that does not change the prompt or the form of the response",
      ],
      [route({ set: { body: { model: 1 } } }), "$.routes.openai[0].set.body.model: expected the name of a model"],
      [
        route({ set: { body: { a: 1 } }, drop: { body: ["a.b"] } }),
        "$.routes.openai[0].set.body.a: expected each field once, and no field inside another",
      ],
      [{ moves_on: { openai: ["refused"] } }, "$.moves_on.openai: expected the name of an upstream with routes"],
      [
        { ...route({}), moves_on: { openai: ["stalled"] } },
        '$.moves_on.openai[0]: expected "refused" | "empty" | "model_length"',
      ],
    ];
    for (const [config, problem] of cases)
      assert.include(
        problemsIn(config).map((it) => it.replace(/, got .*/, "")),
        problem,
        JSON.stringify(config),
      );
    assert.isAbove(problemsIn({ routes: { openai: [{ upstream: "x" }, { upstream: "y", id: "Z" }] } }).length, 2);
  });

  it("know one id for one upstream in two lists", () => {
    const same = [{ id: "eu", upstream: "plain", set: { body: { model: "a" } } }];
    assert.deepStrictEqual(problemsIn({ routes: { openai: same, chat: same } }), []);
  });
});

describe("settingsOf, of routes", () => {
  const empty = { set: { headers: [], body: [] }, drop: { headers: [], body: [] } };
  const routes = { openai: { movesOn: [], routes: [{ id: "eu", upstream: "eu", ...empty }] } };
  const eu = { name: "eu", url, headers: [] };

  it("refuses to serve a route with a credential of its own where there is no token", () => {
    const credential = Redacted.make("secret-of-the-operator");
    for (const own of [
      { ...eu, credential },
      { ...eu, headers: [["x-api-key", "secret-of-the-operator"] as const] },
    ]) {
      const said = refusal({ routes, named: [own] });
      assert.match(said, /^routes: the route eu has its own credential \(upstream eu\), so clients need a token/);
      assert.notInclude(said, "secret");
      assert.strictEqual(refusal({ routes, named: [own], token: "a-token-of-24-characters" }), "");
    }
  });

  it("serves routes that all use the client's credential without a token", () => {
    assert.strictEqual(refusal({ routes, named: [eu] }), "");
  });

  it("reports errors in routes that a program passes", () => {
    assert.strictEqual(refusal({ routes }), "routes.openai[0].upstream: expected the name of an upstream");
  });
});
