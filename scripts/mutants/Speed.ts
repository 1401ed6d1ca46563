/**
 * Holds the mutants of what a run does in fewer steps than it could: each fast way must do what the long one does, and a run that
 * has ended must hold nothing.
 */
import type { Mutant } from "./Mutant.ts";

const health = "test/gateway/api/StoreHealth.test.ts";

const direct = "test/runtime/attempt/DirectReading.test.ts";

const atOnce = "test/runtime/run/AtOnce.test.ts";
const telemetry = "test/runtime/run/TelemetryTaps.test.ts";
const services = "test/adapters/relay/Services.test.ts";
const chatSplice = "test/provider/openai-chat/Splice.test.ts";
const kept = "test/gateway/proxy/RequestBody.test.ts";
const collections = "test/cli/serve/ShortCollections.test.ts";

/** What a fast way gets wrong. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "the young generation of a gateway is collected when V8 likes",
    breaks: "the p99 of heads",
    within: "shorten",
    find: "if (isV8 &&",
    replace: "if (!isV8 &&",
    proofs: [
      { test: collections, named: "no pause has much to copy" },
      { test: collections, named: "in each of several workers" },
    ],
  },
  {
    name: "a gateway collects as it likes, whatever the command line of Node says",
    breaks: "what an operator has set stays",
    within: "shorten",
    find: 'arg.replaceAll("_", "-").includes(flag)',
    replace: "arg.includes(flag)",
    proofs: [{ test: collections, named: "what the command line of Node says" }],
  },
  {
    name: "a presence that is kept keeps its ended run, with all that it holds",
    breaks: "L11",
    within: "#end",
    find: "      this.taps?.presence?.forgets(this);\n",
    replace: "",
    proofs: [{ test: "test/runtime/run/EndedRuns.test.ts", named: "whose presence is kept" }],
  },
  {
    name: "a long form is written to the place of the short ones",
    breaks: "a repeat is known however it is spelt",
    within: "Writer",
    find: "body.length <= sharedBytesMax ? shared : new Uint8Array(body.length)",
    replace: "shared",
    proofs: [{ test: "test/gateway/body/FormHash.test.ts", named: "is that of the body alone" }],
  },
  {
    name: "a form ends with what the form before it has left there",
    breaks: "a repeat is known however it is spelt",
    within: "bytes",
    find: "this.#out.subarray(0, this.#at)",
    replace: "this.#out",
    proofs: [{ test: "test/gateway/body/FormHash.test.ts", named: "is that of the body alone" }],
  },
  {
    name: "a store that is watched does not commit at once any more",
    breaks: "a write that a store takes in the very step needs no fiber",
    within: "watch",
    find: "const followed = staysAtOnce(around, recorder, () => watched.taken());",
    replace: "const followed = around;",
    proofs: [{ test: health, named: "commits at once" }],
  },
  {
    name: "a commit that was taken at once does not say that the store is well",
    breaks: "an operator is told how the store is",
    within: "staysAtOnce",
    find: "if (refusal === undefined) taken();",
    replace: "",
    proofs: [{ test: health, named: "each such commit counts" }],
  },
  {
    name: "a commit that was refused at once says that the store is well",
    breaks: "an operator is told how the store is",
    within: "staysAtOnce",
    find: "if (refusal === undefined) taken();",
    replace: "taken();",
    proofs: [{ test: health, named: "each such commit counts" }],
  },
  {
    name: "a store that was wrapped commits at once, past what it was wrapped in",
    breaks: "L8",
    within: "staysAtOnce",
    find: "if (write === undefined) return around;",
    replace: "if (write === undefined) return commitsAtOnce(around, () => undefined);",
    proofs: [{ test: health, named: "is not asked to commit at once" }],
  },
  {
    name: "what a source throws that is read directly is heard by nobody",
    breaks: "L7",
    within: "DirectReading",
    find: "reading.ended(Exit.die(defect));",
    replace: "throw defect;",
    proofs: [{ test: direct, named: "throws in its first step" }],
  },
  {
    name: "a source that is opened while its run is stopped is read",
    breaks: "L6",
    within: "DirectReading",
    find: "if (this.isOver) {\n          this.#lets();\n          return;\n        }",
    replace: "",
    proofs: [{ test: direct, named: "is stopped while it is opened" }],
  },
  {
    name: "a source that is read directly is not closed with its attempt",
    breaks: "L6",
    within: "close",
    find: "    this.#reading = undefined;\n    this.#lets();\n",
    replace: "    this.#reading = undefined;\n",
    proofs: [{ test: direct, named: "of its very first step carries an error" }],
  },
  {
    name: "a source that is read directly is closed behind its own end",
    breaks: "a connection that has ended is kept for the next request",
    within: "#reads",
    find: "this.#reading = undefined;\n    this.#reader = undefined;\n    ended(exit);",
    replace: "this.close();\n    ended(exit);",
    proofs: [{ test: direct, named: "is not closed behind it" }],
  },
  {
    name: "a write at once overtakes one that is under way",
    breaks: "L8",
    within: "#writesNow",
    find: "if (writeAtOnce === undefined || this.#last !== undefined || this.#loss !== undefined) return false;",
    replace: "if (writeAtOnce === undefined || this.#loss !== undefined) return false;",
    proofs: [{ test: atOnce, named: "waits behind one that takes time" }],
  },
  {
    name: "a run that was taken over is written at once",
    breaks: "L6",
    within: "#writesNow",
    find: "if (writeAtOnce === undefined || this.#last !== undefined || this.#loss !== undefined) return false;",
    replace: "if (writeAtOnce === undefined || this.#last !== undefined) return false;",
    proofs: [{ test: atOnce, named: "once the run is another process's" }],
  },
  {
    name: "a write that a store refuses in its very step counts as recorded",
    breaks: "L8",
    within: "#writesNow",
    find: "if (all.length > 0 && writeAtOnce(this.runId, all) !== undefined) return false;",
    replace: "if (all.length > 0) writeAtOnce(this.runId, all);",
    proofs: [{ test: atOnce, named: "the store refuses it in that step" }],
  },
  {
    name: "a write that throws in its very step counts as recorded",
    breaks: "L8",
    within: "#writesNow",
    find: "    } catch {\n      return false;\n    }\n    this.#pending = undefined;",
    replace: "    } catch {\n      return true;\n    }\n    this.#pending = undefined;",
    proofs: [{ test: atOnce, named: "the store throws in that step" }],
  },
  {
    name: "evidence that was written at once is written again",
    breaks: "L11",
    within: "#writesNow",
    find: "    this.#pending = undefined;\n    this.#unwritten = none;\n    if (all.length > 0) this.#taken",
    replace: "    this.#unwritten = none;\n    if (all.length > 0) this.#taken",
    proofs: [
      { test: atOnce, named: "each entry once" },
      { test: atOnce, named: "interrupted in the middle of it" },
    ],
  },
  {
    name: "a run whose source has ended does not wait for its close",
    breaks: "L6",
    within: "closesItself",
    find: "attempt.hasClosed ? Effect.void : Effect.andThen(Effect.yieldNow, Effect.flatten(beginClose(run, attempt))),",
    replace: "attempt.hasClosed ? Effect.void : Effect.void,",
    proofs: [{ test: atOnce, named: "has closed by the end of its run" }],
  },
  {
    name: "two series are taken for one, where a name looks like another attribute",
    breaks: "a series counts what its attributes say",
    within: "keyOf",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: "key += `\\n${name}=${it.length}:${it}`;",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: "key += `\\n${name}=${it}`;",
    proofs: [{ test: telemetry, named: "is of its own attributes" }],
  },
  {
    name: "a series is found without the names of its run",
    breaks: "a series counts what its attributes say",
    within: "measure",
    find: "const name = metric.id + keyOf(labels) + keyOf(attributes);",
    replace: "const name = metric.id + keyOf(attributes);",
    proofs: [{ test: telemetry, named: "is of its own attributes" }],
  },
  {
    name: "what a program adds to every measurement is left out",
    breaks: "a series counts what its attributes say",
    within: "measure",
    find: "if (make === undefined || Object.keys(Context.get(context, Metric.CurrentMetricAttributes)).length > 0) {",
    replace: "if (make === undefined) {",
    proofs: [{ test: telemetry, named: "has what the program adds" }],
  },
  {
    name: "a span is made of a run that nothing reads",
    breaks: "a run without a tracer pays for none",
    within: "isTraced",
    find: "Context.get(services, Tracer.Tracer) !== Tracer.nativeTracer;",
    replace: "services !== undefined;",
    proofs: [{ test: telemetry, named: "is made of no run where nothing reads it" }],
  },
  {
    name: "a tracer that is added is told nothing",
    breaks: "what a run does can be traced",
    within: "isTraced",
    find: "Context.get(services, Tracer.Tracer) !== Tracer.nativeTracer;",
    replace: "services === undefined;",
    proofs: [{ test: telemetry, named: "of the next one where a tracer is added" }],
  },
  {
    name: "every pull of a relayed stream copies all services of the program",
    breaks: "a stream copies no services",
    within: "begin",
    find: "const pull = yield* Channel.toPullScoped(Stream.toChannel(events), scope);",
    replace: "const pull = yield* Scope.provide(Stream.toPull(events), scope);",
    proofs: [{ test: services, named: "copies no services" }],
  },
  {
    name: "a wait that its run ends in copies all services of the program",
    breaks: "a stream copies no services",
    within: "RelayWaits",
    find: "yield* Scope.addFinalizer(yield* Effect.scope, ends);",
    replace: "yield* Effect.addFinalizer(() => ends);",
    proofs: [{ test: services, named: "copies no services" }],
  },
  {
    name: "a body that is kept copies all services of the program",
    breaks: "a stream copies no services",
    within: "BodyStore",
    find: "Effect.as(Scope.addFinalizer(scope, release), take)",
    replace: "Effect.as(Scope.provide(Effect.addFinalizer(() => release), scope), take)",
    proofs: [{ test: kept, named: "copies no services" }],
  },
  {
    name: "a write that takes time copies all services of the program",
    breaks: "a stream copies no services",
    within: "#inTurn",
    find: "const fiber = Effect.runForkWith(this.#owner.services)(this.#turn(send));",
    replace:
      "const fiber = Effect.runForkWith(this.#owner.services)(Effect.provideContext(this.#turn(send), this.#owner.services));",
    proofs: [{ test: services, named: "copies none for its writes" }],
  },
  {
    name: "a call that comes with text is taken for text alone",
    breaks: "a response that has called a tool goes not on as text",
    within: "ChatSplice",
    find: "if (isPlain(delta)) return;",
    replace: 'if (typeof delta.content === "string") return;',
    proofs: [{ test: chatSplice, named: "says why it cannot go on" }],
  },
  {
    name: "counts that a first response told under a name of its own are not read",
    breaks: "a continuation's counts are those of one response",
    within: "usagesOf",
    find: "Json.record(chunk.usage) === undefined && Json.record(chunk.x_groq) === undefined",
    replace: "Json.record(chunk.usage) === undefined",
    proofs: [{ test: chatSplice, named: "where the first told them under x_groq" }],
  },
  {
    name: "a body whose request is over is counted for ever",
    breaks: "L11",
    within: "BodyStore",
    find: "Effect.as(Scope.addFinalizer(scope, release), take)",
    replace: "Effect.as(Scope.addFinalizer(scope, Effect.void), take)",
    proofs: [{ test: kept, named: "is counted until its scope is closed" }],
  },
];
