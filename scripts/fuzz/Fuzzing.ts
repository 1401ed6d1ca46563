/**
 * Fuzzes the readers of foreign bytes, guided by the branches that an input reaches.
 *
 * The loop is our own, because no maintained fuzzer runs on every supported machine: the binaries of Jazzer.js need a newer C library than
 * Debian 12 has.
 */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { seeded } from "../../test/Seeded.ts";
import { framesOf, ids, samples } from "../../test/samples/index.ts";
import { install } from "../packages/Install.ts";
import { bundler } from "../programs/Bundler.ts";
import type { Target } from "./Targets.ts";

/** The inputs that tests repeat: one folder per target. */
export const corpusFolder = fileURLToPath(new URL("../../test/fixtures/fuzz/", import.meta.url));

/** Maximum inputs per target in the repository. */
export const inputsMax = 40;

/** Maximum size of an input, in bytes. */
export const inputBytesMax = 2_048;

/** Maximum changes of an input in one step. */
const changesMax = 6;

/** Inputs to start from: whole answers of each protocol, JSON, and text with its continuation. */
const starts = (): ReadonlyArray<Buffer> => {
  const answers = ids.flatMap((id) => {
    const said = [
      [{ text: "Hello, " }, { text: "world." }],
      [{ text: "a" }, { call: "bash", pieces: ['{"comm', 'and":"ls"}'] }],
    ];
    return said.map((it) => Buffer.from(framesOf(id, it).join(""), samples[id].encoding));
  });
  const prose = "The quick brown fox jumps over the lazy dog. It then sleeps in the sun for an hour.";
  const texts = ['{"b":1,"a":{"c":[1.0,"\\u00e9",null]}}', `${prose}\0sleeps in the sun for an hour. Then it wakes.`];
  return [...answers, ...texts.map((text) => Buffer.from(text))];
};

/** Pieces of the inputs to start from, which a step inserts. */
const words = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(texts.flatMap((text) => text.match(/"[^"\\]{1,24}"|\b(?:data|event|id): |[{}[\]:,]|\n\n/g) ?? [])),
];

/** Counts of the branches, statements and functions that ran since they were last cleared. */
class Coverage {
  readonly #groups: ReadonlyArray<{ readonly counts: Record<string, number>; readonly keys: ReadonlyArray<string> }>;
  readonly #seen = new Set<string>();

  constructor(groups: ReadonlyArray<Record<string, number>>) {
    this.#groups = groups.map((counts) => ({ counts, keys: Object.keys(counts) }));
  }

  /** Number of places that ran this often for the first time. Clears the counts. */
  takeNew(): number {
    let found = 0;
    for (const [group, { counts, keys }] of this.#groups.entries())
      for (const key of keys) {
        const count = counts[key] ?? 0;
        if (count === 0) continue;
        counts[key] = 0;
        const place = `${group}.${key}.${Math.min(8, Math.floor(Math.log2(count)))}`;
        if (this.#seen.has(place)) continue;
        this.#seen.add(place);
        found += 1;
      }
    return found;
  }

  get size(): number {
    return this.#seen.size;
  }

  forget(): void {
    this.takeNew();
    this.#seen.clear();
  }
}

interface Instrumenter {
  readonly createInstrumenter: (options: { readonly esModules: true }) => {
    readonly instrumentSync: (code: string, file: string) => string;
  };
}

/** The counts of one file, as the instrumenter keeps them. */
interface Counts {
  readonly s: Record<string, number>;
  readonly f: Record<string, number>;
  readonly b: Record<string, Record<string, number>>;
}

/** Bundles the targets with their sources, and counts what runs in them. */
const load = async (): Promise<{ readonly targets: Readonly<Record<string, Target>>; readonly coverage: Coverage }> => {
  install(import.meta.dirname);
  // Cast, because the package brings no types.
  const { createInstrumenter } = createRequire(import.meta.url)("istanbul-lib-instrument") as Instrumenter;
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  try {
    const { rolldown } = await bundler();
    const input = fileURLToPath(new URL("Targets.ts", import.meta.url));
    const built = await rolldown({ input, platform: "node", plugins: [], onLog: () => undefined });
    await built.write({ format: "esm", dir: folder, entryFileNames: "targets.mjs", chunkFileNames: "[name].mjs" });
    await built.close();
    const file = join(folder, "targets.mjs");
    writeFileSync(file, createInstrumenter({ esModules: true }).instrumentSync(readFileSync(file, "utf8"), file));
    const { targets } = await import(pathToFileURL(file).href);
    // Cast: the instrumented code created the global.
    const counts = Object.values(
      (globalThis as unknown as { readonly __coverage__: Record<string, Counts> }).__coverage__,
    );
    return { targets, coverage: new Coverage(counts.flatMap(({ b, f, s }) => [f, s, ...Object.values(b)])) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** The outcome of a run. */
export interface Fuzzed {
  /** Inputs tried. */
  readonly tried: number;
  /** Places in the code, by how often they ran. */
  readonly places: number;
  /** The smallest input found for which the property fails, and the error; undefined if none was found. */
  readonly found: { readonly input: Uint8Array; readonly error: unknown } | undefined;
  /** The fewest inputs that reach all code that was reached, smallest first. */
  readonly kept: ReadonlyArray<Uint8Array>;
}

/**
 * Fuzzes a target, from the corpus in the repository.
 *
 * @param name a name in `targets`
 * @param given.inputs inputs to try
 * @param given.seed seed of the changes; the same seed and corpus try the same inputs
 */
export const fuzz = async (
  name: string,
  given: { readonly inputs: number; readonly seed: number },
): Promise<Fuzzed> => {
  const { coverage, targets } = await load();
  const target = targets[name];
  if (target === undefined) throw new Error(`target: expected one of ${Object.keys(targets).join(", ")}, got ${name}`);
  const from = starts();
  const changes = new Changes(
    words(from.map(String)).map((word) => Buffer.from(word)),
    seeded(given.seed),
  );
  const corpus: Array<Uint8Array> = [];
  const attempt = (input: Uint8Array): unknown => {
    try {
      target(input);
      return undefined;
    } catch (error) {
      return error ?? new Error("undefined was thrown");
    }
  };
  let tried = 0;
  const first = [...read(name), ...from.map((bytes) => new Uint8Array(bytes).subarray(0, inputBytesMax))];
  coverage.forget();
  for (; tried < given.inputs; tried += 1) {
    const input = first[tried] ?? changes.of(corpus);
    const error = attempt(input);
    if (error !== undefined) return { tried, places: coverage.size, found: shrink(input, attempt), kept: [] };
    if (coverage.takeNew() > 0) corpus.push(input);
  }
  const places = coverage.size;
  coverage.forget();
  const kept = corpus
    .toSorted((a, b) => a.length - b.length)
    .filter((input) => attempt(input) === undefined && coverage.takeNew() > 0);
  return { tried, places, found: undefined, kept: kept.slice(0, inputsMax) };
};

/** Removes pieces of a failing input as long as it fails. */
const shrink = (given: Uint8Array, attempt: (input: Uint8Array) => unknown): NonNullable<Fuzzed["found"]> => {
  let [input, error] = [given, attempt(given)];
  for (let size = input.length >> 1; size > 0; size >>= 1)
    for (let at = 0; at + size <= input.length; ) {
      const shorter = Buffer.concat([input.subarray(0, at), input.subarray(at + size)]);
      const why = attempt(shorter);
      if (why === undefined) at += size;
      else [input, error] = [shorter, why];
    }
  return { input, error };
};

/** Draws changes of inputs. */
class Changes {
  readonly #words: ReadonlyArray<Uint8Array>;
  readonly #dice: () => number;

  constructor(inserted: ReadonlyArray<Uint8Array>, dice: () => number) {
    this.#words = inserted;
    this.#dice = dice;
  }

  /** A changed copy of an input of the corpus. */
  of(corpus: ReadonlyArray<Uint8Array>): Uint8Array {
    let input = this.#pick(corpus);
    for (let left = 1 + this.#below(changesMax); left > 0; left -= 1) input = this.#change(input, corpus);
    return new Uint8Array(input.subarray(0, inputBytesMax));
  }

  #below(end: number): number {
    return Math.floor(this.#dice() * end);
  }

  #pick(from: ReadonlyArray<Uint8Array>): Uint8Array {
    return from[this.#below(from.length)] ?? new Uint8Array();
  }

  #change(input: Uint8Array, corpus: ReadonlyArray<Uint8Array>): Uint8Array {
    const at = this.#below(input.length + 1);
    const to = Math.min(input.length, at + 1 + this.#below(this.#below(4) === 0 ? 200 : 8));
    const put = (...middle: ReadonlyArray<Uint8Array>) => Buffer.concat([input.subarray(0, at), ...middle]);
    switch (this.#below(8)) {
      case 0: {
        const copy = new Uint8Array(input);
        if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << this.#below(8));
        return copy;
      }
      case 1:
        return put(Uint8Array.of(this.#below(256)), input.subarray(to));
      case 2:
        return put(input.subarray(to));
      case 3:
        return put(input.subarray(at, to), input.subarray(at, to), input.subarray(to));
      case 4:
        return put(this.#pick(this.#words), input.subarray(to));
      case 5: {
        const other = this.#pick(corpus);
        return put(other.subarray(this.#below(other.length + 1)));
      }
      default:
        return put(this.#pick(this.#words), input.subarray(at));
    }
  }
}

const read = (name: string): ReadonlyArray<Uint8Array> => {
  const folder = join(corpusFolder, name);
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder)
    .toSorted()
    .map((file) => new Uint8Array(readFileSync(join(folder, file))));
};

/** Replaces the corpus of a target. Inputs that once failed have a name that starts with `found-`, and stay. */
export const keep = (name: string, inputs: ReadonlyArray<Uint8Array>): void => {
  const folder = join(corpusFolder, name);
  for (const file of readdirSync(folder)) if (!file.startsWith("found-")) rmSync(join(folder, file));
  for (const input of inputs) writeFileSync(join(folder, nameOf(input)), input);
};

/** Keeps an input for which a property failed, and returns its file. */
export const keepFound = (name: string, input: Uint8Array): string => {
  const file = join(corpusFolder, name, `found-${nameOf(input)}`);
  writeFileSync(file, input);
  return file;
};

const nameOf = (input: Uint8Array): string => createHash("sha256").update(input).digest("hex").slice(0, 12);
