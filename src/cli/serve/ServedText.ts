/**
 * Describes what a gateway would serve, for `serve --check`: addresses, upstreams, token names, and clients with their treatment. The
 * description contains no secrets.
 */
import { builtInTreatment, tableOf } from "../../gateway/clients/ClientTable.ts";
import { defaultNames, type GatewaySettings } from "../../gateway/config/GatewayOptions.ts";
import { valueAt } from "../../gateway/config/Option.ts";
import { entries } from "../../gateway/config/Options.ts";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";
import type { RouteSettings } from "../../gateway/config/RouteSettings.ts";
import { hasOwnCredential, type UpstreamSettings } from "../../gateway/config/UpstreamSettings.ts";
import { protocols } from "../../provider/Protocols.ts";

/** Formats the addresses, upstreams, routes, tokens and clients that these settings would serve. */
export const servedText = (settings: GatewaySettings, program: ProgramOptions): string =>
  [
    `listens on ${settings.tls === undefined ? "http" : "https"}://${settings.host}:${settings.port}`,
    "",
    "upstreams",
    ...[...settings.servers.values()].map((server) => `  ${upstreamLine(server)}`),
    "",
    ...routeLines(settings),
    "tokens",
    ...(settings.tokens.length === 0 ? ["  none: every client on this machine is admitted"] : []),
    ...settings.tokens.map((token) => `  ${tokenLine(token)}`),
    "",
    "clients",
    ...clientLines(settings).map((line) => `  ${line}`),
    "",
    outageLine(settings),
    `if a response breaks after text was shown: ${continued[settings.continueText]}`,
    ...optionLines(program),
  ].join("\n");

const outageLine = ({ budget: { max_outage_ms } }: GatewaySettings): string =>
  `outages: a run waits ${max_outage_ms === "forever" ? "forever" : `at most ${max_outage_ms} ms`}`;

const continued = {
  auto: "the text continues if the join is proven",
  ask: "the response ends broken, or a person is asked",
} as const;

const isDefault = (name: string): boolean => defaultNames.some((known) => known === name);

const upstreamLine = (server: UpstreamSettings): string => {
  const { ca, clientCert, continueText, name, paths, protocols, proxy, state, tolerance, url } = server;
  return [
    `${name}: ${url}`,
    `at ${isDefault(name) ? "/ and " : ""}/u/${name}/`,
    hasOwnCredential(server) ? "its own credential" : "the client's credential",
    ...(paths === undefined ? [] : [`also ${paths.join(" and ")}`]),
    ...(protocols === undefined ? [] : [protocols.join(" ")]),
    ...(server.headers.length === 0 ? [] : [`headers ${server.headers.map(([header]) => header).join(" ")}`]),
    ...(proxy === undefined ? [] : [proxy === "direct" ? "no proxy" : "its own proxy"]),
    ...(ca === undefined ? [] : ["its own certificates"]),
    ...(clientCert === undefined ? [] : ["a client certificate"]),
    ...(tolerance?.doneWithoutFinish === true ? ["[DONE] ends a chat"] : []),
    ...(state === undefined ? [] : [`state ${state}`]),
    ...(continueText === undefined ? [] : [`shown text: ${continueText}`]),
  ].join(", ");
};

/** Lists the routes, and the names of the fields and headers that they change. */
const routeLines = ({ routes, servers }: GatewaySettings): ReadonlyArray<string> => {
  const lines = [...routes].flatMap(([name, { movesOn, routes: list }]) => [
    `  ${name}: ${[name, ...list.map(({ id }) => id)].join(", then ")}${movesOn.length === 0 ? "" : `, also for ${movesOn.join(" ")}`}`,
    ...list.map((route) => `    ${routeLine(route, servers.get(route.upstream))}`),
  ]);
  return lines.length === 0 ? [] : ["routes", ...lines, ""];
};

const routeLine = (
  { drop, id, models, set, upstream }: RouteSettings,
  server: UpstreamSettings | undefined,
): string => {
  const formatList = (word: string, names: ReadonlyArray<string>) =>
    names.length === 0 ? [] : [`${word} ${names.join(" ")}`];
  return [
    `${id}: the upstream ${upstream}`,
    server !== undefined && hasOwnCredential(server) ? "its own credential" : "the client's credential",
    ...formatList("models", models ?? []),
    ...formatList(
      "sets",
      [...set.headers, ...set.body].map(([name]) => name),
    ),
    ...formatList("drops", [...drop.headers, ...drop.body]),
  ].join(", ");
};

const tokenLine = ({ metrics, name, page, paths, upstreams }: GatewaySettings["tokens"][number]): string => {
  const permits = [
    upstreams === undefined ? "all upstreams" : `upstreams ${upstreams.join(" ") || "none"}`,
    ...(paths === undefined ? [] : [`also ${paths.join(" and ")}`]),
    ...(page ? ["the page and its API"] : []),
    ...(metrics ? ["metrics"] : []),
  ];
  return `${name}: ${permits.join(", ")}`;
};

/** Lists the clients of the table with their default treatment. */
const clientLines = ({ manner }: GatewaySettings): ReadonlyArray<string> =>
  tableOf(manner.clients).map((row) => {
    const treated = protocols.ids.map((protocol) => {
      const builtIn = builtInTreatment(row, protocol);
      const reveal = row.configured.reveal ?? manner.reveal ?? builtIn.reveal;
      return { protocol, said: `${reveal}, ${row.configured.onBreak ?? manner.onBreak ?? builtIn.onBreak}` };
    });
    const changed = Object.keys(row.configured).length > 0 ? " (configured)" : "";
    const [first] = treated;
    const others = treated.filter(({ said }) => said !== first?.said);
    return `${row.name}: ${first?.said}${others.map(({ protocol, said }) => `; ${protocol} ${said}`).join("")}${changed}`;
  });

const optionLines = (program: ProgramOptions): ReadonlyArray<string> => {
  const names = new Set(entries.flatMap(({ apart, path: [name] }) => (apart ? [] : [name])));
  return [...names].flatMap((name) => {
    const value = valueAt(program, [name]);
    return value === undefined ? [] : [`${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`];
  });
};
