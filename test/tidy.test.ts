/**
 * Checks the house rules of tidy/Rules.ts and tidy/Bans.ts.
 */
import { assert, describe, it } from "@effect/vitest";
import { message, rules } from "./tidy/Rules.ts";
import { repository, snippets } from "./tidy/Sources.ts";

const root = new URL("..", import.meta.url).pathname;

describe("the repository keeps its house rules", () => {
  const tree = repository(root);

  it("includes every part of the repository", () => {
    for (const path of ["src/index.ts", "src/policy/RecoveryPolicy.ts", "test/tidy.test.ts"]) {
      assert.isTrue(
        tree.sources.some((source) => source.path === path),
        path,
      );
    }
    assert.isTrue(tree.files.some(({ path }) => path === "package.json"));
  });

  for (const rule of rules) {
    it(rule.name, () => {
      const findings = rule.find(tree);
      assert.strictEqual(findings.length, 0, `\n${findings.map(message).join("\n")}\n`);
    });
  }
});

describe("each house rule finds a violation, and nothing else", () => {
  const bad = snippets(rules.map((rule) => rule.bad));
  const good = snippets(rules.map((rule) => rule.good));

  for (const [index, rule] of rules.entries()) {
    it(rule.name, () => {
      const [broken, kept] = [bad[index], good[index]];
      if (broken === undefined || kept === undefined) throw new Error("a rule without snippets");
      const findings = rule.find(broken);
      assert.deepStrictEqual(
        findings.map(({ path, line }) => `${path}:${line}`),
        [rule.at],
      );
      assert.match(findings.map(message).join(), /^\S+:\d+: .+ is banned, use .+$/s);
      assert.deepStrictEqual(rule.find(kept).map(message), []);
    });
  }
});
