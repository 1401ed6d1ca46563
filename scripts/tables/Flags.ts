/**
 * Reads the commands and flags of the command line from its `--help` output.
 */
import * as NodeServices from "@effect/platform-node/NodeServices";
import { Effect, Option } from "effect";
import { CliOutput, Command, type HelpDoc } from "effect/cli";
import { root } from "../../src/cli/main.ts";
import { code, table } from "./Markdown.ts";

/**
 * Prints the subcommands of a command, with their help.
 *
 * @param path the command's names; empty for `stream-recovery` itself
 */
export const commands = async (path: ReadonlyArray<string>): Promise<string> => {
  const { subcommands = [] } = await helpOf(path);
  return table(
    ["command", "what it does"],
    subcommands.flatMap((group) =>
      group.commands.map(({ description, name, shortDescription }) => [
        code([...path, name].join(" ")),
        shortDescription ?? firstLine(description),
      ]),
    ),
  );
};

/**
 * Prints the flags of a command: the environment variable, the default if the help names one, and the meaning.
 *
 * @param path the command's names
 * @param omitted names of flags that another table describes
 */
export const flags = async (path: ReadonlyArray<string>, omitted: ReadonlySet<string> = new Set()): Promise<string> => {
  const { flags: all } = await helpOf(path);
  return table(
    ["flag", "variable", "default", "what it does"],
    all
      .filter(({ name }) => !omitted.has(name))
      .map(({ description, name, type }) => {
        const text = Option.getOrElse(description, () => "");
        const variable = /\$(STREAM_RECOVERY_\w+)/.exec(text)?.[1] ?? "";
        const standard = /\$\w+; default (\S+)\)/.exec(text)?.[1] ?? "";
        const words = /\(choices: (.*)\)$/.exec(text)?.[1];
        const said = text.replace(/ \(choices: .*\)$/, "").replace(/ \(\$\w+(?:; default \S+)?\)$/, "");
        const value = words?.split(", ").join(" \\| ") ?? (type === "boolean" ? "" : type);
        return [code(`--${name} ${value}`.trim()), code(variable), standard, said];
      }),
  );
};

const helpOf = async (path: ReadonlyArray<string>): Promise<HelpDoc.HelpDoc> => {
  const shown: Array<HelpDoc.HelpDoc> = [];
  const presenter: CliOutput.Presenter = {
    present: (event) => Effect.sync(() => event._tag === "Help" && shown.push(event.helpDoc)),
  };
  await Command.runWith(await root(path), { version: "" })([...path, "--help"]).pipe(
    Effect.ignore,
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.provide(NodeServices.layer),
    Effect.runPromise,
  );
  const [help] = shown;
  if (help === undefined) throw new Error(`stream-recovery ${path.join(" ")} has no help`);
  return help;
};

const firstLine = (text: string): string => text.split("\n")[0] ?? "";
