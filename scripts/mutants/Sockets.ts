/**
 * Holds the mutants of connections: probes, sockets that may be dead, and the waits that refusals announce.
 */
import type { Mutant } from "./Mutant.ts";

const deadSockets = "test/client/connection/DeadSockets.test.ts";
const probe = "test/client/connection/Probe.test.ts";
const rateLimits = "test/failure/tables/RateLimits.test.ts";

/** The mutants of `src/client/connection` and of the tables of refusals. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a connection keeps the request that opened it, and its body, for as long as it lives",
    breaks: "L11, every buffer is bounded",
    within: "clocked",
    find: "current.exit(() => open(options, settle))",
    replace: "open(options, settle)",
    proofs: [{ test: "test/client/connection/Connector.test.ts", named: "keeps nothing of the request" }],
  },
  {
    name: "a client that has gone is waited for while its body is thrown away",
    breaks: "L11, docs/gateway-operation.md: shutdown",
    within: "discarded",
    find: '    socket.on("close", over);\n',
    replace: "",
    proofs: [{ test: "test/gateway/proxy/Lingering.test.ts", named: "once its connection is closed" }],
  },
  {
    name: "a request is written on a connection that idled too long, because no timer has closed it",
    breaks: "no request on a dead socket",
    within: "dispatch",
    find: "this.#suspected || this.#idle.isLongerThan(this.#host.keepAliveMs);",
    replace: "this.#suspected;",
    proofs: [{ test: deadSockets, named: "by monotonic time" }],
  },
  {
    name: "a sleep that monotonic time does not count leaves idle connections in use",
    breaks: "no request on a dead socket after a suspension",
    within: "isLongerThan",
    find: "return Math.max(now() - this.#since.now, nowMs() - this.#since.nowMs) > limitMs;",
    replace: "return now() - this.#since.now > limitMs;",
    proofs: [{ test: deadSockets, named: "wall time alone" }],
  },
  {
    name: "a connection whose response still came at a wake is kept behind it",
    breaks: "no request on a dead socket after a suspension",
    within: "free",
    find: "if (this.#suspected) setImmediate(() => this.discard());",
    replace: "this.#suspected = false;",
    proofs: [{ test: deadSockets, named: "not kept where their response still comes" }],
  },
  {
    name: "a failed probe leaves idle connections in use",
    breaks: "no request on a dead socket after a failed probe",
    within: "wayTo",
    find: '(_tag === "failed" ? dropIdle() : undefined)',
    replace: "void _tag",
    proofs: [{ test: deadSockets, named: "whose probe failed" }],
  },
  {
    name: "a request that passes through is taken for an idle connection and cut",
    breaks: "what is under way goes on",
    within: "onRequestStart",
    find: "this.#carrier.begin();",
    replace: "",
    proofs: [{ test: deadSockets, named: "it goes on to its end" }],
  },
  {
    name: "TCP asks an idle socket after a minute",
    breaks: "a dead socket is felt within 16 s",
    within: "asked",
    find: "result[1]?.setKeepAlive(true, keepAliveProbeMs);",
    replace: "result[1]?.setKeepAlive(true, 60_000);",
    proofs: [{ test: deadSockets, named: "fourth second" }],
  },
  {
    name: "a probe waits for one connection alone, whose packets go ever more seldom",
    breaks: "a path that is back is found within 1.5 times the spacing of its probes",
    within: "connection",
    find: "{ length: Math.max(1, Math.ceil(limitMs / againMs)) }",
    replace: "{ length: 1 }",
    proofs: [{ test: probe, named: "beside one that hangs" }],
  },
  {
    name: "a captive portal ends a run whose provider was well before",
    breaks: "an outage is waited for",
    within: "failureOf",
    find: 'if (origin.reached && TransportCodes.isForeign(failure.code ?? "")) return { ...failure, retryable: true };',
    replace: "",
    proofs: [{ test: "test/client/connection/ExchangeFailure.test.ts", named: "captive portal" }],
  },
  {
    name: "a date in a refusal is read against our own clock",
    breaks: "a wait is as long as the provider says",
    within: "sentAt",
    find: 'httpDate((header(headers, "date") ?? "").trim(), nowMs) ?? nowMs;',
    replace: "nowMs;",
    proofs: [{ test: rateLimits, named: "changes no wait" }],
  },
  {
    name: "a bucket that is not empty makes requests wait",
    breaks: "nothing waits without a refusal's word",
    within: "read",
    find: "if (amount > 0) continue;",
    replace: "",
    proofs: [{ test: rateLimits, named: "the fuller one's" }],
  },
  {
    name: "headers that stand on every response announce a wait",
    breaks: "headers of a success never hold anything",
    within: "isRefusal",
    find: 'kind === "rate_limited" || kind === "overloaded" || (status === 503 && form === "schema");',
    replace: 'kind !== "unknown" || (status === 503 && form === "schema");',
    proofs: [{ test: rateLimits, named: "where no refusal was" }],
  },
  {
    name: "a 429 for one long prompt holds short ones",
    breaks: "a wait for a request's own size holds no other",
    within: "isAlone",
    find: "(buckets !== undefined && buckets.told > 0 && buckets.empty === 0)",
    replace: "false",
    proofs: [{ test: rateLimits, named: "shorter requests pass" }],
  },
];
