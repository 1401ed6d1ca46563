/**
 * Reads the options of `npm run bench-gateway`.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import type { Protocol } from "./Wires.ts";

export const help = `Usage: npm run bench-gateway -- [options]

Measures the gateway's cost in CPU, time and memory, compared with a plain Node proxy, nginx, http-proxy and @llmops/gateway in front of the
same provider, and compares it with the bars of the design. Takes a quarter of an hour; run nothing else meanwhile.

  --quick            one protocol, fewer events: about a minute
  --full             every protocol, store and reveal mode, with continue_text on and off: about an hour
  --only NAME        only these parts (cpu, peers, workers, bodies, linger) or protocols (chat, responses, anthropic, gemini); use commas
  --store NAME       only memory or file
  --reveal NAME      only live or on_complete
  --seam on|off      only with --continue-text auto --linger-ms 60000, or only without
  --rounds N         number of rounds in which contenders take turns; default 7
  --streams N        number of concurrent paced streams, several with commas; default 50, and 300 for chat
  --events N         number of events of a paced stream; default 150, quick 60
  --held N           number of open streams for the memory measurement; default 1000, quick 300
  --workers N        number of processes of the part workers; default one per core
  --serve FLAGS      additional flags of serve for every gateway, as in --serve="--access-log off"
  --profile DIR      writes a CPU profile of the first gateway to DIR, and prints its hot spots
  --install          first installs http-proxy and @llmops/gateway beside the bench
  --json             prints one JSON document instead of the table
  --write            also writes the tables to docs/bench.md (linger has its own) and the figures to scripts/scale/figures.json, if
                     linger, or cpu of chat and peers, were measured; \`npm run tables\` then recomputes its scale tables from them
  --help             prints this text

Exit code: 0 every bar is met, 1 some bar is missed, 2 invalid options.`;

export type Part = "cpu" | "peers" | "workers" | "bodies" | "linger";
export type Store = "memory" | "file";
export type Reveal = "live" | "on_complete";

/** The measurements to make. An empty list means that the size decides. */
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

/** @throws Error if an option is invalid */
export const read = (args: ReadonlyArray<string>): Options => {
  const { values } = parseArgs({ args: [...args], options: spec });
  const only = among("--only", values.only, [...parts, ...protocols]);
  const asked = parts.filter((part) => only.includes(part));
  const named = protocols.filter((protocol) => only.includes(protocol));
  const quick = values.quick === true;
  // Naming a protocol selects its CPU measurement.
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
  if (!Number.isInteger(value) || value < 1) throw new Error(`${flag}: expected an integer ≥ 1, got "${given}"`);
  return value;
};
