/**
 * Plays a request of each protocol against a model that breaks, and reads what its client got as a client does.
 */
import { Effect, Random, type Scope } from "effect";
import * as Relay from "../../../../src/adapters/relay/Relay.ts";
import { type RelayPlan, recognise } from "../../../../src/adapters/relay/RelayPlan.ts";
import type { RelayEvent } from "../../../../src/adapters/relay/RelayReader.ts";
import { type ProtocolId, protocols } from "../../../../src/provider/Protocols.ts";
import { textOf } from "../../../../src/provider/stream/Content.ts";
import * as Decoder from "../../../../src/provider/stream/Decoder.ts";
import type { StreamProcessor } from "../../../../src/runtime/StreamProcessor.ts";
import { byProtocol, conversation } from "../../../samples/index.ts";
import { type Asked, type Replies, transportOf } from "./HonestModel.ts";

export const targets = byProtocol(({ path }) => path);

/** A user's question, as clients of each protocol ask it. */
export const requests = byProtocol(({ id }) => conversation(id, "Tell me."));

/** A request as the relay recognises it. */
export const planOf = (
  protocol: ProtocolId,
  more: object = {},
  headers: RelayPlan["request"]["headers"] = [],
): RelayPlan => {
  const plan = recognise({
    ...{ method: "POST", url: `https://api.example${targets[protocol]}`, headers },
    body: JSON.stringify({ ...requests[protocol], ...more }),
  });
  if (plan === undefined) throw new Error("a request was not recognised");
  return plan;
};

/** The response that a client got. */
export interface Played {
  readonly text: string;
  /** `end`, or the rule by which it broke. */
  readonly end: string;
  readonly head: ReadonlyArray<readonly [string, string]>;
  readonly asked: ReadonlyArray<Asked>;
  readonly events: ReadonlyArray<RelayEvent>;
}

/** Plays a request to its end. */
export const played = (
  plan: RelayPlan,
  reply: Replies,
  options: Partial<Relay.RelayOptions> = {},
): Effect.Effect<Played, never, StreamProcessor | Scope.Scope> =>
  Effect.gen(function* () {
    const { asked, transport } = transportOf(reply);
    const events: Array<RelayEvent> = [];
    const onEvent = (event: RelayEvent) => void events.push(event);
    const opened = yield* Effect.result(
      Relay.open(plan, { transport, continueText: "auto", head: "content", onEvent, ...options }),
    );
    if (opened._tag === "Failure") return { text: "", end: opened.failure.rule, head: [], asked, events };
    const response = opened.success;
    let text = "";
    const end = yield* Effect.gen(function* () {
      for (;;) {
        const bytes = yield* response.read;
        if (bytes === undefined) return "end";
        text += Buffer.concat([...bytes]).toString();
      }
    }).pipe(Effect.catch((error) => Effect.succeed(error.rule)));
    return { text, end, head: response.head.headers, asked, events };
  }).pipe(Effect.provideService(Random.Random, eager));

/** Every wait is as short as it can be. */
const eager = (() => {
  let numbers = 0;
  const next = () => {
    numbers += 1;
    return numbers;
  };
  return { nextIntUnsafe: next, nextDoubleUnsafe: () => next() / 2 ** 32 };
})();

/** The content that a client reads from its bytes. */
export const readAs = (protocol: ProtocolId, text: string) => {
  const decoder = Decoder.make(protocols.get(protocol));
  const first = decoder.push(new TextEncoder().encode(text));
  const { end, parts: last } = decoder.end();
  const parts = [...first, ...last];
  const calls = parts.flatMap(({ observation }) =>
    observation.calls.flatMap((call) => (call.phase === "ready" ? [`${call.tool} ${call.input}`] : [])),
  );
  return {
    whole: end.complete && decoder.failure === undefined,
    /** The marker has come. */
    marked: parts.some(({ observation }) => observation.terminal),
    text: parts.map(({ content }) => textOf(content)).join(""),
    /** Something was shown. */
    shown: parts.some(({ observation }) => observation.shows !== "nothing"),
    calls,
    finishes: parts.flatMap(({ observation }) => observation.finish ?? []),
    usage: parts.findLast(({ observation }) => observation.usage !== undefined)?.observation.usage,
    starts: parts.filter(({ event }) => /^(?:message_start|response\.created)$/.test(event.event)).length,
  };
};
