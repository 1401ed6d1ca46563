/** The words with which the gateway refuses: the page that its clients' authors read has each of them, and no other. */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { refusedReasons } from "../../../src/gateway/routing/Admission.ts";

const page = readFileSync(new URL("../../../docs/gateway.md", import.meta.url), "utf8");

describe("x-recovery-refused", () => {
  it("is on its page with every word that it has, and with no other", () => {
    const row = page.split("\n").find((line) => line.startsWith("| `x-recovery-refused` |")) ?? "";
    const words = [...row.matchAll(/`([a-z_]+)`/g)].map(([, word]) => word);
    assert.deepStrictEqual(words.sort(), [...refusedReasons].sort());
  });
});
