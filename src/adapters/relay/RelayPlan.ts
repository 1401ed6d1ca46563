/**
 * Recognises what a request asks for: which of the four protocols, whether as a stream, and which tools it exposes.
 */

import { effectOf, fromRequestTools } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { Provider } from "../../domain/RunFacts.ts";
import { serverSideState, type ToolBoundary, type ToolEffect } from "../../domain/SideEffects.ts";
import type { ProtocolId, Tolerance } from "../../provider/stream/Protocol.ts";
import { headerOf, type RelayRequest } from "./RelayTransport.ts";

/** What a request asks for. */
export interface RelayPlan {
  readonly request: RelayRequest;
  readonly protocol: ProtocolId;
  /** The response is a stream of server-sent events; else a document, which is recovered only until its head has left. */
  readonly streaming: boolean;
  readonly provider: Provider;
  /** Every tool that the body exposes, with server-side state; the caller's own tools are `unknown` unless declared. */
  readonly tools: ReadonlyArray<ToolBoundary>;
  readonly tolerance: Tolerance;
  /** The provider keeps the response from its first event on, so that a second one would stand beside it. */
  readonly stores?: true;
}

/** What the caller's tools do, by name: a request body does not say it. */
export type DeclaredTools = Readonly<Record<string, ToolEffect>>;

/**
 * Says by method and address, before the body is read, whether a request may be one to recover.
 *
 * @param method of any case
 * @param url absolute
 * @param anthropic the request has an `anthropic-version` header
 */
export const mayBeRelayed = (method: string, url: string, anthropic: boolean): boolean =>
  method.toUpperCase() === "POST" && addressOf(url, anthropic) !== undefined;

/**
 * Recognises a request.
 *
 * @param request with its body
 * @param declared what the caller's tools do
 * @returns undefined for a request that is passed through untouched: another path, or a body that is not the protocol's
 */
export const recognise = (request: RelayRequest, declared: DeclaredTools = {}): RelayPlan | undefined => {
  if (request.method.toUpperCase() !== "POST") return undefined;
  const address = addressOf(request.url, headerOf(request.headers, "anthropic-version") !== undefined);
  const body = address === undefined ? undefined : bodyOf(request.body);
  if (address === undefined || body === undefined || !speaks(address.protocol, body)) return undefined;
  const choices = address.protocol === "google-gemini" ? candidates(body) : Json.natural(body.n);
  const model = Json.string(body.model) || address.model;
  const streaming = address.streaming ?? body.stream === true;
  const kept = address.protocol === "openai-responses" ? keptBy(body, streaming) : "nothing";
  const harmless = declared[serverSideState.name] === "read_only";
  return {
    request,
    protocol: address.protocol,
    streaming,
    provider: { id: label(address.host), ...(model === "" ? {} : { model: label(model) }) },
    tools: declare(exposed(body, kept === "request"), declared),
    ...(kept === "response" && !harmless ? { stores: true } : {}),
    tolerance: choices === undefined || choices < 1 ? {} : { choices },
  };
};

/**
 * What the provider keeps of a request, so that posting it again makes and bills a second one. A background job runs on without
 * its client: it may exist as soon as the request may have arrived. A stored response exists from its first event on; the client
 * of a stored document sees it only whole. A request without `store` is kept by default although its client did not ask for it:
 * such a request is repeated like any other.
 */
const keptBy = (body: Json.JsonRecord, streaming: boolean): "nothing" | "response" | "request" => {
  if (body.background === true) return "request";
  if (body.store !== true) return "nothing";
  return streaming ? "response" : "request";
};

/** The tools of a body, and the state that its provider keeps for it. */
const exposed = (body: Json.JsonRecord, kept: boolean): ReadonlyArray<ToolBoundary> => {
  const tools = fromRequestTools(body);
  return kept && !tools.includes(serverSideState) ? [...tools, serverSideState] : tools;
};

interface Address {
  readonly protocol: ProtocolId;
  /** Left out: the body says it. */
  readonly streaming?: boolean;
  readonly host: string;
  readonly model: string;
}

/**
 * The paths of the four protocols, behind any prefix (Azure, proxies and compatible endpoints have their own). Gemini without
 * `alt=sse` streams one JSON array, which has no events: it passes untouched.
 */
const addressOf = (text: string, anthropic: boolean): Address | undefined => {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const path = url.pathname.replace(/\/+$/, "");
  const found = { host: url.host, model: "" };
  if (path.endsWith("/chat/completions")) return { ...found, protocol: "openai-chat" };
  if (path.endsWith("/responses")) return { ...found, protocol: "openai-responses" };
  if (path.endsWith("/v1/messages") || (anthropic && path.endsWith("/messages")))
    return { ...found, protocol: "anthropic-messages" };
  const call = /\/models\/([^/]+):(\w+)$/.exec(path);
  const model = call?.[1] ?? "";
  // Claude on Vertex AI.
  if (call?.[2] === "streamRawPredict" || call?.[2] === "rawPredict")
    return { ...found, model, protocol: "anthropic-messages" };
  if (call?.[2] === "generateContent") return { ...found, model, protocol: "google-gemini", streaming: false };
  return call?.[2] === "streamGenerateContent" && url.searchParams.get("alt") === "sse"
    ? { ...found, model, protocol: "google-gemini", streaming: true }
    : undefined;
};

/** Whether a body has the field that its protocol requires: another server's `/responses` is no request to a model. */
const speaks = (protocol: ProtocolId, body: Json.JsonRecord): boolean => {
  switch (protocol) {
    case "openai-chat":
    case "anthropic-messages":
      return Array.isArray(body.messages);
    case "openai-responses":
      return body.input !== undefined || body.prompt !== undefined || body.conversation !== undefined;
    case "google-gemini":
      return body.contents !== undefined;
  }
};

const bodyOf = (body: RelayRequest["body"]): Json.JsonRecord | undefined => {
  if (body === undefined) return undefined;
  return Json.record(Json.parse(typeof body === "string" ? body : new TextDecoder().decode(body))?.json);
};

const candidates = (body: Json.JsonRecord): number | undefined =>
  Json.natural(Json.record(body.generationConfig ?? body.generation_config)?.candidateCount);

/** A declared effect wins over what the body says, for hosted tools in any of their spellings. */
const declare = (tools: ReadonlyArray<ToolBoundary>, declared: DeclaredTools): ReadonlyArray<ToolBoundary> => {
  const boundaries = Object.entries(declared).map(
    ([name, effect]): ToolBoundary => ({ name: label(name), executor: "provider", effect }),
  );
  return tools.map((tool) => {
    if (tool.executor === "runtime") return { ...tool, effect: declared[tool.name] ?? tool.effect };
    const covering = boundaries.filter((boundary) => covers(boundary, tool));
    return covering.length === 0 ? tool : { ...tool, effect: effectOf(tool.name, covering) };
  });
};

/** Whether a declaration names a hosted tool: then the looked-up effect is the declared one, whichever that is. */
const covers = (boundary: ToolBoundary, { name }: ToolBoundary): boolean =>
  effectOf(name, [{ ...boundary, effect: "mutating" }]) === "mutating" &&
  effectOf(name, [{ ...boundary, effect: "read_only" }]) === "read_only";
