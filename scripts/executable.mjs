// Makes the built command executable. npm does this for an installed package, but not for `npx stream-recovery` in this repository.
import { chmodSync } from "node:fs";

chmodSync(new URL("../dist/cli/bin.js", import.meta.url), 0o755);
