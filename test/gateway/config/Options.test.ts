/** Every option of the gateway and of `serve` is one entry of a table, and has everything that follows from it. */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Effect, Option, Redacted } from "effect";
import { flags as flagTable } from "../../../scripts/tables/Flags.ts";
import { servedText } from "../../../src/cli/serve/ServedText.ts";
import { pairFlags, type Typed } from "../../../src/cli/serve/ServeFlags.ts";
import { readProgram } from "../../../src/cli/serve/ServeProgram.ts";
import { readConfig } from "../../../src/gateway/config/ConfigFile.ts";
import { jsonSchema } from "../../../src/gateway/config/ConfigSchema.ts";
import { fixedChangesIn } from "../../../src/gateway/config/FixedOptions.ts";
import { GatewayError, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import { type Entry, entriesOf, isParts, limit, withValue } from "../../../src/gateway/config/Option.ts";
import { entries, groups, limits } from "../../../src/gateway/config/Options.ts";
import { type ProgramOptions, problemOf } from "../../../src/gateway/config/ProgramOptions.ts";

const docs = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8");

const keyOf = ({ key }: Entry): string | undefined => key?.join(".");

/** A value that is not the default, as a file has it. */
const sampleOf = ({ default: byDefault, form, name }: Entry): unknown => {
  if (typeof form !== "string") return form.find((word) => word !== byDefault);
  if (form === "list") return ["a", "b"];
  if (form === "on_off" || form === "switch") return byDefault !== true;
  if (form === "text") return name === "keepRuns" ? "7d" : "http://127.0.0.1:1";
  return form === "secret" ? "a-token-of-24-characters" : 7;
};

const typedOf = ({ form }: Entry, value: unknown): Typed => {
  if (form === "integer") return Number(value);
  if (form === "switch") return value === true;
  if (form === "on_off") return value === true ? "on" : "off";
  return form === "secret" ? Redacted.make(String(value)) : String(value);
};

/** The options that a flag gives, or the lines that refuse it. */
const typed = (options: Record<string, Typed>, pairs: Record<string, ReadonlyArray<string>> = {}) => {
  const none = Option.none();
  const given = Object.fromEntries(Object.entries(options).map(([name, value]) => [name, Option.some(value)]));
  return readProgram({ config: none, check: false, tlsCert: none, tlsKey: none, options: given, pairs });
};

/** The options that a file gives, or the lines that refuse it. */
const filed = (entry: Entry, value: unknown): ProgramOptions | string => {
  if (entry.key === undefined) throw new Error(`${entry.name} has no key`);
  const read = readConfig({
    text: JSON.stringify(withValue({}, entry.key, value)),
    shared: false,
    env: () => undefined,
    file: () => undefined,
  });
  return "options" in read ? read.options : read.problems.map((it) => `${it.path}: ${it.message}`).join("\n");
};

const own = entries.filter(({ flag, form }) => flag !== undefined && form !== "pairs");
const plain = entries.filter(
  ({ apart, form, key }) => !apart && key !== undefined && form !== "none" && form !== "pairs",
);

describe("the table of options", () => {
  it("names each option once, in programs, in files, as a flag and as a variable", () => {
    for (const names of [
      entries.map(({ path }) => path.join(".")),
      entries.flatMap((entry) => keyOf(entry) ?? []),
      entries.flatMap(({ flag }) => flag ?? []),
      entries.flatMap(({ variable }) => variable ?? []),
    ])
      assert.deepStrictEqual(
        names.filter((name, at) => names.indexOf(name) !== at),
        [],
      );
  });

  it("describes each option, and says how it is given", () => {
    for (const { description, flag, key, name } of entries) {
      assert.match(description, /^\S.{10,}[^.\s]$/s, name);
      assert.isTrue(flag !== undefined || key !== undefined, name);
    }
  });

  it("has a source and a range for the default of each limit, and a unit if its name has one", () => {
    for (const { default: byDefault, form, from, name, unit } of entriesOf(limits, "limits")) {
      assert.isNumber(byDefault, name);
      assert.isAbove((from ?? "").length, 5, name);
      assert.strictEqual(form, "integer", name);
      assert.strictEqual(unit, name.endsWith("Ms") ? "ms" : name.endsWith("Bytes") ? "bytes" : undefined, name);
    }
  });

  it("is all that the command line has, but for the file, the check and the two files of a certificate", async () => {
    const has = [...(await flagTable(["serve"])).matchAll(/^\| `--([\w-]+)/gm)].map(([, name = ""]) => name);
    const pairs = pairFlags.map(({ flag }) => flag);
    assert.sameMembers(has, [
      ...["config", "check", "tls-cert", "tls-key"],
      ...new Set([...pairs, ...own.flatMap(({ flag }) => flag ?? [])]),
    ]);
  });

  it("is all that a file has, but for the schema and the finishes of routes", () => {
    const schema = jsonSchema() as { readonly properties: Record<string, { readonly properties?: object }> }; // its shape
    const has = Object.entries(schema.properties).flatMap(([name, { properties }]) =>
      name in groups ? Object.keys(properties ?? {}).map((inner) => `${name}.${inner}`) : [name],
    );
    assert.sameMembers(has, ["$schema", "moves_on", ...entries.flatMap((entry) => keyOf(entry) ?? [])]);
  });

  it("builds flag, variable, schema and documentation of an option from one entry", () => {
    const [entry] = entriesOf(
      { maxThings: limit("Maximum things", 5, { unit: "bytes", from: "a made-up limit" }) },
      "limits",
    );
    assert.deepInclude(entry, {
      ...{ name: "maxThings", path: ["limits", "maxThings"], key: ["limits", "max_things"], flag: "max-things" },
      ...{ variable: "STREAM_RECOVERY_MAX_THINGS", default: 5, description: "Maximum things, in bytes" },
    });
  });
});

describe("each option", () => {
  it.effect("means the same as a flag and in a file, and `--check` prints it", () =>
    Effect.gen(function* () {
      for (const entry of plain.filter(({ flag }) => flag !== undefined)) {
        const value = sampleOf(entry);
        const read: unknown = yield* typed({ [entry.name]: typedOf(entry, value) });
        const options = filed(entry, value);
        assert.deepStrictEqual(read, { program: options, warnings: [] }, entry.name);
        if (typeof options === "string") throw new Error(options);
        const settings = settingsOf(options);
        if (settings instanceof GatewayError) continue;
        assert.match(servedText(settings, options), new RegExp(`^${entry.path[0]}: `, "m"), entry.name);
      }
    }),
  );

  it.effect("is refused by its flag, its key or its name, with what was expected and what was given", () =>
    Effect.gen(function* () {
      for (const entry of plain.filter(({ form }) => form === "integer")) {
        const said = String(filed(entry, -1));
        assert.match(said, new RegExp(`^\\$\\.${keyOf(entry)}: expected \\d+ to \\d+, got -1$`), entry.name);
        const made = settingsOf(withValue({}, entry.path, -1));
        assert.deepInclude(made, { message: said.replace(/^\S+:/, `${entry.name}:`) }, entry.name);
        if (entry.flag === undefined) continue;
        const read = yield* typed({ [entry.name]: -1 });
        assert.deepStrictEqual(read, { wrong: [said.replace(/^\S+:/, `--${entry.flag}:`)] }, entry.name);
      }
      for (const entry of plain.filter(({ flag, form }) => form === "integer_or_word" && flag !== undefined)) {
        const read = yield* typed({ [entry.name]: "soon" });
        const [line = ""] = "wrong" in read ? read.wrong : [];
        assert.match(line, new RegExp(`^--${entry.flag}: expected .*, got "soon"$`), entry.name);
      }
    }),
  );

  it.effect("of a group is given by `NAME=VALUE` as in a file, and an unknown name is refused", () =>
    Effect.gen(function* () {
      for (const { flag, key } of pairFlags.filter(({ key: name }) => name in groups)) {
        for (const entry of plain.filter(({ path }) => path[0] === key)) {
          const read: unknown = yield* typed({}, { [key]: [`${entry.key?.[1]}=7`] });
          assert.deepStrictEqual(read, { program: filed(entry, 7), warnings: [] }, entry.name);
        }
        const read = yield* typed({}, { [key]: ["none=7"] });
        assert.deepStrictEqual(read, { wrong: [`--${flag} none: expected a known key`] });
      }
    }),
  );

  it("needs a restart exactly if its entry says so", () => {
    for (const entry of entries.filter(({ apart }) => !apart)) {
      const other = withValue({}, entry.path, sampleOf(entry));
      assert.deepStrictEqual(fixedChangesIn({}, other), entry.restart === undefined ? [] : [entry.name], entry.name);
      if (entry.default !== undefined)
        assert.deepStrictEqual(
          fixedChangesIn({}, withValue({}, entry.path, entry.default)),
          [],
          `${entry.name}, the default`,
        );
    }
  });

  it("stands with its default in the JSON Schema and in docs/gateway-config.md, which says how its variable is named", () => {
    const [config, schema] = [docs("gateway-config.md"), jsonSchema()];
    for (const entry of entries) {
      const { default: byDefault, description, flag, key = [], variable } = entry;
      const name = keyOf(entry);
      const found = key.reduce<unknown>((node, it = "") => {
        const properties = isParts(node) ? node.properties : undefined;
        return isParts(properties) ? properties[it] : undefined;
      }, schema);
      if (name !== undefined) {
        assert.include(config, `| \`${name}\` |`);
        assert.isTrue(isParts(found) && String(found.description).startsWith(description), name);
        assert.deepStrictEqual(isParts(found) ? found.default : undefined, byDefault, name);
      }
      if (flag !== undefined) assert.include(config, `| \`--${flag}`);
      if (variable !== undefined)
        assert.strictEqual(variable, `STREAM_RECOVERY_${flag?.toUpperCase().replaceAll("-", "_")}`);
    }
  });
});

describe("the address that a gateway advertises", () => {
  const advertise = entries.find(({ name }) => name === "advertise") ?? assert.fail("it is an option");
  const expected = "expected https://HOST[:PORT], or http://HOST[:PORT] of a loopback address, and nothing else, got ";

  it("is an origin with https, or with http on the loopback interface", () => {
    for (const address of [
      "https://gateway-1.internal:8787",
      "https://10.0.0.7",
      "https://[fd00::7]:443",
      "https://a.test/",
    ])
      assert.deepStrictEqual(filed(advertise, address), { advertise: address });
    for (const address of ["http://127.0.0.1:8787", "http://localhost:1", "http://[::1]:8787", "http://127.8.9.1"])
      assert.deepStrictEqual(filed(advertise, address), { advertise: address });
  });

  it.effect("is refused otherwise, by the file, the flag and the program, with what was expected and given", () =>
    Effect.gen(function* () {
      const wrongs = {
        "http://gateway-1.internal:8787": "http://gateway-1.internal:8787",
        "http://10.0.0.7:8787": "http://10.0.0.7:8787",
        "http://127.0.0.1.example:8787": "http://127.0.0.1.example:8787",
        "https://user:secret@gateway:8787": "https://gateway:8787…",
        "https://gateway:8787/secret": "https://gateway:8787…",
        "https://gateway:8787?secret": "https://gateway:8787…",
        "https://gateway#secret": "https://gateway…",
        "unix:///secret": "unix://…",
        "gateway-1": "text that is not a URL",
        [`https://${"a".repeat(600)}`]: `https://${"a".repeat(72)}…`,
      };
      for (const [wrong, given] of Object.entries(wrongs)) {
        assert.strictEqual(filed(advertise, wrong), `$.advertise: ${expected}${given}`);
        assert.deepStrictEqual(yield* typed({ advertise: wrong }), { wrong: [`--advertise: ${expected}${given}`] });
        const refused = settingsOf({ advertise: wrong });
        assert.strictEqual(refused instanceof GatewayError && refused.message, `advertise: ${expected}${given}`);
      }
    }),
  );

  it("needs a store that other gateways can share", () => {
    const advertised = { advertise: "https://gateway-1.internal:8787" };
    assert.match(problemOf({ ...advertised, db: "memory" }) ?? "", /^advertise: .* name one with --db/);
    for (const db of ["runs.db", "postgres://h/d"]) assert.isUndefined(problemOf({ ...advertised, db }));
  });

  it.effect("replaces the delivery log, whose variable is refused unless it is empty", () =>
    Effect.gen(function* () {
      const given = (value: string) =>
        Effect.provide(
          typed({}),
          ConfigProvider.layer(ConfigProvider.fromUnknown({ STREAM_RECOVERY_DELIVERY_LOG: value })),
        );
      assert.deepStrictEqual(yield* given("true"), {
        wrong: [
          "$STREAM_RECOVERY_DELIVERY_LOG: expected this variable to be unset: set STREAM_RECOVERY_ADVERTISE to the address at which other gateways reach this one",
        ],
      });
      assert.property(yield* given(""), "program");
    }),
  );
});
