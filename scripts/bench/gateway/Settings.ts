/**
 * The gateway configurations that are measured, and the choice of those that a run of the bench has time for.
 */
import type { Options, Reveal, Store } from "./Options.ts";
import type { Protocol } from "./Wires.ts";

/** One configuration of the gateway. */
export interface Setting {
  readonly store: Store;
  readonly reveal: Reveal;
  /** True if shown text is continued and runs outlive their clients. The bars apply to these configurations. */
  readonly seam: boolean;
}

export const nameOf = ({ reveal, seam, store }: Setting): string =>
  `gateway, ${reveal}, ${store}${seam ? "" : ", no continue_text, no linger"}`;

/** The flags of `serve`, without the store. */
export const flagsOf = ({ reveal, seam }: Setting, { serve }: Options, lingerMs = 60_000): ReadonlyArray<string> => [
  ...["--reveal", reveal],
  ...(seam ? ["--continue-text", "auto", "--linger-ms", String(lingerMs)] : []),
  ...serve,
];

const all: ReadonlyArray<Setting> = (["live", "on_complete"] as const).flatMap((reveal) =>
  (["memory", "file"] as const).flatMap((store) => [true, false].map((seam) => ({ store, reveal, seam }))),
);

/** The usual configuration for runs that must survive a crash. */
export const liveFile: Setting = { store: "file", reveal: "live", seam: true };
/** The cost of a gateway without a store. */
export const liveMemory: Setting = { store: "memory", reveal: "live", seam: true };
const heldFile: Setting = { store: "file", reveal: "on_complete", seam: true };
const withoutSeam: Setting = { store: "file", reveal: "live", seam: false };

/** The configurations of a protocol: all that the options select, or those that the size has time for. */
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

/** True if the value is selected. Without a selection, true for the usual value, or for any value if there is no usual one. */
const has = <A>(named: ReadonlyArray<A>, value: A, usual?: A): boolean =>
  named.length === 0 ? usual === undefined || value === usual : named.includes(value);

/** The numbers of concurrent paced streams. */
export const streamsOf = (protocol: Protocol, { size, streams }: Options): ReadonlyArray<number> => {
  if (streams.length > 0) return streams;
  return size === "full" || (size === "usual" && protocol === "chat") ? [50, 300] : [50];
};
