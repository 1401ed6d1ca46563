/**
 * Writes the API reference: docs/api.md, and docs/api/ with a file for each entry point of package.json. npm runs it before packing
 * (`prepack`), because the reference is part of the package but not of the repository.
 *
 * An argument names another target folder.
 */
import { fileURLToPath } from "node:url";
import { files } from "./api-reference/Markdown.ts";
import { read } from "./api-reference/Reference.ts";
import { write } from "./api-reference/Write.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = process.argv[2] ?? root;
const reference = files(read(root));

write(reference, target);
// stdout belongs to `npm pack`, which prints the name of its tarball there.
console.error(`the API reference: ${reference.size} files`);
