/**
 * Every recorded stream of a real provider that is there, over a real socket and through the fetch: the bytes are the same.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { recoveringFetch } from "../../../src/adapters/fetch/FetchRecovery.ts";
import * as Json from "../../../src/domain/Json.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import { bytesOf, folder, recordings } from "../../Recordings.ts";
import { bodies, protocols, read } from "./Cases.ts";

describe("recoveringFetch and recorded streams", () => {
  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const reveal of ["live", "on_complete"] as const) {
    for (const protocol of protocols) {
      const own = recordings.filter((recording) => recording.protocol === protocol);
      if (own.length === 0) continue;
      it.live(`hands ${own.length} recordings of ${protocol} on byte for byte, ${reveal}`, () =>
        Effect.gen(function* () {
          const scripts = Object.fromEntries(
            own.map(({ file }, index) => [
              String(index),
              [{ protocol, raw_file: file, write_bytes: [7, 100, 5000][index % 3] ?? 100 }],
            ]),
          );
          const server = yield* FaultProvider.make({ script: { scripts }, directory: folder });
          const budget = { max_auto_retries: 0, max_not_processed: 0 };
          const made = recoveringFetch({ reveal, budget });
          for (const [index, recording] of own.entries()) {
            const response = yield* Effect.promise(() =>
              made(server.endpoint(protocol, String(index)), {
                method: "POST",
                body: JSON.stringify({ ...bodies[protocol], model: String(index) }),
              }),
            );
            const body = yield* Effect.promise(() => read(response));
            const recorded = Buffer.from(bytesOf(recording));
            const name = `${recording.file}: ${String(body.error)}`;
            // A recording that failed ends with its error event, and then breaks.
            const failed = Json.list(recording.row.features).includes("error-event");
            if (body.error === undefined) assert.isTrue(recorded.equals(body.bytes), name);
            else assert.isTrue(failed && recorded.subarray(0, body.bytes.length).equals(body.bytes), name);
            if (failed) assert.include(body.text, "error", name);
          }
          yield* Effect.promise(made.close);
        }),
      );
    }
  }
});
