/**
 * Plays breaks of every kind in the matrix in a gateway that continues shown text, and in one that asks.
 */
import { Effect } from "effect";
import { protocols } from "../../src/provider/Protocols.ts";
import { FaultProvider, type FaultScript } from "../../src/testing/index.ts";
import { readAs, requests, targets } from "../adapters/relay/seam/SeamCases.ts";
import { front, send } from "../gateway/GatewayCases.ts";
import type { Content } from "./Cell.ts";

/** Protocols whose text can be continued. */
export const ids = protocols.ids.filter((id) => protocols.get(id).splice !== undefined);

const tool = { tool: "edit", input: { path: "a" } };

const shapes: Readonly<Record<string, Content>> = {
  text: [{ text: 14 }],
  "thoughts and text": [{ reasoning: 2 }, { text: 14 }],
  "text and a call": [{ text: 14 }, tool],
  "thoughts, text and a call": [{ reasoning: 2 }, { text: 14 }, tool],
};

/** Kinds of break: immediate, or a silence that a watchdog notices, with and without keep-alives. */
const kinds = ["rst", "fin", "end", "stall", "keep_alive"] as const;
type Kind = (typeof kinds)[number];
type Reveal = "live" | "on_complete";
type Break = NonNullable<NonNullable<FaultScript.FaultScriptInput["answers"]>[number]["break"]>;

/** Places of the break: after so many events, inside a character, in a call, before the marker. */
const places: ReadonlyArray<Pick<Break, "at" | "n">> = [
  ...[1, 3, 5, 8, 11, 14, 17, 19].map((n) => ({ at: "event" as const, n })),
  { at: "utf8", n: 9 },
  { at: "tool_arguments" },
  { at: "terminal" },
];

/** The outcome of a break in an answer of one shape. */
export interface Row {
  readonly kind: Kind;
  readonly shape: string;
  readonly reveal: Reveal;
  /** Requests that the server saw. */
  readonly requests: number;
  readonly said: string;
  readonly whole: boolean;
  readonly shown: boolean;
  readonly text: string;
  readonly calls: ReadonlyArray<string>;
}

/** Maximum silence of a response, in milliseconds. */
const idleMs = 250;

type ContinueText = "ask" | "auto";

/** Plays the breaks of every shape in one protocol, in the live and the held mode. */
export const playAll = (id: (typeof ids)[number], continueText: ContinueText): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.forEach(cells(), (cell) => played(id, cell, continueText), { concurrency: 12 });

interface Cell extends Pick<Row, "kind" | "shape" | "reveal" | "said"> {
  readonly content: Content;
  readonly place: Pick<Break, "at" | "n">;
}

const cells = (): ReadonlyArray<Cell> =>
  Object.entries(shapes).flatMap(([shape, content]) =>
    kinds.flatMap((kind) =>
      places
        .filter(({ at }) => at !== "tool_arguments" || shape.endsWith("call"))
        .flatMap((place) =>
          (["live", "on_complete"] as const).map((reveal) => {
            const said = `${shape}, ${kind} at ${place.at} ${place.n ?? ""}, ${reveal}`;
            return { shape, content, said, reveal, kind, place };
          }),
        ),
    ),
  );

const played = (
  id: (typeof ids)[number],
  { content, kind, place, reveal, said, shape }: Cell,
  continueText: ContinueText,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const waits = kind === "keep_alive" ? { keep_alive: { every_ms: 60 } } : {};
      const server = yield* FaultProvider.make({
        script: {
          answers: [
            { content, break: { kind, ...place }, ...waits },
            { content, goes_on: {} },
          ],
          after: "repeat",
        },
      });
      const silent = kind === "stall" || kind === "keep_alive";
      const clocks = silent ? { first_progress: idleMs, idle: idleMs, silence: idleMs } : undefined;
      const program = { continueText, reveal, onBreak: "abort", ...(clocks && { clocks }) } as const;
      const { url } = yield* front(server.url, program);
      const got = yield* Effect.promise(() => send(`${url}${targets[id]}`, { body: JSON.stringify(requests[id]) }));
      const read = readAs(id, got.text);
      const row: Row = {
        said,
        kind,
        shape,
        reveal,
        requests: (yield* server.log).length,
        whole: read.whole && !got.broken,
        shown: read.text !== "",
        text: read.text,
        calls: read.calls,
      };
      return row;
    }),
  ).pipe(Effect.orDie);

/**
 * Describes the fault of a row: text or a call twice, a gap, two answers in one, or a claim to be whole with parts missing.
 *
 * @returns an empty string if there is none
 */
export const wrongIn = ({ calls, shape, text, whole }: Row): string => {
  const serials = [...text.matchAll(/r\d+\.(\d+)·/g)].map(([, serial]) => Number(serial));
  const first = serials[0] ?? 0;
  if (serials.some((serial, at) => serial !== first + at)) return `twice, or a gap: ${text}`;
  if (new Set(text.match(/r\d+\./g)).size > 1) return `two answers: ${text}`;
  if (calls.length > 1) return "a call twice";
  const missing = serials.length !== 14 || calls.length !== (shape.endsWith("call") ? 1 : 0);
  return whole && missing ? `whole, and parts are missing: ${text}` : "";
};
