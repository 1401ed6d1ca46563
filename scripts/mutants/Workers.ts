/**
 * Holds the mutants of several processes that serve as one: what they know together, and how one is started again.
 */
import type { Mutant } from "./Mutant.ts";

const bus = "test/gateway/workers/WorkerBus.test.ts";
const repeats = "test/gateway/proxy/SharedRepeats.test.ts";
const waits = "test/gateway/api/SharedPaths.test.ts";
const restarts = "test/cli/serve/Restarts.test.ts";
const pacing = "test/recorder/sql/SqlPacing.test.ts";
const pulse = "test/cli/serve/Pulse.test.ts";
const wire = "test/cli/serve/ProgramWire.test.ts";
const lease = "test/recorder/sql/SqlLease.test.ts";
const processes = "test/cli/serveWorkersRepeats.test.ts";

/** The mutants of what workers share beside runs, and of their supervisor. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a repeat at another worker has a whole budget",
    breaks: "a client's own retries are not multiplied",
    within: "#change",
    find: "    this.heard(change, now);\n    this.#changed(change);",
    replace: "    this.heard(change, now);",
    proofs: [{ test: repeats, named: "gives what is left of a budget" }],
  },
  {
    name: "what a repeat has taken is given once more at another worker",
    breaks: "a client's own retries are not multiplied",
    within: "heard",
    find: 'else if (change._tag === "Taken") this.#failed.delete(key);',
    replace: 'else if (change._tag === "Taken") return;',
    proofs: [{ test: repeats, named: "gives what is left of a budget" }],
  },
  {
    name: "each worker tells as many unmarked repeats as one may",
    breaks: "programs sample",
    within: "heard",
    find: "if (found !== undefined) found.value.unmarked += 1;",
    replace: "if (found !== undefined) found.value.unmarked = 1;",
    proofs: [{ test: repeats, named: "counts unmarked repeats" }],
  },
  {
    name: "a word that is too long ends the run that it is about",
    breaks: "L11",
    within: "make",
    find: "if (Result.isFailure(body)) return false;",
    replace: "if (Result.isFailure(body)) throw body.failure;",
    proofs: [{ test: repeats, named: "too long for one" }],
  },
  {
    name: "a client's long word is a defect of asking the siblings",
    breaks: "L11",
    within: "asking",
    find: 'if (Result.isFailure(asked)) return resume(Effect.fail(failed("bad_message")));',
    replace: "if (Result.isFailure(asked)) throw asked.failure;",
    proofs: [{ test: bus, named: "what does not fit its own schema" }],
  },
  {
    name: "a worker's log is over before it serves",
    breaks: "lines that come together are one write",
    within: "serving",
    find: "      Effect.provideService(WorkerBus.WorkerBus, end.bus),\n    );",
    replace:
      '      Effect.provideService(WorkerBus.WorkerBus, end.bus),\n      Effect.provide(GatewayLog.layer("json")),\n    );',
    proofs: [{ test: "test/cli/serveWorkers.test.ts", named: "that come together in one write" }],
  },
  {
    name: "a wait about one request holds those of all workers",
    breaks: "an announced wait that is about one request holds no other",
    within: "layer",
    find: "if (onlyThis || !isSendable(word)) return;",
    replace: "if (!isSendable(word)) return;",
    proofs: [{ test: waits, named: "about one alone" }],
  },
  {
    name: "a wait that one worker hears is kept by it alone",
    breaks: "a cooldown holds at every worker, DESIGN 18",
    within: "layer",
    find: "own.refused({ path, credential, model }, { kind, waitMs, onlyThis: false });",
    replace: "own.refused({ path, credential, model }, { kind, waitMs, onlyThis: true });",
    proofs: [{ test: waits, named: "at each of them" }],
  },
  {
    name: "each worker tells credentials apart by a key of its own",
    breaks: "a cooldown holds at every worker, DESIGN 18",
    within: "keyedBy",
    find: "  key = shared;\n",
    replace: "  if (shared === undefined) key = shared;\n",
    proofs: [{ test: processes, named: "a wait that was announced" }],
  },
  {
    name: "a worker that takes the place of another one has forgotten what was announced",
    breaks: "a replaced worker holds what its siblings hold",
    within: "toldTo",
    find: "if (waitMs > 0) bus.tell(refused, { ...word, waitMs }, worker);",
    replace: "",
    proofs: [{ test: waits, named: "takes the place of another one" }],
  },
  {
    name: "a wait begins anew for a worker that takes the place of another one",
    breaks: "a replaced worker holds what its siblings hold, and no longer",
    within: "toldTo",
    find: "if (waitMs > 0) bus.tell(refused, { ...word, waitMs }, worker);",
    replace: "if (waitMs > 0) bus.tell(refused, word, worker);",
    proofs: [{ test: waits, named: "takes the place of another one" }],
  },
  {
    name: "a repeat at a worker that takes the place of another one has a whole budget",
    breaks: "a client's own retries are not multiplied",
    within: "make",
    find: "bus.tell(remembered, memories.slice(at, at + memoriesMax), worker);",
    replace: "",
    proofs: [{ test: repeats, named: "takes the place of another one" }],
  },
  {
    name: "what a worker has heard itself gives way to what it is told of before",
    breaks: "what is newer counts",
    within: "add",
    find: "if (!this.#values.has(key)) this.set(key, value, at);",
    replace: "this.set(key, value, at);",
    proofs: [{ test: repeats, named: "keeps what it has heard" }],
  },
  {
    name: "a worker that is new itself tells the next one what it does not know",
    breaks: "a replaced worker holds what its siblings hold",
    within: "join",
    find: "const eldest = others.find(([other]) => other !== 0)?.[0];",
    replace: "const eldest = others.at(-1)?.[0];",
    proofs: [{ test: bus, named: "there for longest" }],
  },
  {
    name: "each process of a file has the whole budget of a group",
    breaks: "the runs of a group share its budget, DESIGN 18",
    within: "ofFile",
    find: "pacing: { living: facts.living, spend },",
    replace: "pacing: { living: facts.living, spend: (_, spent) => Effect.succeed(spent) },",
    proofs: [{ test: pacing, named: "count what a group has spent" }],
  },
  {
    name: "each process of a file has the whole throttle",
    breaks: "the throttle is divided by living nodes, DESIGN 18",
    within: "ofFile",
    find: "pacing: { living: facts.living, spend },",
    replace: "pacing: { living: Effect.succeed(1), spend },",
    proofs: [{ test: pacing, named: "divide the throttle" }],
  },
  {
    name: "groups that were idle for their time stay in a file for ever",
    breaks: "L11",
    within: "ofFile",
    find: "Effect.andThen(forgotten, facts.spend(...spent))",
    replace: "facts.spend(...spent)",
    proofs: [{ test: pacing, named: "count what a group has spent" }],
  },
  {
    name: "what bounds the retries of all processes is lost behind the bounds of a recorder",
    breaks: "the runs of a group share its budget, DESIGN 18",
    within: "make",
    find: "...(recorder.pacing === undefined ? {} : { pacing: recorder.pacing }),",
    replace: "",
    proofs: [{ test: "test/recorder/BoundedRecorder.test.ts", named: "behind its bounds too" }],
  },
  {
    name: "a worker that cannot live is started for ever",
    breaks: "L10",
    within: "died",
    find: 'if (now >= deathsMax) return "give_up";',
    replace: "",
    proofs: [{ test: restarts, named: "at last never" }],
  },
  {
    name: "a worker that was well for long counts with those that died at once",
    breaks: "a death a day ends no gateway",
    within: "died",
    find: "const now = servedMs >= steadyMs ? 1 : inRow + 1;",
    replace: "const now = inRow + 1;",
    proofs: [{ test: restarts, named: "behind a worker that was well" }],
  },
  {
    name: "a worker that hangs is waited for for ever",
    breaks: "a worker whose event loop turns no more is replaced",
    within: "turn",
    find: 'return this.#silent < turnsMax ? "wait" : "hangs";',
    replace: 'return "wait";',
    proofs: [{ test: pulse, named: "is taken to hang" }],
  },
  {
    name: "a worker that answers late each time is killed in the end",
    breaks: "no worker that answers is killed",
    within: "answered",
    find: "    this.#silent = undefined;",
    replace: "    this.#silent = Math.max(0, this.#silent ?? 0);",
    proofs: [{ test: pulse, named: "whole again with each answer" }],
  },
  {
    name: "a worker that hangs is named in the log and left alone",
    breaks: "a worker whose event loop turns no more is replaced",
    within: "watched",
    find: "    kill();\n    return yield* Effect.never;",
    replace: "    return yield* Effect.never;",
    proofs: [{ test: "test/cli/serveWorkers.test.ts", named: "kills workers that hang" }],
  },
  {
    name: "a secret of the configuration is a plain text in a worker",
    breaks: "no secret in a log",
    within: "shown",
    find: "secretKey in value ? Redacted.make(value[secretKey]) : undefined",
    replace: "secretKey in value ? value[secretKey] : undefined",
    proofs: [{ test: wire, named: "arrive as they were" }],
  },
  {
    name: "the runs of a process are taken whose name begins as that of one that has ended",
    breaks: "two drivers of one run",
    within: "fenceAll",
    find: `const [from, to] = [\`\${process}.\``,
    replace: "const [from, to] = [process",
    proofs: [{ test: lease, named: "no other lease is" }],
  },
];
