/**
 * Reads one attempt of a relayed request: its head, its events with their own bytes, and its end.
 *
 * StreamProcessor polls it and takes parts in the step in which they arrive, without a fiber or a promise in between. `close`
 * aborts the exchange immediately.
 */

import { mayHaveContent, mayStream } from "../../client/ResponseReader.ts";
import { type Failure, leavesIncompleteCall, outputLimit } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { none, type Observation, ping, text } from "../../domain/Observation.ts";
import { classifyResponse } from "../../failure/FailureClassifier.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";
import * as Decoder from "../../provider/stream/Decoder.ts";
import type { Framing } from "../../provider/stream/Framing.ts";
import { document as notStreamed, unreadable, type Verifier } from "../../provider/stream/Resume.ts";
import * as Sse from "../../provider/stream/Sse.ts";
import {
  afterMicrotasks,
  inNextTurn,
  type Polled,
  type PolledReader,
  readAheadMax,
} from "../../runtime/attempt/AsyncSource.ts";
import { keepAlivesToArm } from "../../runtime/contract/Clocks.ts";
import type { AttemptContext } from "../../runtime/contract/RunOptions.ts";
import { documentCharactersMax, documentEnd, observeDocument, observeStream, overLimitEnd } from "./DocumentFold.ts";
import { type BodyFrames, RelayFrames, type RelayPart } from "./RelayFrames.ts";
import type { RelayHeads } from "./RelayHeads.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import {
  type Arrivals,
  fieldOf,
  type RelayExchange,
  type RelayHead,
  type RelayRefusal,
  type RelayRequest,
  type RelayTransport,
  recordOf,
  relayError,
} from "./RelayTransport.ts";
import { signatureOf } from "./RequestSignature.ts";
import { Slices } from "./Slices.ts";
import type { RelaySeam } from "./seam/RelaySeam.ts";
import { SeamFrames } from "./seam/SeamFrames.ts";
import { withoutBody } from "./seam/SeamRequest.ts";
import { HeldDocument, readDocument, readRefusal, textOf, type WithTimeout } from "./WholeBody.ts";

/** Options of an attempt. */
export interface RelaySourceOptions {
  readonly plan: RelayPlan;
  readonly transport: RelayTransport;
  readonly context: Pick<AttemptContext, "attempt" | "delivery" | "bytes" | "request" | "cursor" | "seam">;
  readonly heads: RelayHeads;
  readonly within: WithTimeout;
  /** Returns the wall clock, in milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Continues shown text; if omitted, no text is continued. */
  readonly seam?: RelaySeam | undefined;
}

/** Maximum first bytes that are kept until they prove to be a stream, so that any other response reaches the client unchanged. */
export const unprovenBytesMax = 64 * 1024;

/** Maximum wait for the bytes after a provider's error event, in milliseconds. They come immediately or not at all. */
export const behindMs = 500;

/** Maximum bytes that are read after an error event. OpenAI's Responses repeat the whole request there. */
export const behindBytesMax = 1024 * 1024;

/** The parts of one attempt. */
export class RelaySource implements PolledReader<RelayPart> {
  readonly #options: RelaySourceOptions;
  readonly #exchange: RelayExchange;
  readonly #frames: BodyFrames;
  /** True if this attempt resumes a response that an earlier attempt requested. */
  readonly #resumes: boolean;
  /** True if this attempt requests the rest of a response whose beginning was shown. */
  readonly #continues: boolean;
  #head: RelayHead | undefined;
  /** Reads the body without promises, if the transport supports it. */
  #arrivals: Arrivals | undefined;
  /** Bytes that have arrived and are not split yet. */
  readonly #slices = new Slices();
  /** True while waiting for the next turn of the event loop. */
  #turning = false;
  #ready: Array<RelayPart> = [];
  #ended = false;
  /** The failure of the attempt. It is reported after all earlier parts were taken. */
  #failure: { readonly error: unknown } | undefined;
  /** True while waiting for a promise. */
  #awaits = false;
  #ticking = false;
  #wake: (() => void) | undefined;
  #unproven: Array<Uint8Array<ArrayBuffer>> | undefined = [];
  #unprovenBytes = 0;
  /** True if an event has come. */
  #isProven = false;
  /** True if the provider stores the response and no event of it has come. */
  #stores: boolean;
  /** True if the response is a document that exceeds a limit, which is streamed. */
  #streamsDocument = false;
  /** The document that is held until it is complete. */
  #document: HeldDocument | undefined;
  /** Number of keep-alives that its body has been counted as. */
  #documentSigns = 0;

  constructor(options: RelaySourceOptions) {
    const { context, heads, plan, seam, transport } = options;
    this.#options = options;
    this.#stores = plan.stores === true;
    this.#resumes = context.request === "resume";
    this.#continues = context.request === "continue";
    heads.begin(context.attempt, this.#resumes ? context.cursor : undefined, this.#continues);
    if (context.request === "first") seam?.setRequest(plan);
    const opening = openingOf(plan, context, seam);
    const keepsFolds = seam !== undefined && !this.#continues;
    const decoder = Decoder.make(plan.protocol, { tolerance: plan.tolerance, keepsFolds });
    const verification =
      opening?.verifier === undefined ? undefined : { verifier: opening.verifier, resumed: this.#resumes };
    this.#frames = this.#continues
      ? new SeamFrames(decoder)
      : new RelayFrames(decoder, verification, seam !== undefined, plan.protocol.framing);
    const refused =
      opening === undefined ? (this.#continues ? unbuildable : unreadable) : this.#expiry(opening.request);
    this.#exchange =
      opening === undefined || refused !== undefined
        ? nothingSent(refused ?? unreadable)
        : transport.open(opening.request, { delivery: context.delivery, bytes: context.bytes });
  }

  /**
   * Returns the reason not to send a request again whose signature has expired. The first attempt is sent, because only the provider knows
   * its own clock. An operator's credential replaces the client's signature.
   */
  #expiry(request: RelayRequest): Failure | undefined {
    const { context, nowMs, transport } = this.#options;
    if (context.attempt === 1 || transport.mask !== undefined) return undefined;
    const validUntilMs = signatureOf(request)?.validUntilMs;
    return validUntilMs !== undefined && nowMs() > validUntilMs ? signatureExpired : undefined;
  }

  /** Returns the parts that have arrived. Returns the end or the error once they were taken. */
  poll(): Polled<RelayPart> {
    do {
      const ready = this.#ready;
      if (isFilled(ready)) {
        this.#ready = [];
        return { _tag: "chunk", chunk: ready };
      }
      if (this.#failure !== undefined) return this.#abortWith(this.#failure);
      if (this.#ended) {
        this.#document?.release();
        return { _tag: "end" };
      }
    } while (!this.#awaits && this.#tryAdvance());
    return undefined;
  }

  /** Aborts the failed exchange, because its attempt waits for nothing more. */
  #abortWith({ error }: { readonly error: unknown }): Polled<RelayPart> {
    this.#document?.release();
    try {
      this.#exchange.abort();
      return { _tag: "error", error };
    } catch (defect) {
      return { _tag: "error", error: defect };
    }
  }

  wait(wake: () => void): void {
    this.#wake = wake;
    if (this.#awaits) return;
    const { coming } = this.#exchange;
    if (!this.#slices.isEmpty && this.#frames.failed === undefined) {
      if (!this.#turning) inNextTurn(this.#onTurn);
      this.#turning = true;
      return;
    }
    this.#slices.renew();
    if (this.#head === undefined && coming !== undefined) coming.wait(this.#wakeAttempt);
    else if (this.#arrivals !== undefined && this.#frames.failed === undefined) this.#arrivals.wait(this.#wakeAttempt);
    else this.#await(this.#read());
  }

  /** Aborts the attempt immediately. */
  close(): void {
    this.#wake = undefined;
    this.#ended = true;
    this.#document?.release();
    this.#exchange.abort();
  }

  /** Takes the head or the bytes that have arrived. Returns false if nothing has arrived, or if only a promise can provide it. */
  #tryAdvance(): boolean {
    if (this.#frames.failed !== undefined) return false;
    try {
      if (!this.#slices.isEmpty) return this.#tryTakeSlice();
      const polled = this.#head === undefined ? this.#exchange.coming?.pollHead() : this.#arrivals?.poll();
      if (polled === undefined) return false;
      if (polled._tag === "error") throw polled.error;
      const more =
        polled._tag === "head"
          ? this.#onHead(polled.head)
          : this.#takeArrived(polled._tag === "chunk" ? polled.chunk : undefined);
      if (more !== undefined) this.#await(more);
    } catch (error) {
      this.#failure = { error };
    }
    return true;
  }

  /** Splits the bytes that this turn may still split. Returns false if they must wait for the next turn. */
  #tryTakeSlice(): boolean {
    const slice = this.#slices.next();
    if (slice === undefined) return false;
    const more = this.#take([slice]);
    if (more !== undefined) this.#await(more);
    return true;
  }

  /** Splits arrived bytes, up to the limit of this turn of the event loop. */
  #takeArrived(chunks: ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined): Promise<void> | undefined {
    if (chunks === undefined || this.#streamsDocument) return this.#take(chunks);
    this.#slices.add(chunks);
    const slice = this.#slices.next();
    return slice === undefined ? undefined : this.#take([slice]);
  }

  /** Continues the attempt when a promise settles. A rejection becomes the failure of the attempt. */
  #await(promise: Promise<void>): void {
    this.#awaits = true;
    const done = (failed?: { readonly error: unknown }) => {
      this.#awaits = false;
      this.#failure ??= failed;
      this.#wakeAttempt();
    };
    promise.then(
      () => done(),
      (error: unknown) => done({ error }),
    );
  }

  /** Continues splitting in a new turn of the event loop. */
  readonly #onTurn = (): void => {
    this.#turning = false;
    this.#slices.renew();
    this.#wakeAttempt();
  };

  readonly #wakeAttempt = (): void => {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  };

  /** Reads with promises: anything that must be waited for, and a body that cannot be polled, ahead of the attempt. */
  async #read(): Promise<void> {
    if (this.#head === undefined) await this.#onHead(await this.#exchange.head());
    while (this.#failure === undefined && !this.#ended) {
      if (this.#frames.failed !== undefined) await this.#behindFailure();
      else if (this.#arrivals !== undefined || this.#ready.length >= readAheadMax || !this.#slices.isEmpty) return;
      else await this.#takeArrived(await this.#exchange.read());
      if (this.#ready.length > 0) this.#wakeSoon();
    }
  }

  /** Wakes the attempt after the microtasks, so that everything that arrives together is taken together. */
  #wakeSoon(): void {
    if (this.#ticking) return;
    this.#ticking = true;
    afterMicrotasks(() => {
      this.#ticking = false;
      this.#wakeAttempt();
    });
  }

  /**
   * Handles the head.
   *
   * @returns completes after the body was read, if the response is not a stream
   */
  #onHead(head: RelayHead): Promise<void> | undefined {
    const { context, heads, plan } = this.#options;
    this.#head = head;
    context.delivery("accepted", head.status);
    if (head.status < 200 || head.status > 299) return this.#refuse([]);
    heads.recordHead(context.attempt, head);
    this.#arrivals = this.#exchange.arrivals?.();
    if (!plan.streaming || !mayHaveContent(plain(head))) return this.#openDocument(head, []);
    // If the content type is not that of a stream, only the first event proves that the body is a stream.
    const { isDeclaredBy } = plan.protocol.framing ?? Sse.framing;
    if (isDeclaredBy(typeOf(head))) heads.release(context.attempt);
    return undefined;
  }

  async #openDocument(head: RelayHead, first: ReadonlyArray<Uint8Array<ArrayBuffer>>): Promise<void> {
    // The provider knows the response and no longer streams it, and this client could not read a document.
    if (this.#resumes && isJson(head)) throw relayError(notStreamed);
    const held = new HeldDocument();
    this.#document = held;
    const { chunks, whole } = await readDocument(this.#exchange, first, held, this.#onDocumentBytes);
    // A document cannot be joined to shown text.
    if (this.#continues) throw relayError(notAStream);
    // After the head of a stream, the client could not read a document. If the provider never streamed, it would bill another attempt
    // for the same result.
    if (this.#options.heads.sent) throw relayError(this.#options.heads.hasStreamed ? notAStream : neverAStream);
    if (!whole) {
      this.#streamsDocument = true;
      held.release();
      this.#add(chunks.map((bytes) => ({ bytes, observation: text(bytes.byteLength) })));
      return;
    }
    const json = isJson(head);
    const mayBePage = this.#options.plan.streaming || isHtml(head);
    const body = json || mayBePage ? textOf(chunks) : "";
    const said = classifyResponse({ status: head.status, headers: recordOf(head.headers), body });
    // A web page comes from a proxy, but a document of the protocol is a response.
    const isPage = mayBePage && !json && chunks.length > 0;
    if (said.kind !== "protocol" || isPage)
      throw relayError(this.#maskFailure(said), this.#maskRefusal({ head, body: chunks, whole }));
    const parsed = json ? Json.parse(body) : undefined;
    // A body without a byte is no JSON either, unless the status says that there is none.
    if (json && parsed === undefined && mayHaveContent(plain(head))) throw relayError({ kind: "truncated" });
    const end = this.#endOf(chunks, head, body.length > documentCharactersMax ? undefined : parsed?.json);
    if (end.failure !== undefined) {
      const failure = this.#maskFailure(this.#markIfLimited(end.failure, end.usage?.output_tokens));
      // A call that cannot be read never reaches the client, as in a stream.
      const withheld = leavesIncompleteCall(failure) || !json;
      throw relayError(failure, withheld ? undefined : this.#maskRefusal({ head, body: chunks, whole }));
    }
    this.#add([...chunks.map((bytes) => ({ bytes, observation: none })), { bytes: nothing, observation: end }]);
    this.#ended = true;
  }

  /**
   * Arms the clock `silence`, which any byte restarts. White space before a document keeps the connection alive, and a document that has
   * begun is sent without pauses.
   */
  readonly #onDocumentBytes = (chunks: ReadonlyArray<Uint8Array>): void => {
    if (this.#documentSigns >= keepAlivesToArm) return;
    const signs = chunks.every(isBlankChunk) ? 1 : keepAlivesToArm;
    this.#documentSigns += signs;
    this.#add(Array.from({ length: signs }, () => ({ bytes: nothing, observation: ping })));
    this.#wakeSoon();
  };

  /** Observes the end of a document. A server may also have ignored that the request asks for no stream. */
  #endOf(chunks: ReadonlyArray<Uint8Array>, head: RelayHead, json: unknown): Observation {
    const { isOpaque, protocol, streaming, tolerance } = this.#options.plan;
    if (isOpaque === true) return documentEnd;
    if (json !== undefined) return observeDocument(protocol, json, tolerance);
    const streams = !streaming && (protocol.framing ?? Sse.framing).isDeclaredBy(typeOf(head));
    return streams ? observeStream(protocol, chunks, tolerance) : documentEnd;
  }

  /**
   * Splits the next bytes. A failure is reported after all earlier parts were taken.
   *
   * @returns completes after the response was read in another way, if it proves not to be a stream
   */
  #take(chunks: ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined): Promise<void> | undefined {
    if (this.#streamsDocument) {
      this.#passDocument(chunks);
      return undefined;
    }
    const { context, heads } = this.#options;
    let late: ReturnType<RelayFrames["end"]> | undefined;
    if (chunks === undefined) {
      heads.recordCleanEnd(context.attempt);
      late = this.#frames.end();
      this.#add(late.parts);
    }
    for (const chunk of chunks ?? []) {
      this.#keepUnproven(chunk);
      this.#add(this.#frames.push(chunk));
    }
    const { failed, failure, misfit } = this.#frames;
    if (misfit !== undefined) {
      this.#failure = { error: relayError(misfit) };
      return undefined;
    }
    if (this.#unproven !== undefined && failure?.kind === "protocol" && failure.reason === "not_a_stream") {
      // The content type proves little, because a stream may have the type of a document. The first bytes decide.
      const first = [...this.#unproven, ...this.#slices.rest()];
      this.#unproven = undefined;
      if (this.#head === undefined || mayStream(plain(this.#head))) return this.#refuse(first);
      return this.#openDocument(this.#head, first);
    }
    if (!this.#isProven && (this.#ready.length > 0 || failed !== undefined)) {
      this.#isProven = true;
      this.#unproven = undefined;
      heads.release(context.attempt);
    }
    if (failed !== undefined) {
      if (late !== undefined) this.#fail(failed);
      return undefined;
    }
    if (late?.end.complete === false) this.#failure = { error: relayError(this.#markIfLimited(late.end.failure)) };
    else if (failure !== undefined) this.#failure = { error: relayError(failure) };
    else this.#ended = late !== undefined;
    return undefined;
  }

  /** Waits briefly for the bytes after a provider's error, or after a finish that cannot be read, because they belong to it. */
  async #behindFailure(): Promise<void> {
    await this.#options.within(
      behindMs,
      this.#drain().catch(() => undefined),
    );
    const { failed } = this.#frames;
    if (failed !== undefined && this.#failure === undefined) this.#fail(failed);
  }

  /** Counts bytes as they arrive, because bytes that never become an event are held too. */
  async #drain(): Promise<void> {
    let bytes = this.#frames.behindBytes;
    while (this.#failure === undefined && bytes <= behindBytesMax) {
      const slice = this.#slices.next();
      if (slice !== undefined) {
        bytes += slice.byteLength;
        this.#frames.push(slice);
        continue;
      }
      if (!this.#slices.isEmpty) {
        await new Promise<void>(inNextTurn);
        this.#slices.renew();
        continue;
      }
      const chunks = await this.#exchange.read();
      if (this.#failure !== undefined) return;
      if (chunks === undefined) {
        this.#options.heads.recordCleanEnd(this.#options.context.attempt);
        this.#frames.end();
        return;
      }
      this.#slices.add(chunks);
    }
  }

  #fail(failed: RelayPart): void {
    const { plan, transport } = this.#options;
    const { mask } = transport;
    const said = this.#maskFailure(this.#markIfLimited(failed.observation.failure ?? { kind: "server_error" }));
    // The conversation may contain the request already, whatever the error says.
    const isKept = plan.appends === true && !this.#stores;
    const failure = isKept ? { ...said, in_band: false, not_processed: false } : said;
    const observation = { ...failed.observation, failure };
    this.#add([
      {
        ...failed,
        observation,
        ...(mask === undefined ? {} : { bytes: editedBy(plan.protocol, failed.bytes, (text) => mask.bytes(text)) }),
      },
    ]);
    this.#failure = { error: relayError(failure) };
  }

  /**
   * Marks the failure of a call that the request's own token limit cut, even if the finish reports another reason. The same limit would cut
   * the next attempt.
   */
  #markIfLimited(failure: Failure, outputTokens = this.#frames.outputTokens): Failure {
    const { outputTokensMax = Number.POSITIVE_INFINITY } = this.#options.plan;
    if (!leavesIncompleteCall(failure) || outputTokens < outputTokensMax) return failure;
    return { ...failure, code: outputLimit, retryable: false };
  }

  #maskRefusal(response: RelayRefusal): RelayRefusal {
    return this.#options.transport.mask?.refusal(response) ?? response;
  }

  #maskFailure(failure: Failure): Failure {
    const { mask } = this.#options.transport;
    return mask === undefined || failure.code === undefined ? failure : { ...failure, code: mask.text(failure.code) };
  }

  #passDocument(chunks: ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined): void {
    if (chunks !== undefined) {
      this.#add(chunks.map((bytes) => ({ bytes, observation: text(bytes.byteLength) })));
      return;
    }
    this.#add([{ bytes: nothing, observation: overLimitEnd }]);
    this.#ended = true;
  }

  #add(parts: ReadonlyArray<RelayPart>): void {
    for (const came of parts) {
      const part = this.#stores ? this.#storing(came) : came;
      // Nearly every read brings one part. In V8, a growing empty list allocates room for seventeen.
      if (this.#ready.length === 0) this.#ready = [part];
      else this.#ready.push(part);
      this.#options.heads.recordArrival(part);
    }
  }

  /** Marks the first event of a response, which proves that its provider stores the response. A comment or an error proves nothing. */
  #storing(part: RelayPart): RelayPart {
    const { observation } = part;
    if (observation.keep_alive || observation.failure !== undefined) return part;
    this.#stores = false;
    return { ...part, observation: { ...observation, stores: true } };
  }

  #keepUnproven(chunk: Uint8Array<ArrayBuffer>): void {
    if (this.#unproven === undefined) return;
    if (this.#unprovenBytes > unprovenBytesMax) this.#unproven = undefined;
    this.#unprovenBytes += chunk.byteLength;
    this.#unproven?.push(chunk);
  }

  /** Reads the body of an unsuccessful response and fails with it. */
  async #refuse(first: ReadonlyArray<Uint8Array<ArrayBuffer>>): Promise<void> {
    const head = this.#head;
    if (head === undefined) return;
    const response = this.#maskRefusal(await readRefusal(this.#exchange, head, first, this.#options.within));
    const seen = { status: head.status, headers: recordOf(response.head.headers), body: textOf(response.body) };
    throw relayError(classifyResponse(seen, { nowMs: this.#options.nowMs() }), response);
  }
}

const editedBy = ({ framing }: WireProtocol, ...[events, edit]: Parameters<NonNullable<Framing["edited"]>>) =>
  framing?.edited === undefined ? edit(events) : framing.edited(events, edit);

/** True if a chunk holds only JSON's white space. */
const isBlankChunk = (chunk: Uint8Array): boolean =>
  chunk.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);

const isFilled = <A>(parts: Array<A>): parts is [A, ...Array<A>] => parts.length > 0;

/**
 * Exchange for an attempt that sends nothing, because its cursor cannot be read, or because no request can ask for the rest of the
 * response.
 */
const nothingSent = (failure: Failure): RelayExchange => ({
  head: () => Promise.reject(relayError(failure)),
  read: () => Promise.resolve(undefined),
  abort: () => undefined,
});

/** The request would be refused, and a new signature needs the secret of the client. */
const signatureExpired: Failure = {
  ...{ kind: "rejected", reason: "auth", code: "signature_expired" },
  ...{ retryable: false, not_processed: true },
};

const unbuildable: Failure = { kind: "rejected", reason: "invalid_request", code: "continuation_unbuildable" };

const nothing = new Uint8Array(0);
const notAStream = { kind: "protocol", reason: "not_a_stream" } as const;
const neverAStream = { ...notAStream, retryable: false } as const;

/** Returns the properties of a head that decide if events may follow. Its body is plain, because the transport has decoded it. */
const plain = (head: RelayHead) => ({ status: head.status, headers: { "content-type": typeOf(head) } });

const typeOf = (head: RelayHead): string => fieldOf(head.headers, "content-type") ?? "";

const isHtml = (head: RelayHead): boolean => /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(typeOf(head));

const isJson = (head: RelayHead): boolean => /^\s*application\/(?:[\w.-]+\+)?json\b/i.test(typeOf(head));

/** The request of an attempt, and the verifier of its response. */
interface AttemptOpening {
  readonly request: RelayRequest;
  /** Verifies the events, if the response can be resumed. */
  readonly verifier?: Verifier<string>;
}

/**
 * Returns the request of an attempt.
 *
 * @param seam builds the requests of continuations
 * @returns undefined if the cursor cannot be resumed from, or if no request can ask for the rest of the response; then nothing may be sent
 */
const openingOf = (
  plan: RelayPlan,
  attempt: Pick<AttemptContext, "request" | "cursor" | "seam">,
  seam?: Pick<RelaySeam, "requestOf">,
): AttemptOpening | undefined => {
  const { protocol, request, resumes } = plan;
  if (attempt.request === "continue") {
    const next = attempt.seam === undefined ? undefined : seam?.requestOf(attempt.seam, plan);
    return next === undefined ? undefined : { request: next };
  }
  if (attempt.request !== "resume") {
    const form = resumes === true ? protocol.resume : undefined;
    return form === undefined ? { request } : { request, verifier: form.first() };
  }
  const behind = attempt.cursor === undefined ? undefined : protocol.resume?.behind(request.url, attempt.cursor);
  if (behind === undefined) return undefined;
  const headers = withoutBody(request.headers).filter(([name]) => name.toLowerCase() !== "content-type");
  return {
    request: { ...request, method: "GET", url: behind.url, headers, body: undefined },
    verifier: behind.verifier,
  };
};
