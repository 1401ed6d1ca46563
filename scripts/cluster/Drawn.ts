/**
 * Draws what clients ask for, and what their provider does to them: a seed draws the same streams every time.
 */
import { seeded } from "../../test/Seeded.ts";

export const protocols = ["chat", "responses", "anthropic", "gemini"] as const;

export type Protocol = (typeof protocols)[number];

/**
 * What the provider does to the first request of a stream; every later one is played whole.
 *
 * `whole`: nothing. `call`: the same, and a tool call stands behind the text. `refused`: a 503. `reset`: a head and a reset, before
 * any text. `held`: it is cut in its middle, and its client has asked for the mode `on_complete`. `cut`: it is cut in its middle,
 * behind text that its client has.
 */
export type Kind = "whole" | "call" | "refused" | "reset" | "held" | "cut";

/** A stream that a client wants. */
export interface Drawn {
  readonly id: number;
  readonly protocol: Protocol;
  readonly kind: Kind;
  /** Deltas of its text, and how long the provider waits before each, in milliseconds. */
  readonly deltas: number;
  readonly everyMs: number;
}

/** How often each kind comes, of 100. */
const shares: Readonly<Record<Kind, number>> = { whole: 56, call: 16, refused: 9, reset: 9, held: 5, cut: 5 };

const kinds = (Object.keys(shares) as ReadonlyArray<Kind>) // The keys of `shares` are the kinds.
  .flatMap((kind) => Array.from({ length: shares[kind] }, () => kind));

/** Draws one stream after the other. */
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

/** The text of one delta. Each says its place, so that one that is missing, twice or in another stream shows. */
export const deltaOf = ({ id }: Drawn, at: number): string => `${id}.${at} `;

/** The whole text. */
export const textOf = (drawn: Drawn): string =>
  Array.from({ length: drawn.deltas }, (_, at) => deltaOf(drawn, at)).join("");

/** The arguments of its call. */
export const argumentsOf = ({ id }: Drawn): string => JSON.stringify({ order: id });

/** What its request says, by which the provider knows it. */
export const promptOf = ({ id }: Drawn): string => `stream=${id};`;

/** The stream that a request's body asks for; undefined where it names none. */
export const idIn = (body: string): number | undefined => {
  const found = /stream=(\d+);/.exec(body)?.[1];
  return found === undefined ? undefined : Number(found);
};
