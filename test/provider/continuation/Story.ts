/**
 * Builds continuations in tests: frames in, the next body out.
 */
import { assert } from "@effect/vitest";
import { Result } from "effect";
import * as Json from "../../../src/domain/Json.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import type { Part, ProtocolId } from "../../../src/provider/Protocols.ts";
import { protocols } from "../../client/Protocols.ts";
import { player } from "../Play.ts";

/** What a test says about a broken answer. */
export interface Story {
  readonly body: Json.JsonRecord;
  readonly frames: ReadonlyArray<unknown>;
  /** Outcomes by call key; calls that are left out have no row in the ledger. */
  readonly calls?: Readonly<Record<string, Continuation.CallOutcome["outcome"]>>;
  /** Results by call key. */
  readonly results?: Readonly<Record<string, unknown>>;
  readonly keepThrough?: number;
}

export const partsOf = (protocol: ProtocolId, frames: ReadonlyArray<unknown>): ReadonlyArray<Part> =>
  player(protocols[protocol])(...frames).parts;

/** Builds, through JSON as a runtime that stored everything would, and checks that the input stays as it was. */
export const built = (protocol: ProtocolId, story: Story) => {
  const received: unknown = JSON.parse(
    JSON.stringify(
      Continuation.collect(
        protocol,
        partsOf(protocol, story.frames),
        story.keepThrough === undefined ? {} : { keepThrough: story.keepThrough },
      ),
    ),
  );
  const before = JSON.stringify(story.body);
  const result = Continuation.build(protocol, {
    body: story.body,
    received,
    calls: Object.entries(story.calls ?? {}).map(([call, outcome]) => ({ attempt: 1, call, outcome })),
    results: Object.entries(story.results ?? {}).map(([call, output]) => ({ attempt: 1, call, output })),
  });
  assert.strictEqual(JSON.stringify(story.body), before, "the body is not changed");
  return result;
};

/** The items that the continuation adds behind those of the request. */
export const added = (protocol: ProtocolId, field: string, story: Story): ReadonlyArray<unknown> => {
  const result = built(protocol, story);
  const body = Result.isSuccess(result) ? result.success : assert.fail(result.failure.message);
  const before = Json.list(story.body[field]);
  const { [field]: list, ...rest } = body;
  const { [field]: _, ...same } = story.body;
  assert.deepStrictEqual(rest, same, "everything else stays");
  assert.deepStrictEqual(Json.list(list).slice(0, before.length), before, "what was asked stays");
  return Json.list(list).slice(before.length);
};

export const refused = (protocol: ProtocolId, story: Story) => {
  const result = built(protocol, story);
  return Result.isFailure(result) ? [result.failure.reason, result.failure.field] : "built";
};
