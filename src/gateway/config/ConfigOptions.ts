/**
 * Converts the self-contained part of a decoded configuration file to a gateway's options.
 */
import type { ConfigParts } from "./ConfigParts.ts";
import { valueAt, withValue } from "./Option.ts";
import { entries } from "./Options.ts";
import type { ProgramOptions } from "./ProgramOptions.ts";
import type { RouteLists, RouteSettings } from "./RouteSettings.ts";

/** Builds the options that need nothing outside the file. A missing key leaves its option out. */
export const optionsOf = (config: object): ProgramOptions =>
  entries.reduce<ProgramOptions>((options, { apart, key, path, read = (value) => value }) => {
    const value = apart || key === undefined ? undefined : valueAt(config, key);
    return value === undefined ? options : withValue(options, path, read(value));
  }, {});

/** Converts the file's rows to the names of the client table, which validates them. */
export const clientsOf = (clients: NonNullable<ConfigParts["clients"]>): { readonly [name: string]: object } =>
  Object.fromEntries(
    Object.entries(clients).map(([name, { match, ...row }]) => [
      name,
      { ...camelCased(row), ...(match === undefined ? {} : { match: camelCased(match) }) },
    ]),
  );

const camelCased = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([key, value]) => [key.replace(/_([a-z])/g, (_, it: string) => it.toUpperCase()), value]),
  );

/** Builds the route lists of a configuration file; undefined if it has none. */
export const routeListsOf = ({
  moves_on = {},
  routes,
}: Pick<ConfigParts, "moves_on" | "routes">): RouteLists | undefined => {
  const finishes = new Map(Object.entries(moves_on));
  return routes === undefined
    ? undefined
    : Object.fromEntries(
        Object.entries(routes).map(([name, list]) => [
          name,
          { routes: list.map(routeOf), movesOn: [...new Set(finishes.get(name))] },
        ]),
      );
};

type Configured = NonNullable<ConfigParts["routes"]>[string][number];

const routeOf = ({ drop = {}, id, models, set = {}, upstream }: Configured): RouteSettings => ({
  ...{ id: id ?? upstream, upstream },
  ...(models === undefined ? {} : { models }),
  set: { headers: Object.entries(set.headers ?? {}), body: Object.entries(set.body ?? {}) },
  drop: { headers: drop.headers ?? [], body: drop.body ?? [] },
});
