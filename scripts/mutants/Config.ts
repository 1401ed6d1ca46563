/**
 * Holds the mutants of the gateway's addresses, upstreams, tokens and configuration.
 */
import type { Mutant } from "./Mutant.ts";

const secrets = "secrets stay where they belong, docs/gateway-config.md";

/** The mutants of `src/gateway/config`, of `src/gateway/routing` for named upstreams, and of a configuration that is read again. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a prefix in another spelling goes to a provider",
    breaks: secrets,
    within: "problemOf",
    find: '(plainPath(rest) ?? rest).toLowerCase().split("/");',
    replace: 'rest.split("/");',
    proofs: [{ test: "test/gateway/routing/Address.test.ts", named: "in order, as it is written" }],
  },
  {
    name: "a token for the metrics opens the page",
    breaks: "a token permits what it says, docs/gateway-config.md",
    within: "problemOf",
    find: "if (ownPath.test(rest) && plainPath(rest) === undefined) return ownPlain;",
    replace: "if (ownPath.test(rest) && rest.length < 0) return ownPlain;",
    proofs: [{ test: "test/gateway/Configure.test.ts", named: "permit the page and the metrics apart" }],
  },
  {
    name: "a token goes to a provider where the gateway has none",
    breaks: secrets,
    within: "admit",
    find: "if (tokens.length === 0 && request.token !== undefined) return noToken;",
    replace: "if (tokens.length < 0 && request.token !== undefined) return noToken;",
    proofs: [{ test: "test/gateway/routing/Admission.test.ts", named: "cuts it off" }],
  },
  {
    name: "every token permits everything",
    breaks: "a token permits what it says, docs/gateway-config.md",
    within: "forbidden",
    find: "if (permits) return undefined;",
    replace: 'if (permits || token.name !== "") return undefined;',
    proofs: [{ test: "test/gateway/routing/Admission.test.ts", named: "permits what a token says" }],
  },
  {
    name: "an upstream with its own credential gets the client's too",
    breaks: secrets,
    within: "marksOf",
    find: "isCredentialName(name) || ofAccount.test(name)",
    replace: "ofAccount.test(name)",
    proofs: [{ test: "test/gateway/routing/NamedRoute.test.ts", named: "no credential of the client" }],
  },
  {
    name: "a client's Connection takes away what is the upstream's own",
    breaks: secrets,
    within: "outgoing",
    find: "const headers = endToEnd(request.headers);",
    replace: "const { headers } = request;",
    proofs: [{ test: "test/gateway/Configure.test.ts", named: "whatever its client calls a matter of the connection" }],
  },
  {
    name: "a client's credential in the query goes beside the upstream's own",
    breaks: secrets,
    within: "holdsCredential",
    find: "return isCredentialName(name) || /^x-(?:amz|goog)-/i.test(name) || holdsKey(value);",
    replace: "return /^x-(?:amz|goog)-/i.test(name) || value === undefined;",
    proofs: [{ test: "test/gateway/routing/NamedRoute.test.ts", named: "no credential of the client" }],
  },
  {
    name: "another vendor's credential goes to a named upstream",
    breaks: secrets,
    within: "namedRouteOf",
    find: "asked.signs.find((sign) => !mayCarry(asked, sign, family));",
    replace: "asked.signs.slice(0, 0).find((sign) => !mayCarry(asked, sign, family));",
    proofs: [{ test: "test/gateway/routing/NamedRoute.test.ts", named: "never gets" }],
  },
  {
    name: "an upstream is asked what it is not configured for",
    breaks: "an upstream's protocols limit what is asked, docs/gateway-config.md",
    within: "familyOf",
    find: "if (protocols !== undefined && protocol !== undefined && !protocols.includes(protocol)) return undefined;",
    replace: "if (protocols !== undefined && protocol !== undefined && protocols.length === 0) return undefined;",
    proofs: [{ test: "test/gateway/routing/NamedRoute.test.ts", named: "what it is configured for" }],
  },
  {
    name: "a secret is taken from a file that others can read",
    breaks: secrets,
    within: "#lookedUp",
    find: "if (!this.#sources.shared) return value;",
    replace: "if (!this.#sources.shared || path.length > 0) return value;",
    proofs: [{ test: "test/gateway/config/ConfigFile.test.ts", named: "a literal secret" }],
  },
  {
    name: "of a name that stands twice the last one counts in silence",
    breaks: "wrong is wrong, docs/gateway-config.md",
    within: "repeatedNames",
    find: "if (frame.names.has(name)) found.push(frames.map(({ step }) => step));",
    replace: "if (frame.names.size < 0) found.push(frames.map(({ step }) => step));",
    proofs: [{ test: "test/gateway/config/ConfigFile.test.ts", named: "stands twice" }],
  },
  {
    name: "a configuration that is read again opens a gateway to every machine without a token",
    breaks: "admission, docs/gateway.md",
    within: "make",
    find: "settingsOf({ ...next, host: first.host, port: first.port });",
    replace: "settingsOf(next);",
    proofs: [{ test: "test/gateway/Configure.test.ts", named: "takes no token away" }],
  },
  {
    name: "a configuration that is read again changes nothing",
    breaks: "a configuration is read again, docs/gateway-config.md",
    within: "make",
    find: "serving = servingOf(settings, next);\n    upstreams.keep",
    replace: "upstreams.keep",
    proofs: [{ test: "test/gateway/Configure.test.ts", named: "changes new requests" }],
  },
  {
    name: "what is typed gives way to the configuration file",
    breaks: "a flag wins over the file, docs/gateway-config.md",
    within: "over",
    find: "  ...file,\n  ...typed,\n",
    replace: "  ...typed,\n  ...file,\n",
    proofs: [{ test: "test/cli/serveConfig.test.ts", named: "over the file" }],
  },
];
