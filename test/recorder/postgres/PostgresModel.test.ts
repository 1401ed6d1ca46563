/** Replays traces of the model of ownership over one PostgreSQL. */
import { Effect } from "effect";
import { modelTraces } from "../suite/ModelTraces.ts";
import * as Databases from "./Databases.ts";

modelTraces(
  "Three processes over one PostgreSQL",
  (names) =>
    Effect.flatMap(Databases.empty, (address) =>
      Effect.forEach(names, (process) => Databases.open({ address, process })),
    ),
  12,
);
