/**
 * Holds the mutants of the gateway's routes: what must not cross.
 */
import type { Mutant } from "./Mutant.ts";

const crossing = "test/gateway/routes/Crossing.test.ts";

/** The mutants of `src/gateway/routes`, and of what it rests on. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a key that a client shows buys the operator's",
    breaks: "what must not cross, docs/routes.md",
    within: "mayUse",
    find: "return token !== undefined && (hasOwnCredential(meant) || !showsCredential(plan.request));",
    replace: "return token !== undefined && (meant.name !== '' || !showsCredential(plan.request));",
    proofs: [{ test: crossing, named: "never buys the operator's" }],
  },
  {
    name: "a route leads to an upstream that the token does not permit",
    breaks: "what must not cross, docs/routes.md",
    within: "mayUse",
    find: "if (forbidden(token, { upstream: server.name }) !== undefined) return false;",
    replace: "if (forbidden(token, { upstream: meant.name }) !== undefined) return false;",
    proofs: [{ test: crossing, named: "that the token does not permit" }],
  },
  {
    name: "upstreams without a state share one",
    breaks: "what must not cross, docs/routes.md",
    within: "sharesState",
    find: "state !== undefined && state === other.state;",
    replace: "state === other.state;",
    proofs: [{ test: crossing, named: "moves only between routes that share a state" }],
  },
  {
    name: "a client's key goes along to every upstream",
    breaks: "what must not cross, docs/routes.md",
    within: "leaving",
    find: "const shown = keepsCredential(from, server) ? request : withoutClientCredentials(request);",
    replace:
      "const shown = keepsCredential(from, server) || server.url !== undefined ? request : withoutClientCredentials(request);",
    proofs: [{ test: crossing, named: "no client's key reaches another upstream" }],
  },
  {
    name: "routes with the operator's credential are served without a token",
    breaks: "what must not cross, docs/routes.md",
    within: "problemOfRoutes",
    find: "return tokens.length > 0 || bought === undefined",
    replace: "return tokens.length >= 0 || bought === undefined",
    proofs: [{ test: "test/gateway/config/Routes.test.ts", named: "where there is no token" }],
  },
  {
    name: "one tenant's answer moves the requests of another",
    breaks: "what must not cross, docs/routes.md",
    within: "#digest",
    find: "JSON.stringify([tenant ?? null, upstream, text])",
    replace: "JSON.stringify([tenant === '' ? null : upstream, text])",
    proofs: [{ test: "test/gateway/routes/Sticky.test.ts", named: "for each tenant by itself" }],
  },
  {
    name: "a conversation begins on its first route, whoever signed it",
    breaks: "a conversation stays where its history comes from, docs/routes.md",
    within: "chosenFrom",
    find: "const begins = all.find(({ id }) => id === known) ?? first;",
    replace: "const begins = all.find(({ id }) => id === known && id === first.id) ?? first;",
    proofs: [{ test: "test/gateway/routes/Sticky.test.ts", named: "brings the next request there" }],
  },
  {
    name: "what is too large to be searched is bound by nothing",
    breaks: "what must not cross, docs/routes.md",
    within: "found",
    find: "whole ? undefined : unsearched.field",
    replace: "whole || unsearched.field !== '' ? undefined : unsearched.field",
    proofs: [{ test: "test/gateway/routes/Bound.test.ts", named: "deeper or has more parts" }],
  },
];
