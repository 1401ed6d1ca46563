// Makes the built command executable: npm does so for an installed package, but not for `npx stream-recovery` here.
import { chmodSync } from "node:fs";

chmodSync(new URL("../dist/cli/bin.js", import.meta.url), 0o755);
