/**
 * Holds the mutants of what the relay, the gateway and the command line do while a path is down or cooling.
 */
import type { Mutant } from "./Mutant.ts";

const relay = "test/adapters/relay/PathWaits.test.ts";
const outage = "test/gateway/proxy/Outage.test.ts";

/** The mutants of waits, of the page's paths and of `paths`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a request that was sent counts as one that waits",
    breaks: "no second request, docs/gateway-operation.md",
    within: "opened",
    find: '    if (this.#open?.for === "path" && attempt > 1) this.pathAttempts += 1;\n    this.#end();',
    replace: '    if (this.#open?.for === "path" && attempt > 1) this.pathAttempts += 1;',
    proofs: [{ test: relay, named: "left alone once its request has gone out" }],
  },
  {
    name: "an announced wait is an outage",
    breaks: "a wait of its own is kept, docs/gateway-operation.md",
    within: "untilPathHasTaken",
    find: 'if (open?.for !== "path") return',
    replace: "if (open === undefined) return",
    proofs: [{ test: relay, named: "that is no outage" }],
  },
  {
    name: "a stream is told to ask again, though it can be kept by no-ops",
    breaks: "a wait works like a retry, docs/gateway-clients.md",
    within: "givesUp",
    find: "  streaming || pathPatienceMs === undefined",
    replace: "  (streaming && pathPatienceMs === 0) || pathPatienceMs === undefined",
    proofs: [{ test: relay, named: "and comes whole once the provider is back" }],
  },
  {
    name: "the run of a request that was told to ask again goes on",
    breaks: "no second request, L7",
    within: "open",
    find: "    yield* closeRun(scope);\n",
    replace: "",
    proofs: [{ test: relay, named: "is told to ask again after 15 s" }],
  },
  {
    name: "a client that is to ask again gets the words of a gateway that closes",
    breaks: "its repeat waits on, docs/gateway-clients.md",
    within: "beforeHead",
    find: "  if (error.again_ms !== undefined) return waitsStill(error, error.again_ms, request);\n",
    replace: "",
    proofs: [{ test: outage, named: "does not stream" }],
  },
  {
    name: "every credential is the same one",
    breaks: "another key is not held, DESIGN 13",
    within: "credentialed",
    find: 'if (secret === "") return path;',
    replace: "if (secret.length >= 0) return path;",
    proofs: [
      { test: "test/gateway/routing/RequestPath.test.ts", named: "told apart" },
      { test: outage, named: "by another key" },
    ],
  },
  {
    name: "the credential of a path is the client's, where the upstream has its own",
    breaks: "tokens of one credential share what it is told, DESIGN 13",
    within: "routeOf",
    find: "path: credentialed(pathOf(left.url), left) },",
    replace: "path: credentialed(pathOf(left.url), { headers, url: left.url }) },",
    proofs: [{ test: outage, named: "by every token" }],
  },
  {
    name: "a path that a caller can ask is asked by requests",
    breaks: "a path that is back is found by a probe, DESIGN 13",
    within: "attach",
    find: 'if (typeof path === "object" && path.way !== undefined) paths.attach(path.id, path.way);',
    replace:
      'if (typeof path === "object" && path.way !== undefined && path.id === "") paths.attach(path.id, path.way);',
    proofs: [{ test: relay, named: "and comes whole once the provider is back" }],
  },
  {
    name: "a page of another site has a path asked",
    breaks: "admission, docs/gateway-operation.md",
    within: "runs",
    find: '"/paths/try", {\n      headers: { [answerHeader]: Schema.Literal("1") },',
    replace: '"/paths/try", {\n      headers: { [answerHeader]: Schema.optionalKey(Schema.String) },',
    proofs: [{ test: "test/gateway/api/PathList.test.ts", named: "another site" }],
  },
  {
    name: "every path has a gauge of its own",
    breaks: "L11",
    within: "ofPaths",
    find: "inOrder(paths).slice(0, pathGaugesMax)",
    replace: "inOrder(paths).slice(0, pathGaugesMax * pathGaugesMax)",
    proofs: [{ test: "test/gateway/api/PathList.test.ts", named: "have a bound" }],
  },
  {
    name: "each probe is news to every open page",
    breaks: "L11",
    within: "pathsPrint",
    find: "    .map(({ code, cooldowns, path, state, waiting }) =>\n      JSON.stringify([path, state, code,",
    replace:
      "    .map(({ code, cooldowns, path, probes, state, waiting }) =>\n      JSON.stringify([path, state, probes, code,",
    proofs: [{ test: "test/gateway/api/PathList.test.ts", named: "only a probe was made" }],
  },
  {
    name: "the watch over the paths never sleeps",
    breaks: "L11",
    within: "make",
    find: "const waited = list.some(isDisturbed) ? Effect.timeoutOption(next, watchMs) : next;",
    replace: "const waited = list.length > 0 ? Effect.timeoutOption(next, watchMs) : next;",
    proofs: [{ test: "test/gateway/proxy/PathWatch.test.ts", named: "while all is well" }],
  },
];
