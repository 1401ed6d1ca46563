/** No client keeps the others out (L11). */
import { PassThrough } from "node:stream";
import { assert, describe, it } from "@effect/vitest";
import { ownDescriptors } from "../../../src/gateway/limits/Descriptors.ts";
import { Connections, holderOf, Shares } from "../../../src/gateway/limits/Shares.ts";

/** A socket of which only its ends, its close and its destruction are used. */
const socketOf = (remotePort: number) => {
  const socket = Object.assign(new PassThrough(), { remoteAddress: "10.0.0.1", remotePort });
  // The counters read nothing else of a socket.
  return socket as unknown as Parameters<Connections["register"]>[0];
};

const closed = () => new Promise((next) => setImmediate(next));

describe("the client that something is held for", () => {
  it("is the token if there are several, else the address, and nobody on the own machine", () => {
    assert.strictEqual(holderOf("a", "127.0.0.1", ["a", "b"]), "a");
    assert.strictEqual(holderOf("a", "10.0.0.1", ["a"]), "10.0.0.1");
    for (const address of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) assert.isUndefined(holderOf("a", address, ["a"]));
    assert.isUndefined(holderOf(undefined, "127.8.8.8", []));
  });
});

describe("a share", () => {
  it("is half of what the others leave", () => {
    const shares = new Shares();
    assert.isTrue(shares.mayHold("a", 50, 100));
    assert.isFalse(shares.mayHold("a", 51, 100));
    shares.add("a", 50);
    assert.isFalse(shares.mayHold("a", 1, 100));
    assert.isTrue(shares.mayHold("b", 25, 100));
    assert.isFalse(shares.mayHold("b", 26, 100));
    assert.isTrue(shares.mayHold(undefined, 100, 100));
    shares.add("a", -50);
    assert.strictEqual(shares.total, 0);
  });
});

describe("connections", () => {
  it("that say nothing are at most half of all: the oldest gives its place up", async () => {
    const connections = new Connections(4);
    const sockets = [1, 2, 3].map(socketOf);
    for (const socket of sockets) connections.register(socket);
    await closed();
    assert.deepStrictEqual(
      sockets.map(({ destroyed }) => destroyed),
      [true, false, false],
    );
    assert.strictEqual(connections.open, 2);
  });

  it("for which there are no descriptors are closed, and the others stay", async () => {
    let short = 0;
    const connections = new Connections(
      100,
      () => {
        short += 1;
      },
      () => ownDescriptors + 4,
    );
    const sockets = [1, 2, 3].map(socketOf);
    for (const socket of sockets) connections.register(socket);
    await closed();
    assert.deepStrictEqual(
      sockets.map(({ destroyed }) => destroyed),
      [false, false, true],
    );
    assert.strictEqual(short, 1);
  });

  it("of one client are at most half of what the others leave, however many requests they carry", async () => {
    const connections = new Connections(8);
    const claimed = (port: number, holder: string) => {
      const socket = socketOf(port);
      connections.register(socket);
      const may = [connections.claim(socket, holder), connections.claim(socket, holder)];
      if (may.includes(false)) socket.destroy();
      return [socket, may.every(Boolean)] as const;
    };
    const hog = [1, 2, 3, 4, 5].map((port) => claimed(port, "hog"));
    await closed();
    assert.deepStrictEqual(
      hog.map(([, may]) => may),
      [true, true, true, true, false],
    );
    hog[0]?.[0].destroy();
    await closed();
    assert.isTrue(claimed(6, "hog")[1]);
    assert.isTrue(claimed(7, "other")[1]);
    assert.strictEqual(connections.open, 5);
  });
});
