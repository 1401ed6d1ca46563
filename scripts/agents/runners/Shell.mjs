/**
 * Shared code of the framework runners: the provider's address, and a tool that runs a shell command.
 */
import { exec } from "node:child_process";
import { promisify } from "node:util";

export const apiKey = process.env.OPENAI_API_KEY;
export const baseUrl = process.env.OPENAI_BASE_URL;
export const model = process.env.FAULT_MODEL;
export const prompt = process.argv[2];
export const describe = "Runs a shell command.";

/** Runs a command and returns its output, the result of the call. */
export const shell = async ({ command }) => (await promisify(exec)(command)).stdout || "done";

// Prints only the message of a failure, as a user of the program would see it, without the surrounding source.
process.on("uncaughtException", (error) => {
  console.error(error?.message ?? String(error));
  process.exit(1);
});
