#!/usr/bin/env node
/**
 * Starts the command line, once the Node that runs it is known to be new enough.
 *
 * Nothing is imported before that: an older Node would fail inside a dependency, with words that do not help.
 */

/** The oldest Node that @effect/platform-node runs on. */
const oldest = { major: 22, minor: 19 } as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major < oldest.major || (major === oldest.major && minor < oldest.minor)) {
  console.error(
    `stream-recovery needs Node ${oldest.major}.${oldest.minor} or newer, this is ${process.versions.node}. https://nodejs.org`,
  );
  process.exit(1);
}

// A reader that went away (`| head -1`) has what it wanted: that is no error of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    // A full disk, say. Where the stream that broke is stderr itself, only the exit code is left to tell.
    if (stream !== process.stderr) process.stderr.write(`stream-recovery: cannot write: ${error.message}\n`);
    process.exit(1);
  });
}

const { start } = await import("./main.ts");

await start();

export {};
