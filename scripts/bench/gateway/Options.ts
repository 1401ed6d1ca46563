/**
 * Reads the options of `npm run bench-gateway`.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import type { Protocol } from "./Wires.ts";

export const help = `Usage: npm run bench-gateway -- [options]

Measures what the gateway costs in CPU, time and memory, beside a plain Node proxy, nginx, http-proxy and @llmops/gateway before
the same provider, and holds it against the bars of the design. A quarter of an hour; the machine should do nothing else.

  --quick            one protocol, fewer events: about a minute
  --full             every protocol, store, way to reveal and continue_text on and off: about an hour
  --only NAME        only these parts (cpu, peers, workers, bodies, linger) or protocols (chat, responses, anthropic, gemini); by commas
  --store NAME       only memory or file
  --reveal NAME      only live or on_complete
  --seam on|off      only with --continue-text auto --linger-ms 60000, or only without
  --rounds N         rounds in which contenders take turns; default 7
  --streams N        paced streams at one time, several by commas; default 50, and 300 for chat
  --events N         events of a paced stream; default 150, quick 60
  --held N           open streams for the memory; default 1000, quick 300
  --workers N        processes of the part workers; default one a core
  --serve FLAGS      more flags of serve for every gateway, as in --serve="--access-log off"
  --profile DIR      writes a CPU profile of the first gateway to DIR, and lists where its time goes
  --install          first installs http-proxy and @llmops/gateway beside the bench
  --json             one JSON document instead of the table
  --write            also writes the tables into docs/bench.md (that of linger is one of its own) and the figures into
                     scripts/scale/figures.json, where linger, or cpu of chat and peers were measured; \`npm run tables\` then
                     prints docs/scale.md by them
  --help             this text

Exit code: 0 every bar is met, 1 some bar is missed, 2 a wrong option.`;

export type Part = "cpu" | "peers" | "workers" | "bodies" | "linger";
export type Store = "memory" | "file";
export type Reveal = "live" | "on_complete";

/** What is to be measured; an empty list stands for what the size chooses. */
export interface Options {
  readonly size: "quick" | "usual" | "full";
  readonly parts: ReadonlyArray<Part>;
  readonly protocols: ReadonlyArray<Protocol>;
  readonly stores: ReadonlyArray<Store>;
  readonly reveals: ReadonlyArray<Reveal>;
  readonly seams: ReadonlyArray<boolean>;
  readonly rounds: number;
  readonly streams: ReadonlyArray<number>;
  readonly events: number;
  readonly held: number;
  readonly workers: number;
  readonly serve: ReadonlyArray<string>;
  readonly profile: string | undefined;
  readonly install: boolean;
  readonly json: boolean;
  readonly write: boolean;
  readonly help: boolean;
}

export const parts: ReadonlyArray<Part> = ["cpu", "peers", "workers", "bodies", "linger"];
export const protocols: ReadonlyArray<Protocol> = ["chat", "responses", "anthropic", "gemini"];

const spec = {
  quick: { type: "boolean" },
  full: { type: "boolean" },
  only: { type: "string", multiple: true },
  store: { type: "string", multiple: true },
  reveal: { type: "string", multiple: true },
  seam: { type: "string", multiple: true },
  rounds: { type: "string" },
  streams: { type: "string", multiple: true },
  events: { type: "string" },
  held: { type: "string" },
  workers: { type: "string" },
  serve: { type: "string" },
  profile: { type: "string" },
  install: { type: "boolean" },
  json: { type: "boolean" },
  write: { type: "boolean" },
  help: { type: "boolean" },
} as const;

/** @throws Error with what is wrong */
export const read = (args: ReadonlyArray<string>): Options => {
  const { values } = parseArgs({ args: [...args], options: spec });
  const only = among("--only", values.only, [...parts, ...protocols]);
  const asked = parts.filter((part) => only.includes(part));
  const named = protocols.filter((protocol) => only.includes(protocol));
  const quick = values.quick === true;
  // Who names a protocol wants its CPU.
  const ofAll: ReadonlyArray<Part> = named.length > 0 || quick || values.profile !== undefined ? ["cpu"] : parts;
  return {
    size: quick ? "quick" : values.full === true ? "full" : "usual",
    parts: asked.length > 0 ? asked : ofAll,
    protocols: named,
    stores: among("--store", values.store, ["memory", "file"]),
    reveals: among("--reveal", values.reveal, ["live", "on_complete"]),
    seams: among("--seam", values.seam, ["on", "off"]).map((seam) => seam === "on"),
    rounds: count("--rounds", values.rounds, 7),
    streams: split(values.streams).map((one) => count("--streams", one, 0)),
    events: count("--events", values.events, quick ? 60 : 150),
    held: count("--held", values.held, quick ? 300 : 1000),
    workers: count("--workers", values.workers, availableParallelism()),
    serve: (values.serve ?? "").split(" ").filter((flag) => flag !== ""),
    profile: values.profile,
    install: values.install === true,
    json: values.json === true,
    write: values.write === true,
    help: values.help === true,
  };
};

const split = (given: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  (given ?? []).flatMap((names) => names.split(","));

const among = <A extends string>(
  flag: string,
  given: ReadonlyArray<string> | undefined,
  known: ReadonlyArray<A>,
): ReadonlyArray<A> =>
  split(given).map((name) => {
    const found = known.find((one) => one === name);
    if (found === undefined) throw new Error(`${flag}: expected ${known.join(", ")}, got "${name}"`);
    return found;
  });

const count = (flag: string, given: string | undefined, usual: number): number => {
  const value = Number(given ?? usual);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${flag}: expected a number from 1, got "${given}"`);
  return value;
};
