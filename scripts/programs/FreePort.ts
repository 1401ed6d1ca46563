/** Finds a free port of this machine, for a program that is told its port. No outgoing connection can take it before the program listens. */
import { Effect } from "effect";
import * as FreePort from "../../src/cli/serve/FreePort.ts";

/** A free port on the loopback address. */
export const freePort: Effect.Effect<number> = Effect.orDie(FreePort.freePort({ host: "127.0.0.1", port: 0 }));
