import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { readConfig } from "../../../src/gateway/config/ConfigFile.ts";
import { jsonSchema } from "../../../src/gateway/config/ConfigSchema.ts";

const docs = new URL("../../../docs/", import.meta.url);

describe("the published schema", () => {
  it("is the one that the file is read by", () => {
    const published: unknown = JSON.parse(readFileSync(new URL("gateway.schema.json", docs), "utf8"));
    assert.deepStrictEqual(published, JSON.parse(JSON.stringify(jsonSchema())), "npm run tables prints it");
  });

  it("closes every object except those whose keys are names", () => {
    const text = JSON.stringify(jsonSchema());
    assert.notInclude(text, '"additionalProperties":true');
    assert.include(text, '"additionalProperties":false');
  });
});

describe("the files of the documentation", () => {
  /** Reads a file of docs with every variable set, and gives the names of those that it reads. */
  const variablesOf = (file: string): ReadonlyArray<string> => {
    const names: Array<string> = [];
    const env = (name: string) => {
      names.push(name);
      return `a-secret-of-24-characters-${name}`;
    };
    const read = readConfig({
      text: readFileSync(new URL(file, docs), "utf8"),
      shared: true,
      env,
      file: () => undefined,
    });
    assert.notProperty(read, "problems", JSON.stringify(read));
    return names;
  };

  it("gateway.example.json serves as it stands", () => {
    assert.deepStrictEqual(variablesOf("gateway.example.json"), []);
  });

  it("gateway.team.json has nothing wrong where its variables are set, and the page names them", () => {
    const names = variablesOf("gateway.team.json");
    const page = readFileSync(new URL("gateway-config.md", docs), "utf8");
    for (const name of names) assert.include(page, name);
    assert.isAbove(names.length, 1);
  });
});
