import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect } from "effect";
import { FaultProvider, FaultScript } from "../../../src/testing/index.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Posts to a fault server and gives everything that came until its socket was closed; tells of each chunk. */
const post = (port: number, heard: (text: string) => void = () => {}) =>
  Effect.callback<{ readonly text: string; readonly chunks: number; readonly reset: boolean }>((resume) => {
    let text = "";
    let chunks = 0;
    let reset = false;
    const socket = connect(port, "127.0.0.1", () => {
      socket.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}");
    });
    socket.on("data", (bytes) => {
      chunks += 1;
      text += bytes.toString();
      heard(text);
    });
    socket.on("error", () => {
      reset = true;
    });
    socket.on("close", () => resume(Effect.succeed({ text, chunks, reset })));
    return Effect.sync(() => socket.destroy());
  });

describe("what a fault server does for the matrix", () => {
  it.live("holds a break back until its test lets it happen", () =>
    Effect.gen(function* () {
      const seen = Deferred.makeUnsafe<void>();
      const order: Array<string> = [];
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 2 }], break: { kind: "rst", at: "terminal" } }] },
        beforeBreak: (row) =>
          Effect.andThen(
            Deferred.await(seen),
            Effect.sync(() => order.push(`break of request ${row.number} after ${row.text.length} deltas`)),
          ),
      });
      const answer = yield* post(server.port, (text) => {
        if (!text.includes("r1.1·") || order.length > 0) return;
        order.push("the client has seen the last delta");
        Deferred.doneUnsafe(seen, Effect.void);
      });
      assert.deepStrictEqual(order, ["the client has seen the last delta", "break of request 1 after 2 deltas"]);
      assert.isTrue(answer.reset);
      assert.notInclude(answer.text, "[DONE]");
    }).pipe(Effect.scoped),
  );

  it.live("sends a script's own bytes where they stand among the blocks", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 1 }, { bytes: base64(": mine\n\n") }, { text: 1 }], framing: "eof" }] },
      });
      const { text } = yield* post(server.port);
      assert.isTrue(text.indexOf("r1.0·") < text.indexOf(": mine") && text.indexOf(": mine") < text.indexOf("r1.1·"));
    }).pipe(Effect.scoped),
  );

  it.live("sends a whole answer in one write where it is told to", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 50 }], framing: "eof", one_write: true }] },
      });
      const answer = yield* post(server.port);
      // The head is a write of its own.
      assert.isAtMost(answer.chunks, 2);
      assert.include(answer.text, "[DONE]");
    }).pipe(Effect.scoped),
  );

  it.effect("refuses bytes that are not base64", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(FaultScript.decode({ answers: [{ content: [{ bytes: "not base64!" }] }] }));
      assert.strictEqual(error.reason, "invalid");
    }),
  );
});
