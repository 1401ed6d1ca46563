/**
 * Describes what a suite may need of a wire protocol: a client's requests, and a provider's events, documents and errors.
 *
 * Samples are written by hand in the format of each provider and share no code with the tested sources.
 */
import type { Schema } from "effect";
import type { JsonRecord } from "../../src/domain/Json.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { Family } from "../../src/provider/protocol/Address.ts";
import type { Frame, Taken } from "../gateway/clients/StandIn.ts";

/** Content of a response. */
export type Said =
  | { readonly text: string }
  | { readonly thought: string; readonly signature?: string }
  /** A call; `pieces` are its arguments as they arrive. `open` omits the events that complete them. */
  | { readonly call: string; readonly pieces: ReadonlyArray<string>; readonly open?: true }
  /** Content in the provider's own format: a delta, an output item, a block or a part. */
  | { readonly native: object };

/** The form and the end of a response. */
export interface Ended {
  /** The number of the response, which its ids contain; 1 by default. */
  readonly number?: number;
  /** Maximum length of the text in one event, in UTF-16 code units. By default all text is in one event. */
  readonly piece?: number;
  /** The protocol's own finish reason; by default the natural one. */
  readonly finish?: string;
  /** Input and output tokens; if omitted, the provider reports none. */
  readonly usage?: readonly [input: number, output: number];
  /** True to omit the finish and everything after it. */
  readonly cut?: true;
  /** True to omit the protocol's last event, if it is another one than the finish. */
  readonly lacksLast?: true;
}

/** An event of a stream: JSON data, or a bare word. */
export type Event = object | string;

export interface Sample {
  readonly id: ProtocolId;
  /** The gateway's upstream for this protocol. */
  readonly vendor: Family;
  /** Encoding of the frames. Binary messages are text of one character a byte. If omitted, UTF-8. */
  readonly encoding?: "latin1";
  /** The content that a response may have besides text. A call arrives in pieces, or whole in one event. */
  readonly has: {
    readonly thoughts: boolean;
    readonly calls: "pieces" | "whole" | "none";
    /** True if the provider runs tools of its own. */
    readonly hosted: boolean;
    /** True if an error has a code or a type besides its message. */
    readonly codes: boolean;
  };
  /** Path and query of a request for a stream. */
  readonly path: string;
  /** Path of a request for a document. */
  readonly documentPath: string;
  /** The part of the path that belongs to an SDK's base URL. */
  readonly base: string;
  /** The header in which clients send their key. */
  readonly key: (key: string) => Readonly<Record<string, string>>;
  /** Requests of the protocol's clients, which an account may always make. */
  readonly calls: ReadonlyArray<string>;

  /** The field of a body that holds the whole request, if it is wrapped. */
  readonly wrapper?: "request";
  /** The field of a request that holds the conversation. */
  readonly history: "messages" | "input" | "inputs" | "contents";
  /** The role of the model in a conversation. */
  readonly assistant: "assistant" | "model";
  /** The smallest body that a client would send. */
  readonly bare: JsonRecord;
  /** A body with the user's question in its shortest form. The provider stores nothing. */
  readonly question: (text: string) => JsonRecord;
  /** A message of the user in the conversation. */
  readonly message: (text: string) => JsonRecord;
  /** Bodies that end with a user's message, a prefill or a tool's result. */
  readonly histories: readonly [JsonRecord, ...Array<JsonRecord>];
  /** Fields that ask for a stream or for a document. */
  readonly streams: (on: boolean) => JsonRecord;
  /** Fields that limit the output tokens. */
  readonly limit: (tokens: number) => JsonRecord;
  /** Fields that ask for a JSON document. */
  readonly json: JsonRecord;
  /** Returns the violations of the protocol's rules by a body. */
  readonly check: (body: unknown) => ReadonlyArray<string>;

  /** The event in its wire format. */
  readonly frame: (event: Event) => string;
  /** The first event of a response without content. */
  readonly start: (number: number) => object;
  /** An event with text, outside of any begun content. */
  readonly delta: (text: string) => object;
  /** The events of a response. */
  readonly events: (said: ReadonlyArray<Said>, ended?: Ended) => ReadonlyArray<Event>;
  /** The same response as a document. */
  readonly document: (said: ReadonlyArray<Said>, ended?: Ended) => object;
  readonly finishes: {
    /** The finish of a response that ends by itself. */
    readonly natural: string;
    /** The finishes after which a retry changes nothing. */
    readonly others: ReadonlyArray<string>;
  };
  /** A finish and an error in one event. */
  readonly failedFinish: object;
  /** The events of a response that an error of the server ends before any output. */
  readonly failed: (message: string) => ReadonlyArray<object>;
  /** The event that carries an error document in a stream. */
  readonly errorEvent: (document: object) => object;
  /** A refusal for now: an overloaded or limited provider. */
  readonly refusal: (message: string) => { readonly status: number; readonly document: object };
  /** The error of a rate limit with further details. */
  readonly rateLimit: (details: ReadonlyArray<Schema.Json>) => Schema.Json;
  /** The gateway's first no-op to an unknown client before the response begins. */
  readonly noOp: RegExp;

  /** Names of recorded responses: one with thoughts and text, one with calls. */
  readonly recordings: readonly [text: string, calls: string];
  /** The text and the thoughts of an event, as an application reads them. */
  readonly read: (event: unknown) => { readonly text: string; readonly reasoning: string };
  /** The meaning of a frame to a client that knows only the protocol. */
  readonly take: (frame: Frame, before: ReadonlyArray<Frame>) => Taken;
}
