/**
 * Errors of a wrong command line.
 */
import { assert, describe, it } from "@effect/vitest";
import { CliError } from "effect/cli";
import { storeNameProblem } from "../../../src/cli/command/Store.ts";
import { usageLine } from "../../../src/cli/command/Usage.ts";

describe("a wrong command line", () => {
  it("is reported by its first error, with the number of the others, in one line for any input", () => {
    const two = [
      new CliError.UnrecognizedOption({ option: `--${"x".repeat(500)}\n\u001b[2J`, suggestions: [] }),
      new CliError.MissingArgument({ argument: "id" }),
    ];
    const line = usageLine(["stream-recovery", "runs"], two);
    assert.match(line, /^runs: unknown flag "--x+…"\. 1 more error\. See stream-recovery runs --help$/);
    const odd = new CliError.InvalidValue({ option: "db", value: "a\nb\u001b", expected: "a file", kind: "flag" });
    const said = usageLine(["stream-recovery"], [odd]);
    assert.isFalse(said.includes("\n") || said.includes("\u001b"));
  });

  it("says what replaces a flag of an earlier version", () => {
    const said = (option: string) =>
      usageLine(
        ["stream-recovery", "serve"],
        [new CliError.UnrecognizedOption({ option, suggestions: ["--log-format"] })],
      );
    const instead = "set --advertise to the address at which other gateways reach this one";
    for (const flag of ["--delivery-log", "--delivery-log=true"])
      assert.strictEqual(said(flag), `serve: unknown flag "${flag}": ${instead}. See stream-recovery serve --help`);
    assert.include(said("--delivery-logs"), "did you mean --log-format?");
    assert.include(said("--constructor"), "did you mean --log-format?");
  });

  it("distinguishes an address from a file", () => {
    const files = ["runs.db", "./a:b.db", "C:\\runs.db", "/tmp/x", "file:///tmp/x.db", ":memory:", "memory"];
    for (const name of [...files, "postgres://h/d", "POSTGRESQL://h/d"])
      assert.isUndefined(storeNameProblem(name), name);
    for (const name of ["sqlite:x", "https://h/x", "libsql:x", "mysql://u:secret@h/x", "my+sql://x"]) {
      const said = storeNameProblem(name) ?? "";
      assert.match(
        said,
        /^--db: expected a file, memory or postgres:\/\/…, got an address that begins with \S+:$/,
        name,
      );
      assert.notInclude(said, "secret");
    }
    for (const name of ["postgres:runs", "postgres://u:secret@h/d", "postgres://h/d?sslmode=prefer"]) {
      const said = storeNameProblem(name) ?? "";
      assert.match(said, /^--db: the PostgreSQL address: /, name);
      assert.notInclude(said, "secret");
    }
  });
});
