/**
 * Prints the line by which each client is set up, as `npm run agents` runs it.
 */
import { agents } from "../agents/Agents.ts";
import { code, table } from "./Markdown.ts";

/** A row for each client and protocol. */
export const setups = (): string =>
  table(
    ["client", "line"],
    agents.map(({ name, setup }) => [name, code(setup)]),
  );
