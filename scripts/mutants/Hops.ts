/**
 * Holds the mutants of attaching at another worker: whose word counts, what is told, and how a hop ends.
 */
import type { Mutant } from "./Mutant.ts";

const hop = "test/gateway/attach/Hop.test.ts";
const held = "test/gateway/attach/HeldElsewhere.test.ts";
const workers = "test/cli/serveWorkersAttach.test.ts";

/** The mutants of what workers say to each other about runs in `src/gateway/attach`, and of `src/cli/serve/WorkersFolder.ts`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "any process that reaches a worker's socket is served",
    breaks: "never another client's bytes, DESIGN 17",
    within: "taken",
    find: "const asked = isSibling ? read(HopAsked, word) : undefined;",
    replace: "const asked = read(HopAsked, word);",
    proofs: [{ test: hop, named: "does not know the secret" }],
  },
  {
    name: "a hop without a word of its end is whole",
    breaks: "L5",
    within: "copied",
    find: 'yield* end?.how === "whole" ? client.end : client.break;',
    replace: 'yield* end?.how === "broken" ? client.break : client.end;',
    proofs: [{ test: hop, named: "does not say how it ended" }],
  },
  {
    name: "a client that has a run's place begins another one where the owner dies",
    breaks: "a worker that dies looks like a gateway that dies",
    within: "hop",
    find: "if (isTaken) yield* client.break;\n        return isTaken ?",
    replace: "return false ?",
    proofs: [{ test: hop, named: "dies once it has given the place" }],
  },
  {
    name: "an owner that does not decide is waited for",
    breaks: "L10",
    within: "hop",
    find: "duration: decideMs,",
    replace: "duration: 1e9 * decideMs,",
    proofs: [{ test: hop, named: "waits for a decision" }],
  },
  {
    name: "a hop goes on at the owner when its client has left",
    breaks: "L10",
    within: "hop",
    find: "client.whenGone(() => void request.destroy());",
    replace: "client.whenGone(() => undefined);",
    proofs: [{ test: hop, named: "where the client leaves" }],
  },
  {
    name: "a run whose client has left is told of with the next ones",
    breaks: "an unmarked repeat pays again",
    within: "holds",
    find: 'if (when === "now") this.#tell();',
    replace: 'if (when === "now") this.#gather();',
    proofs: [{ test: held, named: "is told at once" }],
  },
  {
    name: "a key is over with the first of its runs",
    breaks: "an unmarked repeat pays again",
    within: "over",
    find: "if (runs > 1) return void this.#own.set(key, runs - 1);",
    replace: "",
    proofs: [{ test: held, named: "until the last run of it is over" }],
  },
  {
    name: "a sibling may tell as many keys as it likes",
    breaks: "L11",
    within: "#heard",
    find: "if (keys.size <= runsMax) return;",
    replace: "return;",
    proofs: [{ test: held, named: "keeps no more of a worker" }],
  },
  {
    name: "a late word of a worker that has died counts",
    breaks: "L11",
    within: "#heard",
    find: "if (!this.#bus.others().includes(worker)) return;",
    replace: "",
    proofs: [{ test: held, named: "forgets a worker that has died" }],
  },
  {
    name: "words that were lost keep later ones out",
    breaks: "an unmarked repeat pays again",
    within: "#heard",
    find: "      keys.delete(key);\n      keys.add(key);",
    replace: "      if (keys.size === runsMax && !keys.has(key)) return;\n      keys.add(key);",
    proofs: [{ test: held, named: "keeps no more of a worker" }],
  },
  {
    name: "a repeat is asked only of the worker that has told of its key",
    breaks: "a repeat pays again",
    within: "repeated",
    find: "if (!repeats && !asked) return false;",
    replace: "if (told.length > 0 || (!repeats && !asked)) return false;",
    proofs: [{ test: hop, named: "is asked of all" }],
  },
  {
    name: "a worker that comes later hears nothing of what there is",
    breaks: "an unmarked repeat pays again",
    within: "make",
    find: "yield* bus.onJoined((worker) => made.#joined(worker));",
    replace: "",
    proofs: [{ test: held, named: "one that comes later" }],
  },
  {
    name: "runs of a worker that has died are looked for there",
    breaks: "L11",
    within: "make",
    find: "yield* bus.onLeft((worker) => made.#left(worker));",
    replace: "",
    proofs: [{ test: held, named: "forgets a worker that has died" }],
  },
  {
    name: "a worker's key is not that of its siblings",
    breaks: "a repeat at another worker pays again",
    within: "AttachKeys",
    find: 'generateKeySync("hmac", { length: 256 }) : sharedKey(secret, "attach")',
    replace: 'generateKeySync("hmac", { length: 256 }) : generateKeySync("hmac", { length: 256 })',
    proofs: [{ test: "test/gateway/attach/AttachKey.test.ts", named: "of several processes" }],
  },
  {
    name: "the folder of a supervisor that lives is taken away",
    breaks: "two gateways on one machine",
    within: "removeStale",
    find: "!isAlive(pid) && isOwn(path)",
    replace: "isOwn(path)",
    proofs: [{ test: workers, named: "needs a folder" }],
  },
  {
    name: "the folder of a supervisor that was killed stays",
    breaks: "L11",
    within: "make",
    find: "      removeStale();\n",
    replace: "",
    proofs: [{ test: workers, named: "needs a folder" }],
  },
  {
    name: "a silent client at another worker keeps its place",
    breaks: "no living reader, DESIGN 17",
    within: "HopResponse",
    find: "this.gone ? Effect.succeed(true) : this.#isSilentThere)",
    replace: "this.gone ? this.#isSilentThere : Effect.succeed(false))",
    proofs: [{ test: workers, named: "socket is silent" }],
  },
];
