/** Readers whose sockets take nothing, and those that take little: who loses a place, and to whom. */
import { connect, type Socket } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { eventually, turn } from "../../Polling.ts";
import { bodies, paths } from "../GatewayCases.ts";
import { again, ask, attach, eventsOf, type Stage, stage, whole } from "./AttachCases.ts";

const protocol = "openai-chat" as const;
const long = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(1024 * 1024)}"}}]}\n\n`);
/** More than the system keeps for a socket that nobody reads. */
const events = [...Array.from({ length: 7 }, () => long), ...eventsOf(protocol)];
const all = Buffer.concat(events);

/** A client that sends its request and then reads nothing until it is told to. */
const unread = ({ url }: Pick<Stage, "url">): Socket => {
  const { hostname, port } = new URL(url);
  const body = JSON.stringify(bodies[protocol]);
  const socket = connect(Number(port), hostname).pause();
  socket.on("error", () => undefined);
  const head = [`POST ${paths[protocol]} HTTP/1.1`, `host: ${hostname}:${port}`, "content-type: application/json"];
  socket.write(`${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`);
  return socket;
};

/** A stage whose only reader has stopped reading in the middle. */
const stalled = Effect.gen(function* () {
  const it = yield* stage(events);
  const socket = unread(it);
  const provider = yield* it.nth(0);
  provider.send(6);
  // Its client takes no more once what it has not read is longer than the system keeps: then the run is not asked for more either.
  for (let bytes = 0, same = 0; bytes < long.byteLength || same < 500; same += 1) {
    const now = (yield* it.attachable)[0]?.bytes ?? 0;
    if (now !== bytes) same = 0;
    bytes = now;
    yield* turn;
  }
  return { ...it, provider, socket };
});

describe("A reader whose socket is silent", () => {
  it.live("loses its place to a repeat, which is given every byte; nothing is asked for again", () =>
    Effect.gen(function* () {
      const it = yield* stalled;
      const second = ask(it, protocol, again);
      it.provider.finish();
      const got = yield* whole(second);
      assert.isFalse(got.broken);
      assert.isTrue(got.body.equals(all));
      assert.lengthOf(it.asked, 1);
      it.socket.destroy();
    }),
  );

  it.live("loses it to one of two repeats: the other one does not take the place of a reader that lives", () =>
    Effect.gen(function* () {
      const it = yield* stalled;
      const repeats = [ask(it, protocol, again), ask(it, protocol, again)];
      (yield* it.nth(1)).finish();
      it.provider.finish();
      for (const repeat of repeats) {
        const got = yield* whole(repeat);
        assert.isFalse(got.broken);
        assert.isTrue(got.body.equals(all));
      }
      assert.lengthOf(it.asked, 2);
      it.socket.destroy();
    }),
  );

  it.live("keeps it from a request that says no word: programs sample", () =>
    Effect.gen(function* () {
      const it = yield* stalled;
      const second = ask(it, protocol);
      (yield* it.nth(1)).finish();
      assert.isTrue((yield* whole(second)).body.equals(all));
      let got = 0;
      it.socket.on("data", (chunk: Buffer) => {
        got += chunk.byteLength;
      });
      it.socket.resume();
      it.provider.finish();
      yield* eventually(() => (got >= all.byteLength ? true : undefined));
      it.socket.destroy();
    }),
  );
});

describe("A reader that takes little", () => {
  it.live("is given every byte in its order, and so is who attaches behind it", () =>
    Effect.gen(function* () {
      const it = yield* stage(events);
      const first = ask(it, protocol);
      const provider = yield* it.nth(0);
      provider.send(6);
      const head = yield* Effect.promise(() => first.head);
      head.pause();
      provider.finish();
      const run = String(head.headers["x-recovery-run"]);
      for (let pulls = 0; pulls < 50; pulls += 1) {
        head.resume();
        yield* turn;
        head.pause();
        yield* turn;
      }
      head.resume();
      assert.isTrue((yield* whole(first)).body.equals(all));
      const rest = yield* whole(attach(it, run, { "last-event-id": String(all.byteLength - 7) }));
      assert.isTrue(rest.body.equals(all.subarray(-7)));
      assert.lengthOf(it.asked, 1);
    }),
  );
});
