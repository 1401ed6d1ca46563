/**
 * Draws the streams that clients ask for and the faults of their provider. The same seed always draws the same streams.
 */
import { seeded } from "../../test/Seeded.ts";

export const protocols = ["chat", "responses", "anthropic", "gemini"] as const;

export type Protocol = (typeof protocols)[number];

/**
 * The provider's treatment of the first request of a stream. Every later request is answered whole.
 *
 * `whole`: no fault. `call`: no fault, and a tool call follows the text. `refused`: a 503. `reset`: a head and then a reset, before any
 * text. `held`: the response is cut in the middle, and the client uses the mode `on_complete`. `cut`: the response is cut in the
 * middle, after the client has received text.
 */
export type Kind = "whole" | "call" | "refused" | "reset" | "held" | "cut";

/** A stream that a client wants. */
export interface Drawn {
  readonly id: number;
  readonly protocol: Protocol;
  readonly kind: Kind;
  /** Number of text deltas, and the provider's delay before each, in milliseconds. */
  readonly deltas: number;
  readonly everyMs: number;
}

/** Percentage of each kind. */
const shares: Readonly<Record<Kind, number>> = { whole: 56, call: 16, refused: 9, reset: 9, held: 5, cut: 5 };

const kinds = (Object.keys(shares) as ReadonlyArray<Kind>) // The keys of `shares` are the kinds.
  .flatMap((kind) => Array.from({ length: shares[kind] }, () => kind));

/** Returns a function that draws the next stream. */
export const streams = (seed: number): (() => Drawn) => {
  const random = seeded(seed);
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const of = <A>(all: ReadonlyArray<A>, fallback: A): A => all[Math.floor(random() * all.length)] ?? fallback;
  let id = 0;
  return () => {
    id += 1;
    return {
      id,
      protocol: of(protocols, "chat"),
      kind: of(kinds, "whole"),
      deltas: between(10, 40),
      everyMs: between(40, 120),
    };
  };
};

/** The text of one delta. It contains its stream and index, so a missing, duplicate or foreign delta is detected. */
export const deltaOf = ({ id }: Drawn, at: number): string => `${id}.${at} `;

/** The complete text of a stream. */
export const textOf = (drawn: Drawn): string =>
  Array.from({ length: drawn.deltas }, (_, at) => deltaOf(drawn, at)).join("");

/** The arguments of its tool call, as JSON. */
export const argumentsOf = ({ id }: Drawn): string => JSON.stringify({ order: id });

/** The prompt that identifies the stream to the provider. */
export const promptOf = ({ id }: Drawn): string => `stream=${id};`;

/** Reads the stream's id from a request body; undefined if it has none. */
export const idIn = (body: string): number | undefined => {
  const found = /stream=(\d+);/.exec(body)?.[1];
  return found === undefined ? undefined : Number(found);
};
