/**
 * Reaches providers over HTTP: the client, its errors, and what it reports while a request runs.
 */
export type { Reporters } from "./Exchange.ts";
export { ProviderClient, type ProviderClientOptions, type ProviderRequest } from "./ProviderClient.ts";
export { ProviderError, type ProviderResponse } from "./ProviderError.ts";
