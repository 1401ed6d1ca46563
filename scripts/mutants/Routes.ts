/**
 * Holds the mutants of routes: what crosses, whose failure it is, and who tries a route again.
 */
import type { Mutant } from "./Mutant.ts";

const routes = "test/runtime/run/Routes.test.ts";
const breakers = "test/runtime/run/RouteBreakers.test.ts";

/** What must not go wrong with routes. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a run goes back to a route that it has left",
    breaks: "L11, O1",
    within: "#next",
    find: "!this.#tried.has(route) && this.#isUp(route)",
    replace: "route !== this.#current && this.#isUp(route)",
    proofs: [{ test: routes, named: "never goes back to a route" }],
  },
  {
    name: "the caller is told what the last route met",
    breaks: "L12, O3",
    within: "told",
    find: "const first = run.routes?.firstFailure;",
    replace: "const first = undefined;",
    proofs: [
      { test: routes, named: "tells the first route's failure" },
      { simulate: "runs", runs: 600 },
    ],
  },
  {
    name: "a cancel on the second route is told as what the first one met",
    breaks: "L10, O3",
    within: "told",
    find: 'failure.kind === "cancelled" || failure.kind === "caller_failed"',
    replace: "false",
    proofs: [{ test: routes, named: "stays a cancel" }],
  },
  {
    name: "the credentials of the first route are renewed for another one",
    breaks: "O2",
    within: "optionsOn",
    find: "refreshCredentials: _refresh, ...options }",
    replace: "...options }",
    proofs: [{ test: routes, named: "for no other one" }],
  },
  {
    name: "a continuation crosses to another route",
    breaks: "L3, O2",
    within: "facts",
    find: 'attempt.request === "first" && this.#next() !== undefined',
    replace: "this.#next() !== undefined",
    proofs: [{ test: routes, named: "its continuation failed twice" }],
  },
  {
    name: "a move takes a token of the throttle",
    breaks: "a move waits for nothing",
    within: "needsToken",
    find: 'route !== "next" && wait_for === undefined',
    replace: "wait_for === undefined",
    proofs: [{ test: routes, named: "takes nothing of the throttle" }],
  },
  {
    name: "a cut at the request's own limit counts as the model's",
    breaks: "a finish that no other route changes is no failure",
    within: "words",
    find: '["sensitive", "refused"],',
    replace: '["max_tokens", "model_length"],',
    proofs: [{ test: routes, named: "at the limit that the request has set" }],
  },
  {
    name: "a run that never began keeps others from the route that it was to try",
    breaks: "L11",
    within: "dropped",
    find: "run.routes?.ended();",
    replace: "",
    proofs: [{ test: breakers, named: "never began" }],
  },
  {
    name: "every run tries a route whose breaker is half open",
    breaks: "one run at a time",
    within: "entered",
    find: '? { _tag: "trying", run, since: now, forMs: breaker.forMs }',
    replace: "? breaker",
    proofs: [{ test: breakers, named: "lets one run through" }],
  },
  {
    name: "the refusal of one caller's credential opens the breaker for all callers",
    breaks: "what a caller shows is its own matter",
    within: "broke",
    find: "if (isOwnFault({ failure, run: { own_route: this.#current.owns(failure) } })) {",
    replace: 'if (failure.kind === "rejected") {',
    proofs: [{ test: breakers, named: "of a caller's own credential" }],
  },
  {
    name: "a run may not move, and begins elsewhere all the same",
    breaks: "max_moves",
    within: "begins",
    find: "maxMoves === 0 || this.#isUp(this.#first)",
    replace: "this.#isUp(this.#first)",
    proofs: [{ test: breakers, named: "that may not move" }],
  },
  {
    name: "a run that waits for its path does not look whether another route is up",
    breaks: "the first path that comes back",
    within: "inTurn",
    find: "elsewhere === undefined ? this.admitted : Effect.raceFirst(this.admitted, this.#until(elsewhere))",
    replace: "this.admitted",
    proofs: [{ test: "test/runtime/run/RouteOutages.test.ts", named: "comes back first: the second" }],
  },
  {
    name: "a run moves from its group with its route",
    breaks: "a budget goes over all routes",
    within: "memberOf",
    find: "routes?.own ?? options",
    replace: "options",
    proofs: [{ test: "test/runtime/run/Routes.test.ts", named: "stays in its group" }],
  },
  {
    name: "a run whose route is not there is taken up by its first one",
    breaks: "a route that the caller does not name",
    within: "rebuilt",
    find: "Routes.problem(run.options.routes, record) ??",
    replace: "",
    proofs: [{ test: "test/runtime/crash/RoutesTakenUp.test.ts", named: "is refused by name" }],
  },
];
