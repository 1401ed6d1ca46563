#!/usr/bin/env node
/**
 * Checks the Node version, then starts the command line.
 *
 * No module is imported before the check, because an older Node would fail inside a dependency with an unhelpful error.
 */

/** Minimum Node version of @effect/platform-node. */
const oldest = { major: 22, minor: 19 } as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
  console.error(
    `stream-recovery needs Node ${oldest.major}.${oldest.minor} or newer, this is ${process.versions.node}. https://nodejs.org`,
  );
  process.exit(1);
}

// A closed pipe (`| head -1`) means that the reader has seen enough. Exit cleanly.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    // For example, the disk is full. If stderr itself failed, only the exit code can report it.
    if (stream !== process.stderr) process.stderr.write(`stream-recovery: cannot write: ${error.message}\n`);
    process.exit(1);
  });
}

const { start } = await import("./main.ts");

await start();

export {};
