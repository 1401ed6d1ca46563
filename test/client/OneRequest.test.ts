import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { Answer, BreakPlace } from "../../src/testing/script/FaultScript.ts";
import { attempt, turns } from "./Attempt.ts";
import { protocols } from "./Protocols.ts";

type Scripted = typeof Answer.Encoded;

const content = [{ reasoning: 1 }, { text: 3 }, { tool: "bash", input: { cmd: "ls ü" } }];
const beforeHead: ReadonlyArray<BreakPlace> = ["accept", "request", "before_head"];
const afterHead: ReadonlyArray<BreakPlace> = ["after_head", "byte", "event", "utf8", "tool_arguments", "terminal"];

const breaks: ReadonlyArray<Scripted> = [
  ...(["rst", "fin"] as const).flatMap((kind) =>
    [...beforeHead, ...afterHead].map((at) => ({ content, break: { kind, at, n: 1 } })),
  ),
  ...afterHead.map((at) => ({ content, break: { kind: "end" as const, at, n: 1 } })),
];

const now = { "retry-after": "0", "retry-after-ms": "0", "x-should-retry": "true", location: "/v1/chat/completions" };
const statuses: ReadonlyArray<Scripted> = [
  300, 301, 302, 303, 307, 308, 401, 407, 408, 409, 421, 425, 429, 500, 502, 503, 504, 529,
].map((status) => ({ status, headers: now }));

const nameOf = ({ break: at, status }: Scripted): string =>
  at === undefined ? `status ${status}` : `${at.kind} at ${at.at}`;

describe("no layer below the client repeats a request", () => {
  // The answer after the one under test is healthy, so a layer that repeats the request would succeed and be noticed.
  for (const answer of [...breaks, ...statuses]) {
    for (const method of ["POST", "GET"] as const) {
      it.live(`one ${method} after ${nameOf(answer)}, on a fresh connection and on a kept one`, () =>
        Effect.gen(function* () {
          for (const warm of [false, true]) {
            const healthy = { content: [{ text: 1 }] };
            const server = yield* FaultProvider.make({
              script: { answers: [...(warm ? [healthy] : []), answer, healthy] },
            });
            const client = yield* ProviderClient.make({ connections: 1 });
            const url = server.endpoint("openai-chat");
            const call = attempt(client, protocols["openai-chat"], { url, method });
            if (warm) assert.strictEqual((yield* call).error, undefined);
            const before = (yield* server.log).length;
            const seen = yield* call;
            assert.isDefined(seen.error);
            yield* turns(20);
            const log = (yield* server.log).slice(before);
            assert.strictEqual(log.length, 1);
            if (warm && answer.break?.at !== "accept") assert.isTrue(log[0]?.reused);
          }
        }),
      );
    }
  }

  it.live("one request after a kept connection that died, by reset and by FIN", () =>
    Effect.gen(function* () {
      for (const kind of ["rst", "fin"] as const) {
        for (const method of ["POST", "GET"] as const) {
          const server = yield* FaultProvider.make({
            script: { answers: [{ content: [{ text: 1 }], break: { kind, at: "next_request" } }, {}] },
          });
          const client = yield* ProviderClient.make({ connections: 1 });
          const call = attempt(client, protocols["openai-chat"], { url: server.endpoint("openai-chat"), method });
          yield* call;
          assert.strictEqual((yield* call).error?.reason.kind, "transport");
          yield* turns(20);
          assert.strictEqual((yield* server.log).length, 2);
        }
      }
    }),
  );
});
