/**
 * Holds what every framework's runner needs: where its provider is, and a tool that runs a shell command.
 */
import { exec } from "node:child_process";
import { promisify } from "node:util";

export const apiKey = process.env.OPENAI_API_KEY;
export const baseUrl = process.env.OPENAI_BASE_URL;
export const model = process.env.FAULT_MODEL;
export const prompt = process.argv[2];
export const describe = "Runs a shell command.";

/** What a command printed: the result of the call. */
export const shell = async ({ command }) => (await promisify(exec)(command)).stdout || "done";

// What a user of the program would see of a failure: its sentence, not the source around it.
process.on("uncaughtException", (error) => {
  console.error(error?.message ?? String(error));
  process.exit(1);
});
