/**
 * Preloaded into every process of a suite. It puts `recoveringFetch` between the SDK's client and the fetch that it would call.
 *
 * Most tests pass their own fetch to the client, so replacing the global one is not enough: the line of the client that selects its fetch
 * is replaced when its file is read. Files of the checkout are not modified.
 */
import fs, { appendFileSync } from "node:fs";
import { registerHooks, syncBuiltinESMExports } from "node:module";
import { recoveringFetch } from "../../dist/adapters/fetch/FetchRecovery.js";

const { SDK_SUITES_LOG: log, SDK_SUITES_PATCHES: given = "[]" } = process.env;
const patches = JSON.parse(given).map(({ file, find, replace }) => ({ file, find: new RegExp(find, "g"), replace }));

const patched = (path, text) => {
  const name = String(path)
    .replace(/^file:\/\//, "")
    .split("?")[0];
  let changed = text;
  for (const { file, find, replace } of patches) {
    if (!name.endsWith(file)) continue;
    changed = changed.replace(find, replace);
    if (changed !== text) appendFileSync(log, `patched ${file}\n`);
  }
  return changed;
};

const ofBytes = (path, read) => {
  if (!patches.some(({ file }) => String(path).endsWith(file))) return read;
  return typeof read === "string" ? patched(path, read) : Buffer.from(patched(path, Buffer.from(read).toString()));
};

const { readFileSync } = fs;
const { readFile } = fs.promises;
fs.readFileSync = (path, ...options) => ofBytes(path, readFileSync(path, ...options));
fs.promises.readFile = async (path, ...options) => ofBytes(path, await readFile(path, ...options));
syncBuiltinESMExports();
registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    return loaded.source == null ? loaded : { ...loaded, source: ofBytes(url, loaded.source) };
  },
});

const ours = new WeakSet();
const known = new WeakMap();

/** Passes a token function of the client's options as `refreshCredentials`, as docs/fetch.md recommends. */
const optionsOf = (client) =>
  typeof client?.apiKey === "function"
    ? { refreshCredentials: async () => ({ authorization: `Bearer ${await client.apiKey()}` }) }
    : {};

const below = (fetch, client) => {
  if (typeof fetch !== "function" || ours.has(fetch)) return fetch;
  const found = client === undefined ? known.get(fetch) : undefined;
  if (found !== undefined) return found;
  const recovering = recoveringFetch({ fetch, ...optionsOf(client) });
  const made = (...call) => {
    appendFileSync(log, "called\n");
    return recovering(...call);
  };
  Object.assign(made, fetch);
  ours.add(made);
  known.set(fetch, made);
  return made;
};

// A suite may run its files in separate realms, which share only the core modules.
process.getBuiltinModule("node:events")[Symbol.for("effect-stream-recovery/below")] = below;
