/**
 * Says what is needed to run a coding agent unattended: its configuration, its command line, and how to read what it printed.
 */
import type { ProtocolId } from "../../src/provider/Protocols.ts";

/** Where an agent finds its provider, and where it may write. */
export interface Place {
  /** What an OpenAI SDK calls `baseURL`: of the provider, or of the gateway before it. */
  readonly baseUrl: string;
  /** The agent's home: everything that it keeps about itself stands here. */
  readonly home: string;
  /** Its working directory. */
  readonly work: string;
  /** How long the agent may wait within a response, in milliseconds, where it has a setting; left out: its own default. */
  readonly patienceMs?: number;
}

/** Arguments, environment and files beside its setup line. */
export interface Launch {
  readonly args: ReadonlyArray<string>;
  readonly env: Readonly<Record<string, string>>;
  /** Files to write before, by their absolute path. */
  readonly files: Readonly<Record<string, string>>;
}

/** What an agent printed until it ended. */
export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** What an agent said when it had ended. */
export interface Said {
  /** The text that a user sees. */
  readonly text: string;
  /** What it calls an error, where its exit code does not say so. */
  readonly error: string | undefined;
}

/** One agent over one protocol. */
export interface Agent {
  /** The name of its row. */
  readonly name: string;
  /** Its package, for the version. */
  readonly packageName: string;
  /** The platform of its package, as Install.ts names it, if that is built for one alone; elsewhere the agent is not run. */
  readonly platform?: string;
  readonly protocol: ProtocolId;
  /** The agent's own tool that runs a shell command. */
  readonly shell: Shell;
  /** Most requests that one turn may cost through the gateway where the fault never stops; left out: as many as directly. */
  readonly requestsMax?: number;
  /**
   * The shell line by which a user sends its requests to the gateway. It ends where arguments can follow. docs/gateway.md prints it, and
   * a turn runs it: only `gatewayOrigin` is replaced.
   */
  readonly setup: string;
  /** The name of the program in that line. */
  readonly program: string;
  /** The command for that name, where it is installed. */
  readonly command: (modules: string) => ReadonlyArray<string>;
  readonly launch: (place: Place, prompt: string) => Launch;
  readonly read: (printed: Printed) => Said;
}

/** A tool that runs a shell command. */
export interface Shell {
  readonly tool: string;
  /** The name of the parameter that takes the command. */
  readonly parameter: string;
  /** The parameter takes a list of commands. */
  readonly list?: boolean;
  /** Further parameters that it cannot do without. */
  readonly more?: Readonly<Record<string, string | boolean>>;
  /** It refuses parameters that it does not know: the calls carry no serial number. */
  readonly strict?: boolean;
}

/** The address of the gateway in every setup line: its default. */
export const gatewayOrigin = "http://127.0.0.1:8787";

/** The model of clients that have no default one for a provider of the user's own. */
export const model = "gpt-5.5";

/** The key that every agent sends; it opens nothing. */
export const apiKey = "not-a-key";

/** The conversation of requests that are not about the task, such as one for a title. */
export const asideScript = "aside";

/** The objects of a stream of JSON lines; other lines are not looked at. */
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

/** The texts of blocks, joined by lines. */
export const texts = (blocks: ReadonlyArray<Readonly<Record<string, unknown>>>): string =>
  blocks.map(({ text }) => String(text)).join("\n");

/** Whether a JSON value is an object. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
