/**
 * Holds the mutants of attaching to a run of the gateway: whose response it is, and when it is given.
 */
import type { Mutant } from "./Mutant.ts";

const registry = "test/gateway/attach/AttachRegistry.test.ts";
const keys = "test/gateway/attach/AttachKey.test.ts";
const streams = "test/gateway/attach/Streams.test.ts";
const attach = "test/gateway/attach/Attach.test.ts";

/** The mutants of `src/gateway/attach` and of `src/adapters/fetch/StreamAttachment.ts`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a repeat is given a run that somebody reads",
    breaks: "no living reader, DESIGN 17",
    within: "AttachRegistry",
    find: "return inOrder.find((entry) => !entry.isRead) ?? inOrder.find(isSilent);",
    replace: "return inOrder.find((entry) => !entry.isRead) ?? inOrder[0];",
    proofs: [{ test: registry, named: "nobody beside a living one" }],
  },
  {
    name: "a run that has failed answers a repeat",
    breaks: "L5",
    within: "mayAnswer",
    find: 'if (end !== undefined && end.how !== "whole") return false;',
    replace: 'if (end !== undefined && end.how === "cancelled") return false;',
    proofs: [{ test: registry, named: "has failed or was cancelled" }],
  },
  {
    name: "a request without a word is given a response that has ended",
    breaks: "programs sample, DESIGN 17",
    within: "mayAnswer",
    find: "return says || (end === undefined && !isRead);",
    replace: "return says || !isRead;",
    proofs: [{ test: registry, named: "only while the run is unfinished" }],
  },
  {
    name: "any name of a run gives its response",
    breaks: "the credential of the original request is demanded, DESIGN 17",
    within: "found",
    find: "if (!isSameKey(known ?? nobody, holder) || known === undefined) return undefined;",
    replace: "if (known === undefined) return undefined;",
    proofs: [{ test: registry, named: "only the holder of a run's credential" }],
  },
  {
    name: "a key has no token's name",
    breaks: "never another client's bytes, DESIGN 17",
    within: "AttachKeys",
    find: '["request", tenant ?? null, method,',
    replace: '["request", null, method,',
    proofs: [{ test: keys, named: "another token of the gateway" }],
  },
  {
    name: "a key has no credentials",
    breaks: "never another client's bytes, DESIGN 17",
    within: "AttachKeys",
    find: "upstream, target, credentialsOf(target, headers), given],",
    replace: "upstream, target, [], given],",
    proofs: [{ test: keys, named: "another credential" }],
  },
  {
    name: "a response that is too long is kept",
    breaks: "L11",
    within: "append",
    find: 'if (entry.log.length > this.#limits.runBytes) evicted.push(this.#evict(entry, "run_bytes"));',
    replace: 'if (entry.log.length > 2 * this.#limits.runBytes) evicted.push(this.#evict(entry, "run_bytes"));',
    proofs: [{ test: registry, named: "holds its limits" }],
  },
  {
    name: "all responses together have no limit",
    breaks: "L11",
    within: "append",
    find: "if (this.#bytes <= this.#limits.processBytes) break;",
    replace: "if (this.#bytes >= 0) break;",
    proofs: [{ test: registry, named: "evicts the oldest" }],
  },
  {
    name: "a reader that lost its place keeps its connection",
    breaks: "the second takes over, DESIGN 17",
    within: "take",
    find: "if (before !== undefined) before.over = true;",
    replace: "if (before !== undefined && before === reader) before.over = true;",
    proofs: [{ test: streams, named: "has one reader" }],
  },
  {
    name: "an attached client begins at the first byte, whatever it has",
    breaks: "no character twice",
    within: "serve",
    find: "const reader = run.take(client, from);",
    replace: "const reader = run.take(client, 0 * from);",
    proofs: [{ test: streams, named: "the very next byte" }],
  },
  {
    name: "a shutdown waits for clients that may come back",
    breaks: "SIGTERM ends lingering runs, DESIGN 17",
    within: "#dueAt",
    find: "return this.#closing || entry.evicted !== undefined ? 0",
    replace: "return entry.evicted !== undefined ? 0",
    proofs: [{ test: streams, named: "ends with the gateway" }],
  },
  {
    name: "a client that left keeps its run for ever",
    breaks: "L10",
    within: "#watched",
    find: "if (left <= 0) break;",
    replace: "if (left <= 0) return;",
    proofs: [{ test: attach, named: "comes too late" }],
  },
  {
    name: "a repeat takes the place of a reader that lives, which took that of a silent one a moment ago",
    breaks: "no living reader, DESIGN 17",
    within: "repeated",
    find: "return reader !== undefined && silent.has(reader);",
    replace: "return reader !== undefined;",
    proofs: [{ test: "test/gateway/attach/Silent.test.ts", named: "one of two repeats" }],
  },
  {
    name: "a silent reader keeps its place",
    breaks: "a repeat takes the place of a reader whose socket is silent, DESIGN 17",
    within: "repeated",
    find: "return silent.length > 0 && (yield* take(new Set(silent)));",
    replace: "return silent.length < 0;",
    proofs: [{ test: "test/gateway/attach/Silent.test.ts", named: "loses its place to a repeat" }],
  },
  {
    name: "a response that broke is given again and again behind its last byte",
    breaks: "L11",
    within: "answered",
    find: "if (run.isBrokenAt(from)) return broken;",
    replace: "",
    proofs: [{ test: "test/gateway/attach/Fetch.test.ts", named: "without end" }],
  },
  {
    name: "./fetch asks for the rest of a response without end",
    breaks: "L11",
    within: "rest",
    find: "if (from > this.#from) this.#tried = 0;",
    replace: "this.#tried = 0;",
    proofs: [{ test: "test/adapters/fetch/StreamAttachment.test.ts", named: "bounded number of times" }],
  },
  {
    name: "./fetch repeats a request whose first head never came without a word",
    breaks: "one request at the provider where attachable, DESIGN 17",
    within: "mayBe",
    find: "return this.#known.get(origin) !== false;",
    replace: "return this.#known.get(origin) === true;",
    proofs: [{ test: "test/adapters/fetch/StreamAttachment.test.ts", named: "wherever nothing has answered yet" }],
  },
  {
    name: "a Stop of a run in another spelling goes to a provider",
    breaks: "the gateway's own paths stay in it, DESIGN 19",
    within: "problemOf",
    find: "if (!ownPath.test(rest) && /^(?:recovery|metrics)$/.test(first)) return ownPlain;",
    replace: "",
    proofs: [{ test: "test/gateway/attach/Hostile.test.ts", named: "in every other spelling" }],
  },
];
