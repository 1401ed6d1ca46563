import { Effect, Layer } from "effect";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { suite } from "../suite/Suite.ts";
import * as Databases from "./Databases.ts";

suite(
  "PostgresRunRecorder.layer",
  Layer.unwrap(Effect.map(Databases.empty, (address) => PostgresRunRecorder.layer({ address }))),
);
