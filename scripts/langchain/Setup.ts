/**
 * Installs LangChain before the first test of a suite, as Vitest's `globalSetup`.
 */
import { install } from "../packages/Install.ts";

export default (): void => install(import.meta.dirname);
