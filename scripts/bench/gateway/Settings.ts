/**
 * Names the ways in which a gateway is set up while it is measured, and chooses which of them a run of the bench has time for.
 */
import type { Options, Reveal, Store } from "./Options.ts";
import type { Protocol } from "./Wires.ts";

/** A gateway as it is measured. */
export interface Setting {
  readonly store: Store;
  readonly reveal: Reveal;
  /** With shown text that goes on, and runs that outlive their clients; the bars are for these. */
  readonly seam: boolean;
}

export const nameOf = ({ reveal, seam, store }: Setting): string =>
  `gateway, ${reveal}, ${store}${seam ? "" : ", no continue_text, no linger"}`;

/** The flags of `serve`, but for its store. */
export const flagsOf = ({ reveal, seam }: Setting, { serve }: Options, lingerMs = 60_000): ReadonlyArray<string> => [
  ...["--reveal", reveal],
  ...(seam ? ["--continue-text", "auto", "--linger-ms", String(lingerMs)] : []),
  ...serve,
];

const all: ReadonlyArray<Setting> = (["live", "on_complete"] as const).flatMap((reveal) =>
  (["memory", "file"] as const).flatMap((store) => [true, false].map((seam) => ({ store, reveal, seam }))),
);

/** What people run who want their runs to outlive a crash. */
export const liveFile: Setting = { store: "file", reveal: "live", seam: true };
/** What a gateway costs without what its store does. */
export const liveMemory: Setting = { store: "memory", reveal: "live", seam: true };
const heldFile: Setting = { store: "file", reveal: "on_complete", seam: true };
const withoutSeam: Setting = { store: "file", reveal: "live", seam: false };

/** What is measured of a protocol: all that the options name, or what the size of the run has time for. */
export const settingsOf = (protocol: Protocol, options: Options): ReadonlyArray<Setting> => {
  const { reveals, seams, size, stores } = options;
  const named = stores.length + reveals.length + seams.length > 0;
  if (size !== "full" && !named) {
    if (size === "quick") return [liveMemory, liveFile];
    return protocol === "chat" ? [liveMemory, liveFile, heldFile, withoutSeam] : [liveFile];
  }
  return all.filter(
    ({ reveal, seam, store }) =>
      has(stores, store) &&
      has(reveals, reveal, size === "full" ? undefined : "live") &&
      has(seams, seam, size === "full" ? undefined : true),
  );
};

/** Whether a value is among the named ones; where none is named, whether it is the usual one, or any where there is none. */
const has = <A>(named: ReadonlyArray<A>, value: A, usual?: A): boolean =>
  named.length === 0 ? usual === undefined || value === usual : named.includes(value);

/** Paced streams at one time. */
export const streamsOf = (protocol: Protocol, { size, streams }: Options): ReadonlyArray<number> => {
  if (streams.length > 0) return streams;
  return size === "full" || (size === "usual" && protocol === "chat") ? [50, 300] : [50];
};
