/**
 * Recognises what a request asks for: in which protocol, whether as a stream, and which tools it exposes.
 */

import { effectOf, fromRequestTools } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { Provider } from "../../domain/RunFacts.ts";
import { serverSideState, type ToolBoundary, type ToolEffect } from "../../domain/SideEffects.ts";
import { protocols, type Registry, type Tolerance, type WireProtocol } from "../../provider/Protocols.ts";
import { headerOf, type RelayHeaders, type RelayRequest, readAddress } from "./RelayTransport.ts";

/** What a request asks for. */
export interface RelayPlan {
  readonly request: RelayRequest;
  /** Its body without content encoding, where it has one and may have to be changed. */
  readonly plain?: RelayRequest["body"];
  readonly protocol: WireProtocol;
  /** The response is a stream of server-sent events; else a document, which is recovered only until its head has left. */
  readonly streaming: boolean;
  /** The response is a document of another kind than the protocol's messages, such as a token count: only its end is read. */
  readonly isOpaque?: true;
  readonly provider: Provider;
  /** Every tool that the body exposes, with server-side state; the caller's own tools are `unknown` unless declared. */
  readonly tools: ReadonlyArray<ToolBoundary>;
  readonly tolerance: Tolerance;
  /** The request's own limit of output tokens; left out, it sets none. */
  readonly outputTokensMax?: number;
  /** The provider keeps the response from its first event on, so that a second one would stand beside it. */
  readonly stores?: true;
  /** The stream outlives its connection: a break behind its first event is read on by a cursor. */
  readonly resumes?: true;
}

/** What the caller's tools do, by name: a request body does not say it. */
export type DeclaredTools = Readonly<Record<string, ToolEffect>>;

/**
 * Says by method, address and headers, before the body is read, whether a request may be one to recover.
 *
 * @param method of any case
 * @param url absolute
 */
export const mayBeRelayed = (method: string, url: string, headers: RelayHeaders): boolean =>
  method.toUpperCase() === "POST" && addressOf(url, headers, protocols) !== undefined;

/**
 * Recognises a request.
 *
 * @param request with its body
 * @param declared what the caller's tools do
 * @param registry the protocols that are recognised
 * @returns undefined for a request that is passed through untouched: another path, or a body that is not the protocol's
 */
export const recognise = (
  request: RelayRequest,
  declared: DeclaredTools = {},
  registry: Pick<Registry, "at"> = protocols,
): RelayPlan | undefined => {
  const found = foundAt(request, registry);
  const body = found === undefined ? undefined : bodyOf(request.body);
  return found === undefined || body === undefined ? undefined : planOf(request, body, found, declared);
};

/**
 * Recognises a request whose body is known already.
 *
 * @param body the request's own, parsed, or an outline of it: nothing is recognised by what the conversation or a schema says
 */
export const recogniseBody = (request: RelayRequest, body: Json.JsonRecord): RelayPlan | undefined => {
  const found = foundAt(request, protocols);
  return found === undefined ? undefined : planOf(request, body, found, {});
};

const foundAt = ({ headers, method, url }: RelayRequest, registry: Pick<Registry, "at">) =>
  method.toUpperCase() === "POST" ? addressOf(url, headers, registry) : undefined;

const planOf = (
  request: RelayRequest,
  body: Json.JsonRecord,
  { claim, host, protocol }: NonNullable<ReturnType<typeof addressOf>>,
  declared: DeclaredTools,
): RelayPlan | undefined => {
  const { address } = protocol;
  if (!address.speaks(body)) return undefined;
  const choices = address.choices(body);
  const outputTokensMax = address.outputTokens?.(body);
  // What the address names is what is asked, also where a body says something else.
  const model = claim.model || Json.string(body.model);
  const streaming = claim.streaming ?? body.stream === true;
  const kept = address.keeps?.(body, streaming) ?? "nothing";
  const harmless = Json.own(declared, serverSideState.name) === "read_only";
  return {
    request,
    protocol,
    streaming,
    provider: { id: label(host), ...(model === "" ? {} : { model: label(model) }) },
    tools: declare(exposed(body, kept === "request"), declared),
    ...(kept === "response" && !harmless ? { stores: true } : {}),
    ...(address.resumes?.(body, streaming) === true ? { resumes: true } : {}),
    tolerance: choices === undefined || choices < 1 ? {} : { choices },
    ...(outputTokensMax === undefined ? {} : { outputTokensMax }),
  };
};

/** The tools of a body, and the state that its provider keeps for it. */
const exposed = (body: Json.JsonRecord, kept: boolean): ReadonlyArray<ToolBoundary> => {
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

/** A declared effect wins over what the body says, for hosted tools in any of their spellings. */
const declare = (tools: ReadonlyArray<ToolBoundary>, declared: DeclaredTools): ReadonlyArray<ToolBoundary> => {
  const boundaries = Object.entries(declared).map(
    ([name, effect]): ToolBoundary => ({ name: label(name), executor: "provider", effect }),
  );
  return tools.map((tool) => {
    if (tool.executor === "runtime") return { ...tool, effect: Json.own(declared, tool.name) ?? tool.effect };
    const covering = boundaries.filter((boundary) => covers(boundary, tool));
    return covering.length === 0 ? tool : { ...tool, effect: effectOf(tool.name, covering) };
  });
};

/** Whether a declaration names a hosted tool: then the looked-up effect is the declared one, whichever that is. */
const covers = (boundary: ToolBoundary, { name }: ToolBoundary): boolean =>
  effectOf(name, [{ ...boundary, effect: "mutating" }]) === "mutating" &&
  effectOf(name, [{ ...boundary, effect: "read_only" }]) === "read_only";
