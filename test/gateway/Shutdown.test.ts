import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Fiber, Scope } from "effect";
import { Traffic } from "../../src/gateway/api/Traffic.ts";
import { eventually, polled } from "../Polling.ts";
import { bodies, fronted, paths } from "./GatewayCases.ts";

describe("a gateway that shuts down", () => {
  it.live("serves the first request of a connection that was made before, and ends", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make();
      const { gateway, services } = yield* Scope.provide(fronted({}), scope);
      const open = () => connect(gateway.port, "127.0.0.1");
      let [got, isOver] = ["", false];
      const socket = open();
      socket.on("data", (chunk) => {
        got += String(chunk);
      });
      socket.on("error", () => undefined);
      socket.on("close", () => {
        isOver = true;
      });
      yield* polled(
        Effect.map(Context.get(services, Traffic).status, ({ connections }) => (connections === 1 ? true : undefined)),
      );
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true });
      yield* polled(
        Effect.callback<true | undefined>((resume) => {
          const late = open();
          late.once("error", () => resume(Effect.succeed(true)));
          late.once("connect", () => {
            late.destroy();
            resume(Effect.undefined);
          });
        }),
      );
      const body = JSON.stringify(bodies["openai-chat"]);
      const head = ["host: localhost", "content-type: application/json", `content-length: ${Buffer.byteLength(body)}`];
      socket.write(`POST ${paths["openai-chat"]} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n${body}`);
      yield* Fiber.join(closing);
      yield* eventually(() => (isOver ? true : undefined));
      assert.match(got, /^HTTP\/1\.1 200 OK\r\n/);
      assert.include(got, "[DONE]");
      assert.isTrue(got.endsWith("0\r\n\r\n"), got);
    }),
  );
});
