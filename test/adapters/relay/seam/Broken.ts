/**
 * Plays recorded streams to the relay, broken at a byte after some text, and continues them like an honest model of their protocol.
 */
import { Effect } from "effect";
import type { RelayPlan } from "../../../../src/adapters/relay/RelayPlan.ts";
import type { RelayTransport } from "../../../../src/adapters/relay/RelayTransport.ts";
import * as ProtocolSeam from "../../../../src/provider/ProtocolSeam.ts";
import type { ProtocolId, WireProtocol } from "../../../../src/provider/Protocols.ts";
import { textOf } from "../../../../src/provider/stream/Content.ts";
import type { Part } from "../../../../src/provider/stream/Protocol.ts";
import type { StreamProcessor } from "../../../../src/runtime/StreamProcessor.ts";
import { concat, decode, encode } from "../../../provider/Decoded.ts";
import { chatContinuer, geminiContinuer } from "../../../provider/seam/Continuers.ts";
import { blocksBegun, honestMessage } from "../../../provider/seam/HonestMessage.ts";
import { honestResponse } from "../../../provider/seam/HonestResponse.ts";
import { eventsOf, frameOf } from "../../../provider/seam/JoinedStream.ts";
import { anthropicMessage, openAiResponse } from "../../../provider/seam/SdkReadings.ts";
import { type Continuer, type Stream, shownOf, written } from "../../../provider/seam/Spliced.ts";
import { spliceReaders } from "../../../provider/seam/SpliceReaders.ts";
import { askedBy } from "./HonestModel.ts";
import { type Played, played, requests } from "./SeamCases.ts";

/** The break in the bytes of a recording. */
export interface Break {
  /** The last whole event is that of this part, counted from 1. */
  readonly behind: number;
  readonly place: "behind the event" | "in the next event" | "in the line end";
}

/** The possible breaks of a recording: at several of its pieces of text, in every way. */
export const breaksOf = ({ parts }: Pick<Stream, "parts">, most: number): ReadonlyArray<Break> => {
  const said = parts.flatMap((part, at) => (textOf(part.content) !== "" && at < parts.length - 1 ? [at + 1] : []));
  const step = Math.max(1, Math.ceil(said.length / most));
  const places = ["behind the event", "in the next event", "in the line end"] as const;
  return said
    .filter((_, at) => at % step === 0 || at === said.length - 1)
    .flatMap((behind) => places.map((place) => ({ behind, place })));
};

/** A recording with line ends of one kind. */
export const withLineEnds = (protocol: WireProtocol, { bytes, name }: Stream, lineEnd: "\n" | "\r\n"): Stream => {
  const text = new TextDecoder().decode(bytes).replaceAll(/\r\n|\r|\n/g, lineEnd);
  const said = encode(text);
  return { name, bytes: said, parts: decode(protocol, [said]).parts };
};

/** The bytes that come before a break. */
const bytesBefore = ({ bytes, parts }: Stream, { behind, place }: Break): Uint8Array<ArrayBuffer> => {
  const size = parts.slice(0, behind).reduce((sum, { event }) => sum + event.bytes, 0);
  const next = parts[behind]?.event.bytes ?? 0;
  const crlf = bytes[size - 1] === CR && bytes[size] === LF ? 1 : 0;
  const more = { "behind the event": crlf, "in the next event": Math.ceil(next / 2), "in the line end": 0 }[place];
  return new Uint8Array(bytes.slice(0, size + more));
};

const CR = 13;
const LF = 10;

/** An honest model's text after a quote, event by event. */
type Rest = (stream: Stream, shown: number, quote: string) => ReadonlyArray<string>;

const textBefore = ({ parts }: Stream, count: number): string =>
  parts
    .slice(0, count)
    .map(({ content }) => textOf(content))
    .join("");

const byContinuer =
  (continuer: Continuer): Rest =>
  (stream, shown, quote) => {
    const said = textBefore(stream, shown);
    const first = stream.parts.slice(0, shown);
    const anchor = said.slice(said.lastIndexOf(quote));
    return continuer({ first, rest: stream.parts.slice(shown), anchor, attempt: 2 }).map(written);
  };

const rests = (protocol: WireProtocol): Rest => {
  const runOf = (first: ReadonlyArray<Part>) => shownOf(protocol, first).response();
  const byProtocol: Readonly<Partial<Record<ProtocolId, Rest>>> = {
    "openai-chat": byContinuer(chatContinuer),
    "google-gemini": byContinuer(geminiContinuer),
    "google-code-assist": byContinuer(geminiContinuer),
    "anthropic-messages": ({ parts }, at, quote) => {
      const first = parts.slice(0, at);
      const shown = runOf(first);
      const anchor = shown.run.length - shown.run.lastIndexOf(quote);
      return honestMessage(eventsOf(parts), shown, blocksBegun(eventsOf(first)), { anchor, thinks: true }).map(frameOf);
    },
    "openai-responses": ({ parts }, at, quote) => {
      const first = parts.slice(0, at);
      const shown = runOf(first);
      const anchor = shown.run.length - shown.run.lastIndexOf(quote);
      return honestResponse(eventsOf(parts), eventsOf(first), shown, { anchor }).map(frameOf);
    },
  };
  const found = byProtocol[protocol.id as ProtocolId]; // the protocols of this file are those of the package
  if (found === undefined) throw new Error(`${protocol.id} has no seam`);
  return found;
};

/** Number of parts shown before a request quotes their end. A call and the parts after it are held. */
const shownAt = (stream: Stream, most: number, quote: string): number => {
  const call = stream.parts.findIndex(({ observation }) => observation.calls.length > 0);
  for (const from of [call === -1 ? most : Math.min(call, most), most])
    for (let count = from; count > 0; count -= 1) if (textBefore(stream, count).trimEnd().endsWith(quote)) return count;
  throw new Error(`${stream.name}: the quote is not of what was shown: ${JSON.stringify(quote)}`);
};

/** The result of a broken recording. */
export interface BrokenRun extends Played {
  /** Number of requests for the rest of the shown text. */
  readonly quoted: number;
}

/** Plays a recording that breaks once, and its honest rest. */
export const broken = (
  protocol: WireProtocol,
  plan: RelayPlan,
  stream: Stream,
  at: Break,
): Effect.Effect<BrokenRun, never, StreamProcessor> => {
  const rest = rests(protocol);
  let asked = 0;
  let quoted = 0;
  const transport: RelayTransport = {
    open: (request, reporters) => {
      asked += 1;
      reporters.delivery("ambiguous");
      const { pathname, search } = new URL(request.url);
      const { quote } = askedBy(`${pathname}${search}`, {}, String(request.body));
      if (quote !== undefined) quoted += 1;
      const breaks = asked === 1;
      const bytes = breaks
        ? bytesBefore(stream, at)
        : quote === undefined
          ? stream.bytes
          : encode(rest(stream, shownAt(stream, at.behind, quote), quote).join(""));
      const chunks = piecesOf(bytes, breaks ? 1_021 : 61);
      return {
        head: () =>
          Promise.resolve({ status: 200, statusText: "", headers: [["content-type", "text/event-stream"] as const] }),
        read: () => {
          const chunk = chunks.shift();
          if (chunk !== undefined) return Promise.resolve([chunk]);
          return breaks ? Promise.reject(reset()) : Promise.resolve(undefined);
        },
        abort: () => undefined,
      };
    },
  };
  const never = () => ({ events: [] });
  return Effect.map(Effect.scoped(played(plan, never, { transport })), (got) => ({ ...got, quoted }));
};

const reset = (): Error => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

const piecesOf = (bytes: Uint8Array, size: number): Array<Uint8Array<ArrayBuffer>> =>
  Array.from(
    { length: Math.ceil(bytes.length / size) },
    (_, at) => new Uint8Array(bytes.slice(at * size, (at + 1) * size)),
  );

/** The reason why a response was not continued: the seam in its client's text, the fault of its rest, or the rule that ended it. */
export const reasonOf = (protocol: WireProtocol, { end, events, quoted, text }: BrokenRun): string => {
  const failures = events.flatMap((event) => (event._tag === "RunInterrupted" ? [event.failure] : []));
  const fault = failures.find((failure) => failure?.kind === "protocol" && failure.reason === "seam_unproven");
  if (fault !== undefined) return `unproven: ${fault.code}`;
  if (quoted > 0 || end !== "text_shown") return end;
  const seam = ProtocolSeam.makeIn(protocol, { body: requests[protocol.id as ProtocolId] }); // of the package, as above
  for (const part of decode(protocol, [encode(text)]).parts) seam.left(part, part.observation);
  const plan = seam.plan();
  return typeof plan === "string" ? plan : end;
};

/** The result of a protocol's official client, without counts of two requests; undefined if it throws. */
export const readBy = (id: ProtocolId, bytes: Uint8Array): Promise<unknown> => {
  switch (id) {
    case "anthropic-messages":
      return anthropicMessage(bytes).then((message) => ({ ...message, usage: null }));
    case "openai-responses":
      return openAiResponse(bytes).then(({ output, output_text, status, id: name }) => ({
        ...{ output_text, status, name, items: output.map((item) => item.type) },
        calls: output.map((item) => (item.type === "function_call" ? [item.name, item.arguments] : [])),
      }));
    case "google-code-assist":
      // No SDK reads this wire.
      return Promise.resolve(undefined);
    default: {
      const [reader] = spliceReaders.filter(({ protocol }) => protocol === id);
      if (reader === undefined) throw new Error(`${id} has no client`);
      return reader.read(bytes).then(({ tokens: _tokens, ...reading }) => reading);
    }
  }
};

/** The bytes of a text, with a blank line at its end: clients see a last event behind one. */
export const closed = (text: string): Uint8Array => concat([encode(text), encode("\n\n")]);
