import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { openConfig } from "../../../src/gateway/config/ConfigSources.ts";
import { folder } from "../../cli/ServeProcess.ts";

const hasModes = process.platform !== "win32";

/** Opens a file of a mode in a folder of a mode; why it is not read. */
const unreadable = (file: number, directory: number) =>
  Effect.map(folder, (parent) => {
    const dir = join(parent, "etc");
    mkdirSync(dir);
    const path = join(dir, "gateway.json");
    writeFileSync(path, "{}");
    chmodSync(path, file);
    chmodSync(dir, directory);
    const opened = openConfig(path);
    return "unreadable" in opened ? opened.unreadable : undefined;
  });

describe.runIf(hasModes)("a configuration file", () => {
  it.effect("that others can write is refused, and so is one that they can replace", () =>
    Effect.gen(function* () {
      for (const mode of [0o600, 0o644, 0o640, 0o444])
        for (const directory of [0o700, 0o755, 0o775, 0o1777])
          assert.isUndefined(yield* unreadable(mode, directory), `${mode.toString(8)} ${directory.toString(8)}`);
      for (const mode of [0o620, 0o602, 0o664, 0o666, 0o622])
        assert.match((yield* unreadable(mode, 0o755)) ?? "", /only its owner can write/, mode.toString(8));
      assert.match((yield* unreadable(0o600, 0o777)) ?? "", /folder that others cannot write/);
    }),
  );

  it.effect("reports which of its files others can read", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      writeFileSync(join(dir, "gateway.json"), "{}", { mode: 0o600 });
      for (const [name, mode] of [
        ["own", 0o600],
        ["read", 0o604],
        ["group", 0o640],
        ["written", 0o602],
      ] as const) {
        writeFileSync(join(dir, name), "secret");
        chmodSync(join(dir, name), mode);
      }
      const opened = openConfig(join(dir, "gateway.json"));
      if ("unreadable" in opened) return assert.fail(opened.unreadable);
      assert.deepStrictEqual(
        ["own", "read", "group", "written", "nowhere"].map((name) => opened.isShared?.(name)),
        [false, true, true, true, false],
      );
    }),
  );
});
