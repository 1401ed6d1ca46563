/**
 * Reads, lists and writes the files of the sandbox.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { Effect, Schema } from "effect";
import type { AgentTool, ToolOutput } from "./AgentTool.ts";
import { oneLine } from "./PlainText.ts";
import { Escape, type Sandbox } from "./Sandbox.ts";

/** Most of a file that a model is given, in bytes. */
export const readBytesMax = 256 * 1024;

/** Largest file that a model may write, in bytes. */
export const writeBytesMax = 4 * 1024 * 1024;

/** Most names of a directory that a model is given. */
export const namesMax = 500;

const path = { type: "string", description: "Path relative to the working directory" } as const;

const Path = Schema.fromJsonString(Schema.Struct({ path: Schema.String }));
const PathDefaulted = Schema.fromJsonString(Schema.Struct({ path: Schema.optionalKey(Schema.String) }));
const Write = Schema.fromJsonString(Schema.Struct({ path: Schema.String, content: Schema.String }));

/** The file tools of a sandbox. */
export const make = (sandbox: Sandbox): ReadonlyArray<AgentTool> => [
  readFile(sandbox),
  listFiles(sandbox),
  writeFile(sandbox),
];

const readFile = (sandbox: Sandbox): AgentTool => ({
  name: "read_file",
  description: `Reads a text file of the working directory, at most ${readBytesMax} bytes of it.`,
  parameters: { type: "object", properties: { path }, required: ["path"] },
  effect: "read_only",
  title: titled("read_file"),
  run: (input) =>
    outputOf(() => {
      const file = sandbox.inside(Schema.decodeSync(Path)(input).path);
      // Opened without following links, so that the checked file is the one that is read.
      const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const { size } = regular(descriptor, file);
        const bytes = Buffer.alloc(Math.min(size, readBytesMax));
        const text = bytes.subarray(0, readSync(descriptor, bytes)).toString("utf8");
        return size <= readBytesMax ? text : `${text}\n[cut: the file has ${size} bytes]`;
      } finally {
        closeSync(descriptor);
      }
    }),
});

const regular = (descriptor: number, file: string) => {
  const found = fstatSync(descriptor);
  if (!found.isFile()) throw new Escape(`${basename(file)} is no regular file`);
  return found;
};

const listFiles = (sandbox: Sandbox): AgentTool => ({
  name: "list_files",
  description: `Lists a directory of the working directory, at most ${namesMax} names. Directories end with a slash.`,
  parameters: { type: "object", properties: { path } },
  effect: "read_only",
  title: titled("list_files"),
  run: (input) =>
    outputOf(() => {
      const folder = sandbox.inside(Schema.decodeSync(PathDefaulted)(input === "" ? "{}" : input).path ?? ".");
      const names = readdirSync(folder, { withFileTypes: true })
        .map((entry) => `${entry.name}${entry.isDirectory() ? "/" : entry.isSymbolicLink() ? "@" : ""}`)
        .sort();
      const rest = names.length - namesMax;
      return [...names.slice(0, namesMax), ...(rest > 0 ? [`[${rest} more]`] : [])].join("\n") || "[empty]";
    }),
});

const writeFile = (sandbox: Sandbox): AgentTool => ({
  name: "write_file",
  description: "Writes a text file of the working directory; it replaces what was there, and makes missing folders.",
  parameters: {
    type: "object",
    properties: { path, content: { type: "string", description: "The whole new content" } },
    required: ["path", "content"],
  },
  effect: "mutating",
  title: titled("write_file"),
  before: (input) => attempted(() => digestOf(sandbox.inside(Schema.decodeSync(Write)(input).path))),
  run: (input) =>
    outputOf(() => {
      const { content, path } = Schema.decodeSync(Write)(input);
      const bytes = Buffer.from(content);
      if (bytes.length > writeBytesMax) throw new Escape(`at most ${writeBytesMax} bytes, got ${bytes.length}`);
      const file = sandbox.inside(path);
      if (existsSync(file) && !statSync(file).isFile()) throw new Escape(`${path} is no regular file`);
      mkdirSync(dirname(file), { recursive: true });
      replace(file, bytes);
      return `Wrote ${bytes.length} bytes to ${sandbox.nameOf(file)}.`;
    }),
  // A file that is written beside and renamed has either its old content or its new one: reading it tells which.
  verify: ({ before, input }) => {
    const now = attempted(() => {
      const { content, path } = Schema.decodeSync(Write)(input);
      return { is: digestOf(sandbox.inside(path)), wanted: hash(Buffer.from(content)) };
    });
    if (now === undefined) return "unknown";
    if (now.is === now.wanted) return "it_ran";
    return now.is === before ? "it_did_not_run" : "unknown";
  },
});

const replace = (file: string, bytes: Uint8Array): void => {
  const beside = join(dirname(file), `.${basename(file)}.${process.pid}.part`);
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o644;
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
    const descriptor = openSync(beside, flags, mode);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
};

const hash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const digestOf = (file: string): string =>
  existsSync(file) && statSync(file).isFile() ? hash(readFileSync(file)) : "absent";

/** An error is an output too: the model reads it and tries something else. */
const outputOf = (work: () => string): Effect.Effect<ToolOutput> =>
  Effect.sync(() => {
    try {
      return { output: work(), failed: false };
    } catch (error) {
      return { output: error instanceof Error ? error.message : String(error), failed: true };
    }
  });

/** The value, or undefined where it cannot be read; the error shows when the tool runs. */
const attempted = <A>(look: () => A): A | undefined => {
  try {
    return look();
  } catch {
    return undefined;
  }
};

const titled = (tool: string) => (input: string) => {
  const named = attempted(() => Schema.decodeSync(PathDefaulted)(input).path);
  return oneLine(named === undefined ? tool : `${tool} ${named}`);
};
