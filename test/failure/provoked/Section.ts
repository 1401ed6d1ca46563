/**
 * One table: faults, the clients that meet them, and the expected outcome of each pair.
 */
import type { Client } from "./clients/Client.ts";
import type { Fault } from "./Faults.ts";
import { type Outcome, outcomeOf } from "./Outcome.ts";

/** Clients by name, and their common outcome. */
export type Group = readonly [clients: ReadonlyArray<string>, outcome: Outcome];

/** Expected outcomes by fault, written by hand. Each client is in exactly one group. */
export type Expected = Readonly<Record<string, ReadonlyArray<Group>>>;

/** A table of the documentation. */
export interface Section {
  readonly title: string;
  readonly about: string;
  readonly clients: ReadonlyArray<Client>;
  readonly faults: ReadonlyArray<Fault>;
  readonly expected: Expected;
}

/** The clients that support a fault. */
export const clientsOf = (section: Section, fault: Fault): ReadonlyArray<Client> =>
  section.clients.filter(({ name }) => fault.without?.includes(name) !== true);

/** The expected outcome of each client, in the order of the section's clients. A client without an expectation is omitted. */
export const expectedOf = (section: Section, fault: Fault): ReadonlyArray<readonly [client: string, Outcome]> =>
  clientsOf(section, fault).flatMap(({ name }) =>
    (section.expected[fault.name] ?? []).flatMap(([clients, outcome]) =>
      clients.includes(name) ? [[name, outcome] as const] : [],
    ),
  );

/** Provokes a fault in every client of a section at once. */
export const provokedOf = (
  section: Section,
  fault: Fault,
): Promise<ReadonlyArray<readonly [client: string, Outcome]>> =>
  Promise.all(
    clientsOf(section, fault).map(async (client) => [client.name, outcomeOf(await fault.run(client))] as const),
  );
