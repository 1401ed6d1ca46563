/**
 * Goes on with a text that was shown, as a program does that embeds this package: it keeps what it has shown, and asks for the rest
 * of it.
 */
import { Result } from "effect";
import type * as Json from "../../../domain/Json.ts";
import type { PrefillForm } from "../../../domain/SeamWords.ts";
import * as Continuation from "../../../provider/Continuation.ts";
import * as ProtocolSeam from "../../../provider/ProtocolSeam.ts";
import type { Part, ProtocolId } from "../../../provider/Protocols.ts";
import type { RunEvent } from "../../../runtime/contract/RunEvent.ts";
import type { AttemptContext, TextOptions } from "../../../runtime/contract/RunOptions.ts";

/** How a run of the demo goes on with its text. */
export interface GoesOn {
  /** The provider is declared to go on behind a text that a request ends with, in this form; left out, the anchor is asked for. */
  readonly prefill?: PrefillForm;
  /** What the request has besides. */
  readonly more?: Json.JsonRecord;
}

const story = "Tell me a story";

/** The smallest request of each protocol whose response can go on. */
const requests: Readonly<Record<ProtocolId, Json.JsonRecord>> = {
  "anthropic-messages": { max_tokens: 1_024, messages: [{ role: "user", content: story }] },
  "google-gemini": { contents: [{ role: "user", parts: [{ text: story }] }] },
  "openai-chat": { messages: [{ role: "user", content: story }] },
  "openai-responses": { store: false, input: [{ role: "user", content: story }] },
};

/** What one run shows, and how it goes on with it. */
export class TextJoiner {
  readonly #body: Json.JsonRecord;
  readonly #collector: Continuation.Collector;
  readonly #goesOn: GoesOn;
  readonly #protocol: ProtocolId;
  readonly #url: string;

  constructor(protocol: ProtocolId, url: string, goesOn: GoesOn) {
    this.#protocol = protocol;
    this.#url = url;
    this.#goesOn = goesOn;
    this.#body = { model: "fault-model", stream: true, ...requests[protocol], ...goesOn.more };
    this.#collector = Continuation.collector(protocol);
  }

  /** What the run is told of it. */
  get options(): TextOptions<Part> {
    const { prefill } = this.#goesOn;
    const { origin } = new URL(this.#url);
    const prefills = prefill === undefined ? [] : [{ origin, model: "*", form: prefill }];
    return {
      continueText: "auto",
      seam: ProtocolSeam.make<ProtocolId>({
        protocol: this.#protocol,
        body: this.#body,
        url: this.#url,
        model: "fault-model",
        prefills,
      }),
    };
  }

  /** Keeps what is shown, and forgets what is withdrawn. */
  take(event: RunEvent<Part>): void {
    if (event._tag === "Part") this.#collector.take(event.attempt, event.ordinal, event.part);
    if (event._tag === "AttemptDiscarded") this.#collector.discard(event.attempt, event.keep_through);
  }

  /** The body of an attempt's request. */
  body({ request, seam }: Pick<AttemptContext, "request" | "seam">): Json.JsonRecord {
    if (request !== "continue") return this.#body;
    const given = { body: this.#body, received: this.#collector.received(), calls: [], results: [] };
    return Result.getOrThrow(Continuation.build(this.#protocol, seam === undefined ? given : { ...given, seam }));
  }
}
