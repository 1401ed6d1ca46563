/**
 * The driver of a continuation gives nothing before its seam is proven, and loses nothing behind it: with a splice and a verifier
 * that do what they are told.
 */
import { assert, describe, it } from "@effect/vitest";
import { failed, none, type Observation, ping, terminal, text } from "../../../src/domain/Observation.ts";
import type { Splice, SplicedEvent } from "../../../src/provider/seam/Splice.ts";
import * as SplicedJoin from "../../../src/provider/seam/SplicedJoin.ts";
import type { TextGate } from "../../../src/provider/seam/TextGate.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import type { SeamStep, SeamVerifier } from "../../../src/seam/SeamVerifier.ts";

const part = (say: string, observation: Observation = text(say.length)): Part => ({
  protocol: "toy",
  event: { event: "message", data: JSON.stringify({ say }), bytes: 1 },
  json: { say },
  content: [],
  observation,
});

/** Wants `shown ` first; holds a trailing `?` until more comes; `twice` is a repetition. */
const verifier = (): SeamVerifier => {
  let seen = "";
  let held = "";
  const anchor = "shown ";
  const joined = (): SeamStep => {
    const out = held;
    held = "";
    return { type: "joined", text: out };
  };
  const isWhole = () => seen.length >= anchor.length;
  const take = (piece: string): SeamStep => {
    const before = seen;
    seen += piece;
    if (!seen.startsWith(anchor.slice(0, seen.length)) && !isWhole()) return { type: "unproven", fault: "differs" };
    if (!isWhole()) return { type: "wait" };
    const fresh = held + seen.slice(Math.max(before.length, anchor.length));
    if (fresh.includes("twice")) return { type: "unproven", fault: "repeats" };
    held = fresh.endsWith("?") ? "?" : "";
    return { type: "joined", text: held === "" ? fresh : fresh.slice(0, -1) };
  };
  return {
    cut: anchor.length,
    take,
    close: () => (isWhole() ? joined() : { type: "unproven", fault: "not_text" }),
    stop: () => (isWhole() ? joined() : { type: "unproven", fault: "stopped" }),
  };
};

/** Writes what passes; closes its gate at `end`, and says a fault that it is told. */
const splice = (closes = true): Splice => ({
  recordSent: () => undefined,
  response: () => ({ run: "shown ", characters: 6, refusal: undefined }),
  startContinuation: (gate: TextGate) => {
    const written = (said: string): ReadonlyArray<SplicedEvent> =>
      said === "" ? [] : [{ event: "message", json: { say: said } }];
    const ending = (): ReadonlyArray<SplicedEvent> => {
      const rest = closes ? written(gate.close()) : [];
      return gate.isJoined ? [...rest, { event: "message", json: { end: true } }] : [];
    };
    return {
      take: ({ json, observation }) => {
        const { say } = json as { readonly say: string }; // every part of these tests says something
        if (say === "call") {
          if (!gate.isJoined) gate.fail("not_text");
          return gate.isJoined ? [...written(gate.close()), { event: "message", json: { call: true } }] : [];
        }
        const said = written(gate.pass(say));
        return observation.terminal ? [...said, ...ending()] : said;
      },
      end: ending,
    };
  },
});

const make = (closes?: boolean) => SplicedJoin.make(splice(closes), verifier());
const end = part("", terminal("stop"));

const told = (spliced: SplicedJoin.Spliced): unknown =>
  spliced.type === "events"
    ? { joined: spliced.joined, characters: spliced.characters, events: spliced.events.map(({ json }) => json) }
    : spliced;

describe("SplicedJoin", () => {
  it("delivers nothing before the seam is proven, and only new text after it", () => {
    const join = make();
    assert.deepStrictEqual(told(join.take(part("sho"))), { joined: false, characters: 0, events: [] });
    assert.deepStrictEqual(told(join.take(part("wn and on"))), {
      joined: true,
      characters: 6,
      events: [{ say: "and on" }],
    });
    assert.deepStrictEqual(told(join.take(end)), { joined: true, characters: 0, events: [{ end: true }] });
  });

  it("delivers text held by the repetition guard with the end", () => {
    const join = make();
    assert.deepStrictEqual(told(join.take(part("shown is it?"))), {
      joined: true,
      characters: 5,
      events: [{ say: "is it" }],
    });
    assert.deepStrictEqual(told(join.take(end)), {
      joined: true,
      characters: 1,
      events: [{ say: "?" }, { end: true }],
    });
  });

  it("delivers held text at a clean end if the protocol has no terminal event", () => {
    const join = make();
    join.take(part("shown is it?"));
    assert.deepStrictEqual(told(join.end()), { joined: true, characters: 1, events: [{ say: "?" }, { end: true }] });
  });

  it("delivers held text before a call", () => {
    const join = make();
    join.take(part("shown is it?"));
    assert.deepStrictEqual(told(join.take(part("call"))), {
      joined: true,
      characters: 1,
      events: [{ say: "?" }, { call: true }],
    });
  });

  it("delivers nothing after the first fault", () => {
    const join = make();
    for (const say of ["Sure!", "shown and on", "call"])
      assert.deepStrictEqual(join.take(part(say)), { type: "unproven", fault: "differs" });
    assert.deepStrictEqual(join.end(), { type: "unproven", fault: "differs" });
  });

  it("never accepts a call as the seam", () => {
    assert.deepStrictEqual(make().take(part("call")), { type: "unproven", fault: "not_text" });
  });

  it("delivers no part of an event in which a repetition begins", () => {
    const join = make();
    join.take(part("shown and on"));
    assert.deepStrictEqual(join.take(part("and twice")), { type: "unproven", fault: "repeats" });
  });

  it("is unproven where the response stops inside the anchor", () => {
    const join = make();
    join.take(part("sho"));
    assert.deepStrictEqual(join.take(end), { type: "unproven", fault: "stopped" });
  });

  it("is unproven where the bytes end inside the anchor", () => {
    const join = make();
    join.take(part("sho"));
    assert.deepStrictEqual(join.end(), { type: "unproven", fault: "stopped" });
  });

  it("is unproven there also where its splice does not ask", () => {
    const join = make(false);
    join.take(part("sho"));
    assert.deepStrictEqual(join.end(), { type: "unproven", fault: "stopped" });
    const atMarker = make(false);
    atMarker.take(part("sho"));
    assert.deepStrictEqual(atMarker.take(end), { type: "unproven", fault: "stopped" });
  });

  it("does not end a response whose splice has left text behind", () => {
    const join = make(false);
    join.take(part("shown is it?"));
    assert.deepStrictEqual(join.take(end), { type: "unproven", fault: "unwritable" });
    const atEnd = make(false);
    atEnd.take(part("shown is it?"));
    assert.deepStrictEqual(atEnd.end(), { type: "unproven", fault: "unwritable" });
  });

  it("hands on what the provider says of its own failure, and no byte that keeps the connection alive", () => {
    const join = make();
    const broken = part("error", failed({ kind: "overloaded" }));
    assert.deepStrictEqual(join.take(broken), { type: "failed" });
    const comment: Part = {
      ...part(""),
      event: { event: "comment", data: "ping", bytes: 7 },
      json: undefined,
      observation: ping,
    };
    assert.deepStrictEqual(told(join.take(comment)), { joined: false, characters: 0, events: [] });
    const blank: Part = { ...comment, event: { event: "message", data: " ", bytes: 1 } };
    assert.deepStrictEqual(told(join.take(blank)), { joined: false, characters: 0, events: [] });
  });

  it("joins a finish whose call cannot be read as any other", () => {
    const join = make();
    join.take(part("shown and on"));
    const finish = part("", { ...none, terminal: true, finish: "stop", failure: { kind: "invalid_tool_input" } });
    assert.deepStrictEqual(told(join.take(finish)), { joined: true, characters: 0, events: [{ end: true }] });
  });
});
