/**
 * Reaches providers over HTTP: the client, its errors, and its reports during and after a request.
 */
export { ClientConfigError } from "./ClientConfig.ts";
export * as Credentials from "./Credentials.ts";
export type { Reporters } from "./connection/Exchange.ts";
export type { ExchangeRecord } from "./ExchangeRecord.ts";
export * as IdempotencyKey from "./IdempotencyKey.ts";
export { type PathOptions, ProviderClient, type ProviderClientOptions } from "./ProviderClient.ts";
export { ProviderError, type ProviderResponse } from "./ProviderError.ts";
export type { ProviderRequest, RequestHeaders } from "./ProviderRequest.ts";
export * as ResumableStream from "./ResumableStream.ts";
