/**
 * Holds the mutants of cancels that reach a run at whichever process drives it, and of the words by which processes hear of them.
 */
import type { Mutant } from "./Mutant.ts";

const stored = "test/runtime/attach/StoredCancels.test.ts";
const heard = "test/runtime/attach/CancelledElsewhere.test.ts";
const cancels = "test/runtime/crash/RunCancel.test.ts";
const file = "test/recorder/sql/SqlWords.test.ts";
const api = "test/gateway/api/Cancel.test.ts";
const facts = "test/recorder/postgres/PostgresFacts.test.ts";

/** The mutants of `StoredCancels`, `RunCancel` and `SqlWords`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a cancel is confirmed before any process has taken it",
    breaks: "what became of a cancel is said as it is",
    within: "cancel",
    find: 'Effect.map(facts.find("cancel", key), (found) => found === undefined);',
    replace: 'Effect.map(facts.find("cancel", key), (found) => found !== undefined);',
    proofs: [{ test: stored, named: "is nobody's where no process drives the run" }],
  },
  {
    name: "a cancel that no process took is carried out later, when who asked has been told that it was not",
    breaks: "what became of a cancel is said as it is",
    within: "cancel",
    find: ': Effect.map(facts.take("cancel", key), (mine) => mine === undefined);',
    replace: ": Effect.succeed(false);",
    proofs: [{ test: stored, named: "is taken back" }],
  },
  {
    name: "a cancel that was taken back a moment ago is carried out",
    breaks: "what became of a cancel is said as it is",
    within: "hearing",
    find: "if (mine !== undefined) cancels(asked);",
    replace: "cancels(mine === undefined ? asked : asked);",
    proofs: [{ test: stored, named: "taken back while its driver looked" }],
  },
  {
    name: "a cancel whose word was lost is never heard of",
    breaks: "nothing rests on a message",
    within: "hearing",
    find: 'if (word._tag === "Look" || (word._tag === "Put" && word.kind === "cancel"))',
    replace: 'if (word._tag === "Put" && word.kind === "cancel")',
    proofs: [{ test: stored, named: "found by the next look" }],
  },
  {
    name: "any process takes any cancel away",
    breaks: "a cancel reaches the process that drives the run, DESIGN 18",
    within: "hearing",
    find: "if (asked === undefined || !isMine(asked)) return Effect.void;",
    replace: "if (asked === undefined) return Effect.void;",
    proofs: [{ test: stored, named: "is nobody's where no process drives the run" }],
  },
  {
    name: "a client ends a run of another client by its id",
    breaks: "a run's id is no secret, DESIGN 17",
    within: "makeProcessor",
    find: "holder === undefined && live.has(run_id)",
    replace: "holder !== run_id && live.has(run_id)",
    proofs: [{ test: heard, named: "not for a client that the run is not known to be of" }],
  },
  {
    name: "a cancel that stands is one row more each time that it is asked for",
    breaks: "L11",
    within: "cancel",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: "const key = stands ? asked.run_id : `${asked.run_id}",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: "const key = stands && asked.run_id === '' ? asked.run_id : `${asked.run_id}",
    proofs: [{ test: cancels, named: "the cancel stands until it does" }],
  },
  {
    name: "a cancel is forgotten before its silent process goes on",
    breaks: "a cancel stands for an hour",
    within: "cancel",
    find: "stands ? standsMs : 2 * cancelMs",
    replace: "stands ? 2 * cancelMs : 2 * cancelMs",
    proofs: [{ test: cancels, named: "stands for an hour and no longer" }],
  },
  {
    name: "a cancel for one client's runs decides the run of another one that has died",
    breaks: "a run's id is no secret, DESIGN 17",
    within: "runIn",
    find: "asked === undefined || asked.holder !== undefined ? []",
    replace: "asked === undefined ? []",
    proofs: [{ test: cancels, named: "for a client's own runs never does" }],
  },
  {
    name: "a run that was cancelled while its process was silent is offered for a retry",
    breaks: "L10: nothing of a cancelled run is sent again",
    within: "tendedAs",
    find: "cancelled.has(runId)\n",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: "cancelled.has(`${runId} `)\n",
    proofs: [{ test: cancels, named: "then decides it as cancelled" }],
  },
  {
    name: "a cancel that was carried out stands on",
    breaks: "L11",
    within: "tendedAs",
    find: 'outcome === "skipped" ? Effect.void : StoredCancels.settle(recorder.cancels, runId)',
    replace: 'outcome === "skipped" ? Effect.void : Effect.void',
    proofs: [{ test: cancels, named: "then decides it as cancelled" }],
  },
  {
    name: "a run that no process drives is decided as if its user had said nothing",
    breaks: "L10: nothing of a cancelled run is sent again",
    within: "next",
    find: "options.cancelled === true ? Orphan.cancelled(record) : undefined",
    replace: "options.cancelled === true ? undefined : undefined",
    proofs: [{ test: cancels, named: "is decided as cancelled and ends" }],
  },
  {
    name: "the incident of a cancelled run does not say that its user has cancelled it",
    breaks: "L9",
    within: "cancelled",
    find: "run: { ...input.run, user_cancelled: true }",
    replace: "run: { ...input.run }",
    proofs: [{ test: cancels, named: "is decided as cancelled and ends" }],
  },
  {
    name: "a process claims to have told another one that it cannot reach",
    breaks: "what became of a cancel is said as it is",
    within: "cancel",
    find: 'cancels === undefined ? "unheard" : "stands"',
    replace: '"stands"',
    proofs: [{ test: cancels, named: "cannot be told is left alone" }],
  },
  {
    name: "a client that waits for its head asks again for the run that a person has cancelled",
    breaks: "nothing of a cancelled run is sent again",
    within: "beforeHead",
    find: "if (isCancelled(error)) return refuse(request, givenUp(error));",
    replace: "",
    proofs: [{ test: api, named: "behind which it does not ask again" }],
  },
  {
    name: "a process of a file looks for cancels once, when it begins to drive runs",
    breaks: "a cancel reaches the process that drives the run",
    within: "ofFile",
    find: "(lease.isNeeded ? Effect.sleep(fileLookMs) : Queue.take(needed))",
    replace: "(lease.isNeeded ? Queue.take(needed) : Queue.take(needed))",
    proofs: [{ test: file, named: "look for cancels while they drive a run" }],
  },
  {
    name: "a process of a file looks for cancels all the time",
    breaks: "SQLite users do not notice",
    within: "ofFile",
    find: "Effect.suspend(() => (lease.isNeeded ? Effect.sleep(fileLookMs) : Queue.take(needed)));",
    replace: "Effect.suspend(() => (needed === undefined ? Queue.take(needed) : Effect.sleep(fileLookMs)));",
    proofs: [{ test: file, named: "look for cancels while they drive a run" }],
  },
  {
    name: "cancels that are over stay in a file for ever",
    breaks: "L11",
    within: "ofFile",
    find: "Effect.andThen(SqlFacts.forget({ database, now }), facts.put(...fact))",
    replace: "facts.put(...fact)",
    proofs: [{ test: file, named: "keep no cancel that is over" }],
  },
  {
    name: "a run is said to be driven by a process that has lost it",
    breaks: "what became of a cancel is said as it is",
    within: "driver",
    find: "AND r.ended_at IS NULL AND l.fenced = 0",
    replace: "AND r.ended_at IS NULL",
    proofs: [{ test: file, named: "once its process has ended" }],
  },
  {
    name: "a word that this version does not know is one of a kind that it knows",
    breaks: "versions run side by side",
    within: "wordOf",
    find: "toldKinds.find((it) => it === payload)",
    replace: "toldKinds.find((it) => payload.startsWith(it))",
    proofs: [{ test: file, named: "nothing where it is of another version" }],
  },
  {
    name: "stores of one database hear each other's words",
    breaks: "PostgreSQL's channels are those of a whole database",
    within: "make",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: "const channel = `${prefix}words_${store}`;",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: "const channel = `${prefix}words_${store.slice(0, 0)}`;",
    proofs: [{ test: facts, named: "is not told of to a store of another schema" }],
  },
  {
    name: "words are believed to come before one has",
    breaks: "a pooler drops LISTEN",
    within: "make",
    find: "const hearing = { now: false };",
    replace: "const hearing = { now: true };",
    proofs: [{ test: facts, named: "cannot be had, and says so" }],
  },
  {
    name: "an answer rings no bell elsewhere",
    breaks: "an answer is acted on at once",
    within: "make",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: "Effect.asVoid(sql`SELECT pg_notify(${channel}, ${`${answeredPrefix}${runId}`})`)",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: "Effect.asVoid(sql`SELECT pg_notify(${channel}, ${`${helloPrefix}${runId}`})`)",
    proofs: [{ test: facts, named: "and an answer as it is given" }],
  },
  {
    name: "a process counts itself twice among those that live",
    breaks: "the throttle is divided by living nodes, DESIGN 18",
    within: "make",
    find: "1 + Number(row?.n ?? 0)",
    replace: "2 + Number(row?.n ?? 0)",
    proofs: [{ test: facts, named: "is how many of them drive runs" }],
  },
  {
    name: "what processes know together is lost behind a recorder's bounds",
    breaks: "gateways share what matters across them",
    within: "make",
    find: "...(recorder.shared === undefined ? {} : { shared: recorder.shared }),",
    replace: "",
    proofs: [{ test: "test/recorder/BoundedRecorder.test.ts", named: "behind its bounds too" }],
  },
  {
    name: "a repeat of another process's run names it nowhere",
    breaks: "a record says which run it repeats",
    within: "repeats",
    find: "return entries.length === 0 ? Effect.void : Effect.asVoid(run.write(entries));",
    replace: "return Effect.void;",
    proofs: [{ test: "test/runtime/run/SpentBefore.test.ts", named: "asked for beside its attempt" }],
  },
  {
    name: "a repeat that breaks names the run that it repeats nowhere",
    breaks: "a record says which run it repeats",
    within: "record",
    find: "...run.takesRepeats(),\n",
    replace: "",
    proofs: [{ test: "test/runtime/run/SpentBefore.test.ts", named: "names it on record" }],
  },
];
