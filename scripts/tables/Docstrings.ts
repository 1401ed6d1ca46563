/**
 * Reads fields and words with their docstrings from the sources, so that tables and sources agree.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A field of an interface or a word of a list, with its docstring in one line. */
export interface Named {
  readonly name: string;
  readonly optional: boolean;
  readonly docstring: string;
}

interface Source {
  readonly path: string;
  readonly text: string;
}

/** Reads declarations from the sources below one root. */
export class Sources {
  readonly #files: ReadonlyArray<Source>;

  /** @param root the root of the repository */
  constructor(root: string) {
    const paths = globSync("src/**/*.ts", { cwd: root }).sort();
    this.#files = paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  }

  /**
   * Reads the fields of an interface, followed by those it inherits (`extends`, `Pick`, `Partial`). An intersection has the fields of its
   * members. The interface may be declared in a service's namespace. Fields marked `@internal` are left out.
   *
   * @param name the interface
   * @param folder the folder of its declaration, from the root, because two folders may declare the same name
   * @throws Error if the name is declared not exactly once
   */
  fieldsOf(name: string, folder = "src"): ReadonlyArray<Named> {
    const alias = new RegExp(`^export type ${name}\\b<[^=]*> = (\\w+<[^;]*);`, "gm");
    const [combined = ""] = this.#files.flatMap(({ text }) => [...text.matchAll(alias)].map(([, it = ""]) => it));
    const members = [...combined.matchAll(/(\w+)</g)].map(([, it = ""]) => it);
    // The first member of a union documents its fields; another member may lack them.
    if (combined.includes("|"))
      return this.fieldsOf(members[0] ?? "", folder).map((field) => ({ ...field, optional: true }));
    if (members.length > 0) return members.flatMap((member) => this.fieldsOf(member, folder));
    const declaration = new RegExp(`^( *)export interface ${name}\\b([^{]*)\\{(\\}|[\\s\\S]*?^\\1\\})`, "gm");
    const [, indent = "", head = "", body = ""] = this.#only(declaration, name, folder);
    const ofField = new RegExp(`^${indent} {2}(?:/\\*\\*([\\s\\S]*?)\\*/\\s*)?readonly (\\w+)(\\??):`, "gm");
    const own = [...body.matchAll(ofField)].map(([, comment = "", field = "", mark]) => ({
      name: field,
      optional: mark === "?",
      docstring: line(comment),
    }));
    return [...own, ...this.#inherited(head)].filter(({ docstring }) => !docstring.includes("@internal"));
  }

  /**
   * Reads the keys of a struct's schema, each with the comment above it.
   *
   * @throws Error if the name is declared not exactly once
   */
  keysOf(name: string): ReadonlyArray<Named> {
    const struct = new RegExp(`^export const ${name} = Schema\\.Struct\\(\\{([\\s\\S]*?)^\\}\\)`, "gm");
    const [, keys = ""] = this.#only(struct, name, "src");
    return [...keys.matchAll(/^ {2}(?:\/\*\*([\s\S]*?)\*\/\s*)?(\w+):/gm)].map(([, comment = "", key = ""]) => ({
      name: key,
      optional: false,
      docstring: line(comment),
    }));
  }

  /**
   * Reads the words of a list of literals, each with the comment above it.
   *
   * @param within the declaration that contains the list, for example `class RunInterrupted`
   * @throws Error if there is not exactly one such list
   */
  wordsOf(within: string): ReadonlyArray<Named> {
    const list = new RegExp(`\\b${within}\\b[\\s\\S]*?Literals\\(\\[([\\s\\S]*?)\\n\\s*\\]\\)`, "g");
    const [, words = ""] = this.#only(list, within, "src");
    return [...words.matchAll(/(?:\/\*\*([\s\S]*?)\*\/\s*)?"(\w+)",/g)].map(([, comment = "", name = ""]) => ({
      name,
      optional: false,
      docstring: line(comment),
    }));
  }

  #only(pattern: RegExp, name: string, folder: string): RegExpExecArray {
    const found = this.#files
      .filter(({ path }) => path.startsWith(`${folder}/`))
      .flatMap(({ text }) => [...text.matchAll(pattern)]);
    const [match, ...others] = found;
    if (match === undefined || others.length > 0)
      throw new Error(`${folder} declares ${name} ${found.length} times, not once`);
    return match;
  }

  #inherited(head: string): ReadonlyArray<Named> {
    const parents = /\bextends\s+([\s\S]*)/.exec(head)?.[1] ?? "";
    return [...parents.matchAll(parent)].flatMap(([, wrapper, name = "", chosen = ""]) => {
      const names = [...chosen.matchAll(/"(\w+)"/g)].map(([, field]) => field);
      return this.fieldsOf(name)
        .filter((field) => names.length === 0 || names.includes(field.name))
        .map((field) => ({ ...field, optional: field.optional || wrapper === "Partial" }));
    });
  }
}

/** Matches `A`, `Partial<A>` or `Pick<A<…>, "x" | "y">`, each with or without a namespace before the name. */
const parent = /(?:(Pick|Partial)<\s*)?(?:\w+\.)?(\b\w+)(?:<[^<>]*>)?(?:,((?:\s*\|?\s*"\w+")+)\s*,?\s*)?>?/g;

/** The text of a comment without its asterisks, in one line. */
const line = (comment: string): string =>
  comment
    .replace(/^\s*\* ?/gm, "")
    .replace(/\s+/g, " ")
    .trim();
