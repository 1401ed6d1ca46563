/**
 * Holds the mutants of the gateway, of the command line and of the reference agent.
 */
import type { Mutant } from "./Mutant.ts";

/** The mutants of `src/gateway`, `src/cli` and `src/agent`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "what is not recognised as another vendor's path is OpenAI's",
    breaks: "secrets stay where they belong (break 09)",
    within: "claimOf",
    find: "return pathClaims.find(([pattern]) => pattern.test(lower))?.[1] ?? anybodys;",
    replace:
      "return lower === undefined ? anybodys : (pathClaims.slice(-2).find(([pattern]) => pattern.test(lower))?.[1] ?? anybodys);",
    proofs: [{ test: "test/gateway/Route.test.ts", named: "generateContent" }],
  },
  {
    name: "a credential goes wherever the path leads",
    breaks: "secrets stay where they belong (break 09)",
    within: "mayGo",
    find: "signs.every(({ vendor }) => isAtHome(vendor, name, upstreams));",
    replace: "signs.length >= 0;",
    proofs: [{ test: "test/gateway/Route.test.ts", named: "another vendor" }],
  },
  {
    name: "a path is looked at as it is encoded",
    breaks: "secrets stay where they belong (break 09)",
    within: "plainPath",
    find: "for (let round = 0; /%[0-9a-f]{2}/i.test(plain); round += 1) {",
    replace: "for (let round = 0; plain === undefined; round += 1) {",
    proofs: [{ test: "test/gateway/Route.test.ts", named: "%" }],
  },
  {
    name: "a link that a browser follows is a request of a program",
    breaks: "admission, docs/gateway.md (break 10)",
    within: "browsed",
    find: "return navigates || asksForPage ? onlyPrograms : undefined;",
    replace: "return navigates && asksForPage && query === undefined ? onlyPrograms : undefined;",
    proofs: [{ test: "test/gateway/Browser.test.ts", named: "gets nothing of a provider" }],
  },
  {
    name: "cookies of this machine's programs go to the provider",
    breaks: "admission, docs/gateway.md (break 10)",
    within: "forwarded",
    find: "!own.has(name.toLowerCase()) && !cookies.has(name.toLowerCase())",
    replace: "!own.has(name.toLowerCase()) && cookies.size > 0",
    proofs: [{ test: "test/gateway/Browser.test.ts", named: "hands no cookie on" }],
  },
  {
    name: "a provider's headers act on the gateway's origin",
    breaks: "admission, docs/gateway.md (break 10)",
    within: "handedOn",
    find: 'return !ofOrigin.has(key) && key !== "x-content-type-options";',
    replace: 'return ofOrigin.size > 0 && key !== "x-content-type-options";',
    proofs: [{ test: "test/gateway/Browser.test.ts", named: "act on the gateway's origin" }],
  },
  {
    name: "a reason phrase is written as it came",
    breaks: "L11, no wait without a limit (break 26)",
    within: "head",
    find: "this.#response.writeHead(status, reasonPhrase(statusText), sendable(sent).flat());",
    replace: "reasonPhrase(statusText);\n    this.#response.writeHead(status, statusText, sendable(sent).flat());",
    proofs: [{ test: "test/gateway/Defects.test.ts", named: "reaches its client" }],
  },
  {
    name: "a defect behind a request is dropped with its fiber",
    breaks: "L11, no wait without a limit (break 26)",
    within: "take",
    find: ': Effect.andThen(logged("a defect ended a request", exit.cause), client.fail),',
    replace: ': logged("", Cause.empty),',
    proofs: [{ test: "test/gateway/Defects.test.ts", named: "the check of a shutdown" }],
  },
  {
    name: "a page's feed is waited for at a shutdown",
    breaks: "shutdown within its limit (break 30)",
    within: "serve",
    find: "isEventStream(headers) ? closing : Effect.never",
    replace: "isEventStream(headers) ? Effect.never : closing",
    proofs: [{ test: "test/gateway/Browser.test.ts", named: "ends with the gateway" }],
  },
  {
    name: "an upgrade goes to the provider as a plain request",
    breaks: "what is not understood is refused (break 45)",
    within: "unserved",
    find: "return asked.length > 0 || isSocket ? noUpgrade : undefined;",
    replace: "return asked.length > 0 && isSocket && headers.length === 0 ? noUpgrade : undefined;",
    proofs: [{ test: "test/gateway/Browser.test.ts", named: "426" }],
  },
  {
    name: "an event stream does not say that it must not be collected",
    breaks: "comments arrive (break 46)",
    within: "head",
    find: "const sent = isEventStream(headers) ? unbuffered(whole) : whole;",
    replace: "const sent = isEventStream(headers) ? unbuffered(whole) && whole : whole;",
    proofs: [{ test: "test/gateway/Browser.test.ts", named: "collected and changed by no proxy" }],
  },
  {
    name: "a server that is told to stop ends as if it had failed",
    breaks: "docs/cli.md, exit codes (break 54)",
    within: "teardown",
    find: "return onExit(isNormalEnd && first !== undefined ? 0 : codes",
    replace: "return onExit(isNormalEnd && first === undefined ? 0 : codes",
    proofs: [{ test: "test/cli/usage.test.ts", named: "SIGTERM" }],
  },
];
