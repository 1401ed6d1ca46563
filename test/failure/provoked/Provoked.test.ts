/**
 * Errors provoked over real sockets in every client that agents are built on. docs/errors.md is printed from the
 * expectations.
 */
import { assert, describe, it } from "@effect/vitest";
import { clientsOf, expectedOf, provokedOf } from "./Section.ts";
import { sections } from "./Sections.ts";

for (const section of sections)
  describe(section.title, () => {
    it("expects exactly one outcome per client and fault", () => {
      const known = section.faults.map(({ name }) => name);
      assert.strictEqual(new Set(known).size, known.length, "a fault stands twice");
      assert.deepStrictEqual(Object.keys(section.expected).sort(), [...known].sort());
      for (const fault of section.faults) {
        const listed = (section.expected[fault.name] ?? []).flatMap(([clients]) => clients);
        const met = clientsOf(section, fault).map(({ name }) => name);
        const missing = met.filter((name) => listed.filter((other) => other === name).length !== 1);
        assert.deepStrictEqual(missing, [], `${fault.name}: missing or twice`);
      }
    });

    for (const fault of section.faults)
      it(fault.name, async () => {
        assert.deepStrictEqual(
          Object.fromEntries(await provokedOf(section, fault)),
          Object.fromEntries(expectedOf(section, fault)),
        );
      });
  });
