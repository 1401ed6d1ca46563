/**
 * Finds the problems in lists of routes, each with its position.
 */
import { routesMax } from "../../stages/routes/Routes.ts";
import { isCredentialName } from "./CredentialNames.ts";
import { isClientHeader, isHeaderText } from "./HeaderRules.ts";
import type { JsonPath } from "./JsonText.ts";
import type { RouteList, RouteLists, RouteSettings } from "./RouteSettings.ts";
import { namePattern } from "./UpstreamNames.ts";
import type { UpstreamSettings } from "./UpstreamSettings.ts";

/** A problem in a list of routes, with its position. */
export interface RouteProblem {
  /** Position below the key `routes`. */
  readonly path: JsonPath;
  /** Description of the expected value. */
  readonly message: string;
}

type Server = Pick<UpstreamSettings, "name" | "protocols">;

/** Lists every problem of the routes. */
export const problemsOfRoutes = (lists: RouteLists, servers: Iterable<Server>): ReadonlyArray<RouteProblem> => {
  const known = new Map([...servers].map((server) => [server.name, server]));
  const named = new Map<string, string>();
  return Object.entries(lists).flatMap(([name, list]) => {
    const first = known.get(name);
    if (first === undefined) return [{ path: [name], message: expectedUpstream }];
    return [
      ...sizeProblems(name, list),
      ...list.routes.flatMap((route, at) => {
        const problems = [
          ...idProblems(name, list, route, at),
          ...upstreamProblems(first, route, known, named),
          ...modelProblems(route),
          ...headerProblems(route),
          ...bodyProblems(route),
        ];
        named.set(route.id, route.upstream);
        return problems.map(({ message, path }) => ({ path: [name, at, ...path], message }));
      }),
    ];
  });
};

const expectedUpstream = "expected the name of an upstream";

const sizeProblems = (name: string, { routes }: RouteList): ReadonlyArray<RouteProblem> =>
  routes.length > 0 && routes.length < routesMax
    ? []
    : [{ path: [name], message: `expected 1 to ${routesMax - 1} routes` }];

const idProblems = (name: string, { routes }: RouteList, { id }: RouteSettings, at: number) => {
  if (!namePattern.test(id)) return [{ path: ["id"], message: "expected a name of 1 to 32 of a-z, 0-9 and -" }];
  if (id === name)
    return [
      { path: ["id"], message: "expected a different id: this one is the upstream's own, which is the first route" },
    ];
  if (routes.findIndex((other) => other.id === id) < at)
    return [{ path: ["id"], message: "expected each id once per list" }];
  return [];
};

/**
 * Lists problems of a route's upstream. Headers, records and metrics show a route's id without its list, so an id must belong to the same
 * upstream in every list.
 */
const upstreamProblems = (
  first: Server,
  { drop, id, set, upstream }: RouteSettings,
  known: ReadonlyMap<string, Server>,
  named: ReadonlyMap<string, string>,
): ReadonlyArray<RouteProblem> => {
  const path = ["upstream"];
  const server = known.get(upstream);
  if (server === undefined) return [{ path, message: expectedUpstream }];
  const meant = named.get(id) ?? (known.has(id) ? id : upstream);
  if (meant !== upstream)
    return [{ path: ["id"], message: "expected an id that no other upstream uses as an id or as its name" }];
  const same = first.protocols?.some((it) => server.protocols?.includes(it) ?? true) ?? true;
  if (!same)
    return [{ path, message: `expected an upstream with one of these protocols (${first.protocols?.join(", ")})` }];
  const changes = [set.headers, set.body, drop.headers, drop.body].some((list) => list.length > 0);
  return upstream !== first.name || changes
    ? []
    : [{ path, message: "expected a different upstream, or fields in `set` or `drop`" }];
};

const modelProblems = ({ models }: RouteSettings): ReadonlyArray<RouteProblem> => {
  if (models === undefined) return [];
  if (models.length === 0 || models.length > modelsMax)
    return [{ path: ["models"], message: `expected 1 to ${modelsMax} models` }];
  return models.flatMap((model, at) =>
    model.length > 0 && model.length <= modelCharactersMax
      ? []
      : [{ path: ["models", at], message: `expected 1 to ${modelCharactersMax} characters` }],
  );
};

const modelsMax = 64;
const modelCharactersMax = 128;

const headerProblems = ({ drop, set }: RouteSettings): ReadonlyArray<RouteProblem> => {
  const seen = new Set<string>();
  const findProblem = (name: string): string | undefined => {
    const key = name.toLowerCase();
    if (!isClientHeader(name) || ofBody.test(name)) return "expected the name of a request header";
    // A credential must be configured at an upstream, whose settings determine where the credential is sent.
    if (isCredentialName(name)) return "expected a header without a credential: the upstream holds the credential";
    if (seen.has(key)) return "expected each header once";
    seen.add(key);
    return undefined;
  };
  return [
    ...set.headers.flatMap(([name, value]) => {
      const message = findProblem(name) ?? (isHeaderText(value) ? undefined : "expected a valid header value");
      return message === undefined ? [] : [{ path: ["set", "headers", name], message }];
    }),
    ...drop.headers.flatMap((name, at) => {
      const message = findProblem(name);
      return message === undefined ? [] : [{ path: ["drop", "headers", at], message }];
    }),
  ];
};

/** Headers that describe the body of a message. */
const ofBody = /^(?:accept|content-(?:encoding|type))$/i;

const bodyProblems = ({ drop, set }: RouteSettings): ReadonlyArray<RouteProblem> => {
  const fields = [...set.body.map(([field]) => field), ...drop.body];
  const problem = (field: string): string | undefined => {
    if (!fieldPattern.test(field)) return "expected a field of the body, or two names joined by a dot";
    if (kept.has(field) || isWithinKept(field))
      return "expected a field that does not change the prompt or the form of the response";
    const overlaps = fields.filter((other) => other === field || other.startsWith(`${field}.`)).length > 1;
    return overlaps ? "expected each field once, and no field inside another" : undefined;
  };
  if (fields.length > fieldsMax) return [{ path: ["set", "body"], message: `expected at most ${fieldsMax} fields` }];
  return [
    ...set.body.flatMap(([field, value]) => {
      const isName = typeof value === "string" && value !== "";
      const message = problem(field) ?? (field !== "model" || isName ? undefined : "expected the name of a model");
      return message === undefined ? [] : [{ path: ["set", "body", field], message }];
    }),
    ...drop.body.flatMap((field, at) => {
      const message = problem(field);
      return message === undefined ? [] : [{ path: ["drop", "body", at], message }];
    }),
  ];
};

/** True for a part of a protected field, which is protected too, except in Gemini's configuration object. */
const isWithinKept = (field: string): boolean => {
  const [outer = ""] = field.split(".");
  return !/^generation_?config$/i.test(outer) && kept.has(outer);
};

/** Maximum number of body fields that a route changes. */
const fieldsMax = 32;

const fieldPattern = /^[\w-]{1,64}(?:\.[\w-]{1,64})?$/;

/**
 * Fields that a route must not change, because they determine the request's meaning: its content, its tools, streaming, the number of
 * choices, and storage.
 */
const kept: ReadonlySet<string> = new Set([
  ...[
    "messages",
    "input",
    "contents",
    "prompt",
    "tools",
    "functions",
    "mcp_servers",
    "container",
    "context",
    "request",
  ],
  ...["stream", "n", "generationConfig.candidateCount", "generation_config.candidate_count"],
  ...["generationConfig", "generation_config", "background", "store", "conversation", "previous_response_id"],
]);
