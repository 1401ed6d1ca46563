/**
 * Prints the setup line of each client, as `npm run agents` runs it.
 */
import { agents } from "../agents/Agents.ts";
import { code, table } from "./Markdown.ts";

/** Prints a row for each client and protocol. */
export const setups = (): string =>
  table(
    ["client", "line"],
    agents.map(({ name, setup }) => [name, code(setup)]),
  );
