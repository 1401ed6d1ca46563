/**
 * What is said of a command line that is wrong.
 */
import { assert, describe, it } from "@effect/vitest";
import { CliError } from "effect/cli";
import { foreignStore } from "../../../src/cli/command/Store.ts";
import { usageLine } from "../../../src/cli/command/Usage.ts";

describe("a command line that is wrong", () => {
  it("is told by its first error, with a count of the others, in one line whatever was typed", () => {
    const two = [
      new CliError.UnrecognizedOption({ option: `--${"x".repeat(500)}\n\u001b[2J`, suggestions: [] }),
      new CliError.MissingArgument({ argument: "id" }),
    ];
    const line = usageLine(["stream-recovery", "runs"], two);
    assert.match(line, /^runs: there is no flag "--x+…"\. 1 more error\. See stream-recovery runs --help$/);
    const odd = new CliError.InvalidValue({ option: "db", value: "a\nb\u001b", expected: "a file", kind: "flag" });
    const said = usageLine(["stream-recovery"], [odd]);
    assert.isFalse(said.includes("\n") || said.includes("\u001b"));
  });

  it("knows an address from a file", () => {
    const files = ["runs.db", "./a:b.db", "C:\\runs.db", "/tmp/x", "file:///tmp/x.db", ":memory:", "memory"];
    for (const name of [...files, "postgres://h/d", "POSTGRESQL://h/d"]) assert.isUndefined(foreignStore(name), name);
    for (const name of ["sqlite:x", "https://h/x", "libsql:x", "mysql://u:secret@h/x", "my+sql://x"]) {
      const said = foreignStore(name) ?? "";
      assert.match(
        said,
        /^--db: expected a file, memory or postgres:\/\/…, got an address that begins with \S+:$/,
        name,
      );
      assert.notInclude(said, "secret");
    }
    for (const name of ["postgres:runs", "postgres://u:secret@h/d", "postgres://h/d?sslmode=prefer"]) {
      const said = foreignStore(name) ?? "";
      assert.match(said, /^--db: the address of PostgreSQL: /, name);
      assert.notInclude(said, "secret");
    }
  });
});
