/**
 * Puts the services of an agent together: runs in a file, questions to a person, connections to a provider.
 */
import { type Effect, Layer } from "effect";
import { ProviderClient } from "../client/index.ts";
import type { Choice } from "../domain/Decision.ts";
import type { Question } from "../recorder/Question.ts";
import { type Retention, retentionDefault } from "../recorder/retention/Retention.ts";
import { defaultFile } from "../recorder/sql/sqlite/SqlFile.ts";
import * as RunStore from "../recorder/store/RunStore.ts";
import { UserDecisions } from "../runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";

/** Lease of an agent's process, in milliseconds: after a kill the next process waits for so long. */
export const leaseMsDefault = 3_000;

/** What the services need. */
export interface LayerOptions {
  /** SQLite file of the runs, an address of PostgreSQL, or `memory`; default that of `SqlRunRecorder.layerFile`. */
  readonly db?: string;
  /** In milliseconds. */
  readonly leaseMs?: number;
  /** Which ended runs the store forgets by itself; default 30 days and 100,000, false for none. */
  readonly retention?: Retention | false;
  /** Asks a person; `parked` leaves the question open on record. */
  readonly ask: (question: Question) => Effect.Effect<Choice | "parked">;
}

/** All services of an agent. */
export const layer = ({ ask, db, leaseMs = leaseMsDefault, retention = retentionDefault }: LayerOptions) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(UserDecisions.layerAsk(ask)),
    Layer.provideMerge(RunStore.layer({ leaseMs, file: db ?? defaultFile(), retention })),
    Layer.provideMerge(ProviderClient.layer()),
  );
