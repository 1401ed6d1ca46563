/**
 * Converts a provider's stream to parts of `effect/ai`.
 *
 * Each response has its own writer. A call is written when its decoder reports that it is complete. The finish is written at the end of the
 * stream, so that it includes data after the terminal marker (usually the usage).
 */
import type { Response } from "effect/ai";
import * as Json from "../../domain/Json.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";
import { type Content, keyOfCall, type OpaqueFields } from "../../provider/stream/Content.ts";
import type { Part } from "../../provider/stream/Protocol.ts";
import { hostedMetadata } from "../effect-ai/Parts.ts";
import { finishReason, usageOf } from "./Finish.ts";

type StreamPart = Response.StreamPartEncoded;

interface Block {
  readonly kind: "text" | "reasoning";
  readonly key: string;
  readonly id: string;
  keep: Record<string, string>;
}

/** Converts the events of one response to parts. */
export class PartWriter {
  readonly #protocol: WireProtocol;
  readonly #prefix: string;
  #block: Block | undefined;
  #blocks = 0;
  #named = false;
  #finish: string | undefined;
  #called = false;
  #usage: Json.JsonRecord = {};
  readonly #open = new Map<number, string>();
  readonly #ids = new Set<string>();
  /** Fields that must be sent back to the provider with a call, by the call's key. */
  readonly #keeps = new Map<string, OpaqueFields>();

  /**
   * @param protocol the protocol of the stream
   * @param prefix prefix of the ids that are generated for calls without a usable id
   */
  constructor(protocol: WireProtocol, prefix: string) {
    this.#protocol = protocol;
    this.#prefix = prefix;
  }

  /** Converts one decoded event to any number of parts. */
  take(part: Part): ReadonlyArray<StreamPart> {
    const { observation } = part;
    const out: Array<StreamPart> = [];
    this.#describe(part, out);
    if (observation.finish !== undefined) this.#finish = observation.finish;
    const said = part.content.filter(({ choice }) => choice === 0);
    for (const { keep, key, kind } of said) if (kind === "call" && keep !== undefined) this.#keeps.set(key, keep);
    const after = observation.text_before_calls === false;
    if (!after) for (const content of said) this.#writeContent(content, out);
    this.#writeCalls(observation.calls, out);
    if (after) for (const content of said) this.#writeContent(content, out);
    return out;
  }

  /** Ends the response: ends the open parts and writes the finish. */
  end(): ReadonlyArray<StreamPart> {
    const out: Array<StreamPart> = [];
    this.#close(out);
    // A call that was truncated by a limit is not emitted. Only its parameters end here.
    for (const id of this.#open.values()) out.push({ type: "tool-params-end", id });
    this.#open.clear();
    const reason = finishReason(this.#finish, this.#called);
    out.push({
      type: "finish",
      reason,
      usage: usageOf(this.#protocol.usage, this.#usage),
      ...(this.#finish === undefined ? {} : { metadata: { [this.#protocol.id]: { finish: this.#finish } } }),
    });
    return out;
  }

  /** Writes the provider's id and model of the response once, and collects the usage. */
  #describe({ json }: Part, out: Array<StreamPart>): void {
    const record = Json.record(json);
    if (record === undefined) return;
    const chunk = Json.record(record.response) ?? Json.record(record.message) ?? record;
    const groq = Json.record(Json.record(record.x_groq)?.usage);
    const usage = Json.record(chunk.usage) ?? Json.record(chunk.usageMetadata) ?? Json.record(record.usage) ?? groq;
    if (usage !== undefined) this.#usage = mergeUsage(this.#usage, usage);
    const id = Json.string(chunk.id) || Json.string(chunk.responseId);
    const modelId = Json.string(chunk.model) || Json.string(chunk.modelVersion);
    if (this.#named || id + modelId === "") return;
    this.#named = true;
    out.push({
      type: "response-metadata",
      ...(id === "" ? {} : { id }),
      ...(modelId === "" ? {} : { modelId }),
    });
  }

  #writeContent({ file, keep, key, kind, text }: Content, out: Array<StreamPart>): void {
    if (file !== undefined) {
      this.#close(out);
      out.push({ type: "file", mediaType: file.mediaType, data: file.data });
    }
    if (kind !== "text" && kind !== "reasoning") return;
    // Empty text starts no block. Empty reasoning starts a block if it has fields that must be sent back.
    const opens = text !== "" || (kind === "reasoning" && keep !== undefined);
    const block = opens ? this.#openBlock(kind, key, out) : this.#block;
    if (block === undefined || block.kind !== kind) return;
    if (keep !== undefined) block.keep = { ...block.keep, ...keep };
    if (text !== "") out.push({ type: `${kind}-delta`, id: block.id, delta: text });
  }

  #openBlock(kind: Block["kind"], key: string, out: Array<StreamPart>): Block {
    const open = this.#block;
    if (open !== undefined && open.kind === kind && open.key === key) return open;
    this.#close(out);
    const block = { kind, key, id: String(this.#blocks++), keep: {} };
    this.#block = block;
    out.push({ type: `${kind}-start`, id: block.id });
    return block;
  }

  #close(out: Array<StreamPart>): void {
    const block = this.#block;
    if (block === undefined) return;
    this.#block = undefined;
    out.push({ type: `${block.kind}-end`, id: block.id, ...this.#metadata(block.keep) });
  }

  #metadata(keep: OpaqueFields): { readonly metadata?: Response.ProviderMetadata } {
    return Object.keys(keep).length === 0 ? {} : { metadata: { [this.#protocol.id]: { ...keep } } };
  }

  #writeCalls(signals: ReadonlyArray<CallSignal>, out: Array<StreamPart>): void {
    const hosted: Array<Record<string, string>> = [];
    for (const signal of signals) {
      if (signal.choice !== 0) continue;
      if (signal.executor === "provider") hosted.push(hostedCall(signal));
      else if (signal.phase === "input_started") this.#start(signal, out);
      else if (signal.phase === "ready") this.#writeReadyCall(signal, this.#keeps.get(keyOfCall(signal)), out);
    }
    // `effect/ai` has no part for a call that is not in the toolkit, so the call is reported as metadata. The recovery of the model reads
    // it.
    if (hosted.length > 0) out.push({ type: "response-metadata", metadata: { [hostedMetadata]: { calls: hosted } } });
  }

  #start(signal: CallSignal, out: Array<StreamPart>): string {
    this.#close(out);
    const id = this.#assignId(signal);
    this.#open.set(signal.ordinal, id);
    out.push({ type: "tool-params-start", id, name: signal.tool ?? "" });
    return id;
  }

  #writeReadyCall(signal: CallSignal, keep: OpaqueFields | undefined, out: Array<StreamPart>): void {
    const id = this.#open.get(signal.ordinal) ?? this.#start(signal, out);
    this.#open.delete(signal.ordinal);
    this.#called = true;
    const input = signal.input ?? "";
    if (input !== "") out.push({ type: "tool-params-delta", id, delta: input });
    out.push({ type: "tool-params-end", id });
    const parsed = Json.parse(input);
    // The input of a custom tool is any text, which need not be JSON.
    const params = parsed === undefined ? input : parsed.json;
    out.push({ type: "tool-call", id, name: signal.tool ?? "", params, ...this.#metadata(keep ?? {}) });
  }

  /**
   * Returns the id of a call. If the provider's id is empty or was used before, a new id is generated, because a history distinguishes
   * calls by id.
   */
  #assignId({ id = "", ordinal }: CallSignal): string {
    const own = id === "" || this.#ids.has(id) ? `${this.#prefix}_${ordinal}` : id;
    this.#ids.add(own);
    return own;
  }
}

const hostedCall = ({ id = "", ordinal, phase, tool = "" }: CallSignal): Record<string, string> => ({
  id: id === "" ? `hosted_${ordinal}` : id,
  phase,
  tool,
});

/** Merges usage. Counts arrive in several events, and some servers report a known count as 0 at the end. */
const mergeUsage = (before: Json.JsonRecord, usage: Json.JsonRecord): Json.JsonRecord => {
  const next: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(usage)) if (value !== 0 || next[name] === undefined) next[name] = value;
  return next;
};
