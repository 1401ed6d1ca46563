/**
 * Writes every recorded stream of a real provider that is there as parts of `effect/ai`; see test/provider/Recordings.test.ts.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema } from "effect";
import { Prompt, Response, Toolkit } from "effect/ai";
import { PartWriter } from "../../../src/adapters/provider-model/PartWriter.ts";
import * as Json from "../../../src/domain/Json.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { protocols } from "../../client/Protocols.ts";
import { bytesOf, recordings } from "../../Recordings.ts";

const decodeParts = Schema.decodeUnknownEffect(
  Schema.Array(
    Schema.Union([
      Response.StreamPart(Toolkit.empty),
      Response.ToolCallPart("", Schema.Unknown).mapFields((fields) => ({ ...fields, name: Schema.String })),
    ]),
  ),
);

describe("ProviderModel", () => {
  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const recording of recordings) {
    const { file, protocol } = recording;
    it.effect(`${file} becomes whole parts`, () =>
      Effect.gen(function* () {
        const decoder = Decoder.make(protocols[protocol]);
        const parts = decoder.push(bytesOf(recording));
        const all = [...parts, ...decoder.end().parts];
        const marker = all.findIndex((part) => part.observation.terminal);
        const events = marker === -1 ? all : all.slice(0, marker + 1);
        const writer = new PartWriter(protocols[protocol], "id_test");
        const told = events.map((part) => ({ part, written: writer.take(part) }));
        const written = [...told.flatMap((it) => it.written), ...writer.end()];
        const several =
          new Set(
            events.flatMap(({ json }) => Json.list(Json.record(json)?.choices).map((it) => Json.record(it)?.index)),
          ).size > 1;
        for (const { part, written } of told) {
          const type = part.observation.shows === "text" ? "text-delta" : "reasoning-delta";
          const said = written.reduce((sum, it) => sum + (it.type === type ? it.delta.length : 0), 0);
          if (!several) assert.strictEqual(said, part.observation.characters, part.event.data);
        }
        const ready = events
          .flatMap(({ observation }) => observation.calls)
          .filter((call) => call.phase === "ready" && call.choice === 0);
        const calls = written.filter((part) => part.type === "tool-call");
        assert.deepStrictEqual(
          calls.map((call) => call.name),
          ready.map((call) => call.tool),
        );
        assert.strictEqual(new Set(calls.map((call) => call.id)).size, calls.length);
        const opened = written.flatMap((part) => (/-start$/.test(part.type) && "id" in part ? [part.id] : []));
        const ended = written.flatMap((part) => (/-end$/.test(part.type) && "id" in part ? [part.id] : []));
        assert.deepStrictEqual([...ended].sort(), [...opened].sort(), "every block is closed");
        const decoded = yield* decodeParts(written);
        // Its history can be written: nothing dangles but the calls that a toolkit would answer.
        assert.isDefined(Prompt.fromResponseParts(decoded as ReadonlyArray<Response.AnyPart>)); // a call of any name is a part too
        if (marker !== -1) {
          const finish = written.at(-1);
          assert.isTrue(finish?.type === "finish" && finish.reason !== "other", JSON.stringify(finish));
        }
      }),
    );
  }
});
