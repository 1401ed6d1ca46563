/**
 * Where recorded answers may be cut and gone on with: each cut is whole behind its seam, or refused for a reason that stands in
 * what was shown.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import { protocols, type WireProtocol } from "../../../src/provider/Protocols.ts";
import * as Anchor from "../../../src/seam/Anchor.ts";
import { decode } from "../Decoded.ts";
import { blocksBegun, honestMessage } from "./HonestMessage.ts";
import { honestResponse } from "./HonestResponse.ts";
import { bytesOf, type Continuation, eventsOf, join, proofOf, type WireEvent } from "./JoinedStream.ts";
import { wholeStreams } from "./Spliced.ts";

type Events = ReadonlyArray<WireEvent>;

const frameOf = ({ json }: WireEvent): Json.JsonRecord => Json.record(json) ?? {};

/** Most cuts of a recording. */
const cutsMax = 16;

const sampled = (from: number, to: number): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil((to - from) / cutsMax));
  return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, at) => from + at * step);
};

interface Reader {
  readonly protocol: WireProtocol;
  readonly text: (event: WireEvent) => string;
  readonly continuation: (whole: Events) => Continuation;
  /** The types of the blocks or items that have begun, in order. */
  readonly kinds: (left: Events) => ReadonlyArray<string>;
  readonly isText: (kind: string) => boolean;
  /** Whether a call has left, a picture, or a hosted call that has not its result. */
  readonly calls: (left: Events) => boolean;
}

const messages: Reader = {
  protocol: protocols.get("anthropic-messages"),
  text: (event) => Json.string(Json.record(frameOf(event).delta)?.text),
  continuation: (whole) => ({
    events: (shown, left) =>
      honestMessage(whole, shown, blocksBegun(left), { anchor: proofOf(shown.run)?.anchor ?? shown.run.length }),
    verifier: ({ run }) => proofOf(run)?.verifier ?? assert.fail("no anchor"),
  }),
  kinds: (left) =>
    left.flatMap((event) => {
      const block = Json.record(frameOf(event).content_block);
      return block === undefined ? [] : [Json.string(block.type)];
    }),
  isText: (kind) => kind === "text",
  calls: (left) => {
    const kinds = messages.kinds(left);
    const hosted = kinds.filter((kind) => kind.endsWith("_tool_use")).length;
    return kinds.includes("tool_use") || hosted > kinds.filter((kind) => kind.endsWith("_tool_result")).length;
  },
};

const responses: Reader = {
  protocol: protocols.get("openai-responses"),
  text: (event) => (frameOf(event).type === "response.output_text.delta" ? Json.string(frameOf(event).delta) : ""),
  continuation: (whole) => ({
    events: (shown, left) =>
      honestResponse(whole, left, shown, { anchor: proofOf(shown.run)?.anchor ?? shown.run.length }),
    verifier: ({ run }) => proofOf(run)?.verifier ?? assert.fail("no anchor"),
  }),
  kinds: (left) =>
    left.flatMap((event) => {
      const { item, type } = frameOf(event);
      return type === "response.output_item.added" ? [Json.string(Json.record(item)?.type)] : [];
    }),
  isText: (kind) => kind === "message",
  calls: (left) => {
    const ended = new Set(
      left.flatMap((event) => {
        const { output_index, type } = frameOf(event);
        return type === "response.output_item.done" ? [output_index] : [];
      }),
    );
    return left.some((event) => {
      const { item, output_index } = frameOf(event);
      const kind = Json.string(Json.record(item)?.type);
      const isCall = /^(?:function|custom_tool|local_shell|shell|apply_patch|computer|image_generation)_call$/.test(
        kind,
      );
      return isCall || (kind.endsWith("_call") && !ended.has(output_index));
    });
  },
};

/** Whether what was shown bears a refusal out; a reason that is not here is none. */
const bears = ({ calls, isText, kinds, text }: Reader, left: Events, run: string, reason: string): boolean => {
  const isOver = left.some((event) => {
    const { delta, response } = frameOf(event);
    return Json.record(delta)?.stop_reason !== undefined || Json.record(response)?.status === "completed";
  });
  switch (reason) {
    // A block that is no text stands last, a call or a picture anywhere, or all has come.
    case "not_text_last":
      return isOver || run === "" || calls(left) || !isText(kinds(left).at(-1) ?? "");
    case "refusal_shown":
      return left.some((event) => JSON.stringify(event.json).includes("refusal"));
    case "too_long":
      return left.map(text).join("").length > 64 * 1024;
    case "repeats_itself":
      return run.length > 40;
    case "blank":
      return run.trim() === "";
    default:
      return false;
  }
};

for (const reader of [messages, responses])
  describe(`every cut of recorded answers of ${reader.protocol.name}`, () => {
    it("is whole behind its seam or refused for a reason that was shown", () => {
      const counts = new Map<string, number>();
      let all = 0;
      for (const { bytes, name } of wholeStreams(reader.protocol)) {
        const events = eventsOf(decode(reader.protocol, [bytes]).parts);
        const ended = events.findIndex((event) => frameOf(event).type === "message_stop");
        const whole = ended === -1 ? events : events.slice(0, ended + 1);
        const first = whole.findIndex((event) => reader.text(event).trim() !== "");
        if (first === -1) continue;
        for (const cut of sampled(first + 1, whole.length)) {
          all += 1;
          const left = whole.slice(0, cut);
          const splice = reader.protocol.splice?.() ?? assert.fail("no splice");
          for (const { event, json } of left) splice.recordSent(json, event);
          const { refusal, run } = splice.response();
          const anchor = run.trim() === "" ? "blank" : Anchor.anchorOf(run);
          const reason = refusal ?? (typeof anchor === "string" ? anchor : "whole");
          counts.set(reason, (counts.get(reason) ?? 0) + 1);
          const note = `${name} behind ${cut}: ${reason}`;
          if (reason !== "whole") {
            assert.isTrue(bears(reader, left, run, reason), note);
            continue;
          }
          const found = join(reader.protocol, left, [reader.continuation(whole)]);
          assert.isUndefined(found.fault, note);
          assert.deepStrictEqual(decode(reader.protocol, [bytesOf(found.events)]).end, { complete: true }, note);
          assert.strictEqual(found.events.map(reader.text).join(""), whole.map(reader.text).join(""), note);
        }
      }
      const sum = [...counts.values()].reduce((one, other) => one + other, 0);
      assert.strictEqual(sum, all);
      assert.isAbove(counts.get("whole") ?? 0, 0);
    });
  });
