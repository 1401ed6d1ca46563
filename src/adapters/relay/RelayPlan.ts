/**
 * Recognises a request: its protocol, its streaming mode, and the tools that it exposes.
 */

import { effectOf, fromRequestTools } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { Provider } from "../../domain/RunFacts.ts";
import { serverSideState, type ToolBoundary, type ToolEffect } from "../../domain/SideEffects.ts";
import { protocols, type Registry, type Tolerance, type WireProtocol } from "../../provider/Protocols.ts";
import { headerOf, type RelayHeaders, type RelayRequest, readAddress } from "./RelayTransport.ts";

/** A recognised request, with the facts that its run needs. */
export interface RelayPlan {
  readonly request: RelayRequest;
  /** The body without content encoding, if there is a body that may have to be changed. */
  readonly plain?: RelayRequest["body"];
  readonly protocol: WireProtocol;
  /** True if the response is a stream of server-sent events. A document is recovered only until its head is sent. */
  readonly streaming: boolean;
  /**
   * True if the response is a document other than a message of the protocol, for example a token count. Only the end of such a document is
   * checked.
   */
  readonly isOpaque?: true;
  readonly provider: Provider;
  /**
   * All tools that the body exposes, and the state that the provider stores, which counts as a tool. The caller's tools have unknown
   * effects unless declared.
   */
  readonly tools: ReadonlyArray<ToolBoundary>;
  readonly tolerance: Tolerance;
  /** Maximum number of output tokens in the request; absent if it sets none. */
  readonly outputTokensMax?: number;
  /** True if the provider stores the response from its first event on, so that a retry would store a second response. */
  readonly stores?: true;
  /**
   * True if the request becomes part of a conversation at the provider, so that an error in the response does not prove that nothing was
   * kept.
   */
  readonly appends?: true;
  /**
   * True if the response outlives its connection. After a break that follows the first event, the response is resumed at a cursor, the
   * provider's name for a position in it.
   */
  readonly resumes?: true;
}

/** Effects of the caller's tools, by name. A request body does not contain them. */
export type DeclaredTools = Readonly<Record<string, ToolEffect>>;

/**
 * Returns true if a request may be recoverable. This is decided before the body is read, by method, URL and headers.
 *
 * @param method method in any case
 * @param url absolute URL
 */
export const mayBeRelayed = (method: string, url: string, headers: RelayHeaders): boolean =>
  method.toUpperCase() === "POST" && addressOf(url, headers, protocols) !== undefined;

/**
 * Recognises a request.
 *
 * @param request the request with its body
 * @param declared the effects of the caller's tools
 * @param registry the protocols to recognise
 * @returns undefined for a request that must pass through unchanged: it has another path, or its body does not belong to the protocol
 */
export const recognise = (
  request: RelayRequest,
  declared: DeclaredTools = {},
  registry: Pick<Registry, "at"> = protocols,
): RelayPlan | undefined => {
  const found = findAddress(request, registry);
  const body = found === undefined ? undefined : bodyOf(request.body);
  return found === undefined || body === undefined ? undefined : planOf(request, body, found, declared);
};

/**
 * Recognises a request whose body is already parsed.
 *
 * @param body the parsed body or an outline of it; the conversation and schemas are not needed
 */
export const recogniseBody = (request: RelayRequest, body: Json.JsonRecord): RelayPlan | undefined => {
  const found = findAddress(request, protocols);
  return found === undefined ? undefined : planOf(request, body, found, {});
};

const findAddress = ({ headers, method, url }: RelayRequest, registry: Pick<Registry, "at">) =>
  method.toUpperCase() === "POST" ? addressOf(url, headers, registry) : undefined;

const planOf = (
  request: RelayRequest,
  body: Json.JsonRecord,
  { claim, host, protocol }: NonNullable<ReturnType<typeof addressOf>>,
  declared: DeclaredTools,
): RelayPlan | undefined => {
  const { address } = protocol;
  if (!address.isRequestBody(body)) return undefined;
  const choices = address.choices(body);
  const outputTokensMax = address.outputTokens?.(body);
  // The model in the URL has precedence over the one in the body.
  const model = claim.model || Json.string(body.model);
  const streaming = claim.streaming ?? address.isStreaming?.(body) ?? body.stream === true;
  const kept = address.keeping?.(body, streaming) ?? "nothing";
  const harmless = Json.own(declared, serverSideState.name) === "read_only";
  return {
    request,
    protocol,
    streaming,
    provider: { id: label(host), ...(model === "" ? {} : { model: label(model) }) },
    tools: declare(toolsOf(address.requestIn?.(body) ?? body, kept === "request" || kept === "conversation"), declared),
    ...((kept === "response" || kept === "conversation") && !harmless ? { stores: true } : {}),
    ...(kept === "conversation" && !harmless ? { appends: true } : {}),
    ...(address.isResumable?.(body, streaming) === true ? { resumes: true } : {}),
    tolerance: choices === undefined || choices < 1 ? {} : { choices },
    ...(outputTokensMax === undefined ? {} : { outputTokensMax }),
  };
};

/** Returns the tools of a body, and the state that the provider stores for it. */
const toolsOf = (body: Json.JsonRecord, kept: boolean): ReadonlyArray<ToolBoundary> => {
  const tools = fromRequestTools(body);
  return kept && !tools.includes(serverSideState) ? [...tools, serverSideState] : tools;
};

const addressOf = (text: string, headers: RelayHeaders, registry: Pick<Registry, "at">) => {
  const address = readAddress(text);
  if (address === undefined) return undefined;
  const { host, pathname, searchParams } = address;
  const found = registry.at({
    path: pathname.replace(/\/+$/, ""),
    query: searchParams,
    has: (name) => headerOf(headers, name) !== undefined,
  });
  return found === undefined ? undefined : { ...found, host };
};

const bodyOf = (body: RelayRequest["body"]): Json.JsonRecord | undefined => {
  if (body === undefined) return undefined;
  return Json.record(Json.parse(typeof body === "string" ? body : new TextDecoder().decode(body))?.json);
};

/** Applies declared effects to tools. For tools that the provider runs, they override the effects that the body implies. */
const declare = (tools: ReadonlyArray<ToolBoundary>, declared: DeclaredTools): ReadonlyArray<ToolBoundary> => {
  const boundaries = Object.entries(declared).map(
    ([name, effect]): ToolBoundary => ({ name: label(name), executor: "provider", effect }),
  );
  return tools.map((tool) => {
    if (tool.executor === "runtime") return { ...tool, effect: Json.own(declared, tool.name) ?? tool.effect };
    const covering = boundaries.filter((boundary) => isDeclarationOf(boundary, tool));
    return covering.length === 0 ? tool : { ...tool, effect: effectOf(tool.name, covering) };
  });
};

/** True if a declaration applies to a tool that the provider runs: the tool's effect then follows the declared one. */
const isDeclarationOf = (boundary: ToolBoundary, { name }: ToolBoundary): boolean =>
  effectOf(name, [{ ...boundary, effect: "mutating" }]) === "mutating" &&
  effectOf(name, [{ ...boundary, effect: "read_only" }]) === "read_only";
