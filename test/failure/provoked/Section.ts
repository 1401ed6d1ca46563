/**
 * One table: faults, the clients that meet them, and what is expected of each pair.
 */
import type { Client } from "./clients/Client.ts";
import type { Fault } from "./Faults.ts";
import { type Outcome, outcomeOf } from "./Outcome.ts";

/** Clients by name, and what all of them say. */
export type Group = readonly [clients: ReadonlyArray<string>, outcome: Outcome];

/** Written by hand: for each fault, groups in which each client stands once. */
export type Expected = Readonly<Record<string, ReadonlyArray<Group>>>;

/** A table of the documentation. */
export interface Section {
  readonly title: string;
  readonly about: string;
  readonly clients: ReadonlyArray<Client>;
  readonly faults: ReadonlyArray<Fault>;
  readonly expected: Expected;
}

/** The clients that a fault can be tried with. */
export const clientsOf = (section: Section, fault: Fault): ReadonlyArray<Client> =>
  section.clients.filter(({ name }) => fault.without?.includes(name) !== true);

/** What is expected of each client, in the order of the section's clients; a client without an expectation is left out. */
export const expectedOf = (section: Section, fault: Fault): ReadonlyArray<readonly [client: string, Outcome]> =>
  clientsOf(section, fault).flatMap(({ name }) =>
    (section.expected[fault.name] ?? []).flatMap(([clients, outcome]) =>
      clients.includes(name) ? [[name, outcome] as const] : [],
    ),
  );

/** Provokes a fault with every client of a section at once. */
export const provokedOf = (
  section: Section,
  fault: Fault,
): Promise<ReadonlyArray<readonly [client: string, Outcome]>> =>
  Promise.all(
    clientsOf(section, fault).map(async (client) => [client.name, outcomeOf(await fault.run(client))] as const),
  );
