import { assert, describe, it, vi } from "@effect/vitest";
import { Effect } from "effect";
import {
  type JsonObject,
  membersInTurns,
  membersMax,
  membersOf,
  nameBytesMax,
} from "../../../../src/adapters/relay/form/JsonMembers.ts";
import { levelsMax } from "../../../../src/adapters/relay/form/JsonScan.ts";
import { seeded } from "../../../Seeded.ts";
import { nearlyJson, parsed } from "./JsonTexts.ts";

/** The object that the listed members spell, of which the last of a name counts. */
const listedValue = (bytes: Uint8Array, { close, members, open }: JsonObject): Record<string, unknown> => {
  assert.deepStrictEqual([bytes[open], bytes[close]], [0x7b, 0x7d]);
  return Object.fromEntries(
    members.map(({ from, inside, key, name, to }) => {
      const text = (start: number, end: number) => new TextDecoder().decode(bytes.subarray(start, end));
      assert.match(text(name, from), /^"[\s\S]*"\s*:\s*$/);
      const value: unknown = JSON.parse(text(from, to));
      assert.strictEqual(inside !== undefined, text(from, to).startsWith("{"));
      return [key ?? assert.fail("no key"), inside === undefined ? value : innerValue(bytes, inside)];
    }),
  );
};

/** The second level lists no members of its members. */
const innerValue = (bytes: Uint8Array, { members }: JsonObject): Record<string, unknown> =>
  Object.fromEntries(
    members.map(({ from, inside, key, to }) => {
      assert.isUndefined(inside);
      return [key ?? assert.fail("no key"), JSON.parse(new TextDecoder().decode(bytes.subarray(from, to)))];
    }),
  );

describe("The members of a body", () => {
  it.effect("are those of its value, in one turn and in many, and none where no object of JSON stands", () =>
    Effect.gen(function* () {
      let objects = 0;
      for (let seed = 1; seed <= 6_000; seed += 1) {
        const body = nearlyJson(seeded(seed));
        const value = parsed(body)?.json;
        const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
        const said = `seed ${seed}: ${Buffer.from(body).toString("latin1")}`;
        const members = membersOf(body);
        assert.strictEqual(members !== undefined, isObject, said);
        assert.deepStrictEqual(yield* membersInTurns(body), members, said);
        if (members === undefined || body.includes(0xff) || hasDamagedName(members)) continue;
        assert.strictEqual(JSON.stringify(listedValue(body, members)), JSON.stringify(value), said);
        objects += 1;
      }
      assert.isAbove(objects, 1_000);
    }),
  );

  it.effect("are listed up to a number of them in many turns, and all of them in one", () =>
    Effect.gen(function* () {
      const wide = (count: number) =>
        Buffer.from(`{"a":{${Array.from({ length: count - 1 }, (_, n) => `"${n}":0`).join(",")}}}`);
      assert.lengthOf((yield* membersInTurns(wide(membersMax)))?.members ?? [], 1);
      assert.isUndefined(yield* membersInTurns(wide(membersMax + 1)));
      assert.lengthOf(membersOf(wide(membersMax + 1))?.members[0]?.inside?.members ?? [], membersMax);
      // The members of a list's items are not listed.
      const list = Buffer.from(`{"a":[${'{"b":1},'.repeat(membersMax)}1]}`);
      assert.lengthOf((yield* membersInTurns(list))?.members ?? [], 1);
    }),
  );

  it("are listed at any depth of the body, and a long name is not read", () => {
    const deep = Buffer.from(`{"a":${"[".repeat(levelsMax)}${"]".repeat(levelsMax)}}`);
    assert.strictEqual(membersOf(deep)?.members[0]?.key, "a");
    const named = (bytes: number) => Buffer.from(`{"${"k".repeat(bytes - 2)}":1}`);
    assert.isDefined(membersOf(named(nameBytesMax))?.members[0]?.key);
    assert.isUndefined(membersOf(named(nameBytesMax + 1))?.members[0]?.key);
  });

  it.effect("are listed in turns", () =>
    Effect.gen(function* () {
      const turns = vi.spyOn(globalThis, "setImmediate");
      yield* membersInTurns(Buffer.from(`{"a":"${"x".repeat(2 ** 20)}"}`));
      assert.isAtLeast(turns.mock.calls.length, 15);
      turns.mockRestore();
    }),
  );
});

const hasDamagedName = ({ members }: JsonObject): boolean =>
  members.some(({ inside, key }) => key === undefined || (inside !== undefined && hasDamagedName(inside)));
