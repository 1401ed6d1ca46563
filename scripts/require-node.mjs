// Reports in one line that Node is too old for a script, before anything else fails less clearly.
// Plain JavaScript that any Node can run. On a machine with Node 20, `npm ci` puts the pinned `node` package first on the PATH.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `effect-stream-recovery needs Node 22.19 or newer, this is ${process.versions.node}. ` +
      "Run `npm ci` without --ignore-scripts: it installs Node 24 for the scripts of this folder.",
  );
  process.exit(1);
}
