/**
 * The description of a coding agent that runs unattended: its configuration, its command line, and the parser of its output.
 */
import type { ProtocolId } from "../../src/provider/Protocols.ts";

/** The provider's address and the agent's folders. */
export interface Place {
  /** The `baseURL` of an OpenAI SDK: the provider's, or that of the gateway in front of it. */
  readonly baseUrl: string;
  /** The agent's home folder, which contains all its state. */
  readonly home: string;
  /** Its working directory. */
  readonly work: string;
  /** The agent's timeout for silence within a response, in milliseconds, if it has such a setting. Its own default if undefined. */
  readonly patienceMs?: number;
}

/** Arguments, environment and files in addition to the setup line. */
export interface Launch {
  readonly args: ReadonlyArray<string>;
  readonly env: Readonly<Record<string, string>>;
  /** Files to write before the start, by absolute path. */
  readonly files: Readonly<Record<string, string>>;
}

/** The complete output of an agent. */
export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** The result of an agent's turn. */
export interface Said {
  /** The text that a user sees. */
  readonly text: string;
  /** The error that its output reports, if the exit code does not. */
  readonly error: string | undefined;
}

/** One agent with one protocol. */
export interface Agent {
  /** The name of its row. */
  readonly name: string;
  /** Its npm package, which determines the version. */
  readonly packageName: string;
  /** The platform of its package in Install.ts's form, if it has a build for only one. The agent is skipped on others. */
  readonly platform?: string;
  readonly protocol: ProtocolId;
  readonly shell: Shell;
  /** Maximum requests of one turn through the gateway if the fault never stops. By default as many as without the gateway. */
  readonly requestsMax?: number;
  /**
   * The shell line with which a user sends the agent's requests to the gateway. Arguments can follow it. docs/gateway.md prints it, and a
   * turn runs it with only `gatewayOrigin` replaced.
   */
  readonly setup: string;
  /** The name of the program in that line. */
  readonly program: string;
  /** The installed command behind the program's name. */
  readonly command: (modules: string) => ReadonlyArray<string>;
  readonly launch: (place: Place, prompt: string) => Launch;
  readonly read: (printed: Printed) => Said;
}

/** A tool that runs a shell command. */
export interface Shell {
  readonly tool: string;
  readonly parameter: string;
  /** True if the parameter takes a list of commands. */
  readonly list?: boolean;
  /** Additional required parameters. */
  readonly more?: Readonly<Record<string, string | boolean>>;
  /** True if it rejects unknown parameters. Its calls then carry no serial number. */
  readonly strict?: boolean;
}

/** The gateway's default address, which every setup line contains. */
export const gatewayOrigin = "http://127.0.0.1:8787";

/** The model for clients without a default for a user-defined provider. */
export const model = "gpt-5.5";

/** The key that every agent sends. It grants no access. */
export const apiKey = "not-a-key";

/** The conversation of requests that are not about the task, for example for a title. */
export const asideScript = "aside";

/** Parses the objects of a stream of JSON lines, and ignores other lines. */
export const jsonLines = (text: string): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  text.split("\n").flatMap((line) => {
    if (!line.startsWith("{")) return [];
    try {
      const value: unknown = JSON.parse(line);
      return isRecord(value) ? [value] : [];
    } catch {
      return []; // a line that the agent printed for people
    }
  });

/** Joins the texts of blocks with newlines. */
export const texts = (blocks: ReadonlyArray<Readonly<Record<string, unknown>>>): string =>
  blocks.map(({ text }) => String(text)).join("\n");

/** True if a JSON value is an object. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
