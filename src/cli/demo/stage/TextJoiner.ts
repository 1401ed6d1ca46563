/** Continues shown text as a program that embeds this package does: it keeps the text that it has shown and requests the remaining text. */
import { Result } from "effect";
import type * as Json from "../../../domain/Json.ts";
import type { PrefillForm } from "../../../domain/SeamWords.ts";
import * as Continuation from "../../../provider/Continuation.ts";
import * as ProtocolSeam from "../../../provider/ProtocolSeam.ts";
import type { Part, ProtocolId } from "../../../provider/Protocols.ts";
import type { RunEvent } from "../../../runtime/contract/RunEvent.ts";
import type { AttemptContext, TextOptions } from "../../../runtime/contract/RunOptions.ts";
import * as Seam from "../../../stages/seam/Seam.ts";

/** Configures the continuation of shown text. */
export interface GoesOn {
  /** Form of the prefill that the provider supports. Without a prefill, the continuation quotes the end of the shown text (the anchor). */
  readonly prefill?: PrefillForm;
  /** Fields of the request in addition to those in `requests`. */
  readonly more?: Json.JsonRecord;
}

const story = "Tell me a story";

/** The smallest request of each protocol in which shown text can be continued. */
const requests: Readonly<Partial<Record<ProtocolId, Json.JsonRecord>>> = {
  "anthropic-messages": { max_tokens: 1_024, messages: [{ role: "user", content: story }] },
  "google-gemini": { contents: [{ role: "user", parts: [{ text: story }] }] },
  "openai-chat": { messages: [{ role: "user", content: story }] },
  "openai-responses": { store: false, input: [{ role: "user", content: story }] },
};

/** Keeps the shown text of one run and builds its continuation requests. */
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

  /** The run options that enable the continuation. */
  get options(): TextOptions<Part> {
    const { prefill } = this.#goesOn;
    const { origin } = new URL(this.#url);
    const prefills = prefill === undefined ? [] : [{ origin, model: "*", form: prefill }];
    return {
      continueText: "auto",
      seam: Seam.of(
        ProtocolSeam.make<ProtocolId>({
          protocol: this.#protocol,
          body: this.#body,
          url: this.#url,
          model: "fault-model",
          prefills,
        }),
      ),
    };
  }

  /** Keeps shown parts and drops withdrawn ones. */
  take(event: RunEvent<Part>): void {
    if (event._tag === "Part") this.#collector.take(event.attempt, event.ordinal, event.part);
    if (event._tag === "AttemptDiscarded") this.#collector.discard(event.attempt, event.keep_through);
  }

  body({ request, seam }: Pick<AttemptContext, "request" | "seam">): Json.JsonRecord {
    if (request !== "continue") return this.#body;
    const given = { body: this.#body, received: this.#collector.received(), calls: [], results: [] };
    return Result.getOrThrow(Continuation.build(this.#protocol, seam === undefined ? given : { ...given, seam }));
  }
}
