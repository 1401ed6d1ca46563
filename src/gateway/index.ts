/**
 * Exports the gateway as a library: the server, its layers, the configuration file, the page and the client table.
 */

export { Traffic } from "./api/Traffic.ts";
export { ClientMatch, ClientOverride, ClientOverrides } from "./clients/ClientOverrides.ts";
export type { ClientRow, Difference, RequestMarks, Treatment } from "./clients/ClientRow.ts";
export { clientRows, unknownRow } from "./clients/ClientRows.ts";
export { type Manner, type MannerRequest, type MannerSettings, mannerOf } from "./clients/Manner.ts";
export { type ConfigRead, readConfig } from "./config/ConfigFile.ts";
export type { ConfigProblem } from "./config/ConfigProblem.ts";
export { jsonSchema } from "./config/ConfigSchema.ts";
export { type ConfigSources, openConfig } from "./config/ConfigSources.ts";
export { GatewayError, type GatewayOptions, type ListenTls } from "./config/GatewayOptions.ts";
export {
  type GatewayLimits,
  type GatewayToken,
  limitsDefault,
  type UpstreamName,
  type Upstreams,
  upstreamsDefault,
} from "./config/Options.ts";
export type { ProgramOptions } from "./config/ProgramOptions.ts";
export type { FinishFailure, RouteList, RouteLists, RouteSettings } from "./config/RouteSettings.ts";
export type { UpstreamSettings } from "./config/UpstreamSettings.ts";
export { Gateway } from "./Gateway.ts";
export * as GatewayLayers from "./GatewayLayers.ts";
export * as RecoveryPage from "./page/RecoveryPage.ts";
export { Page } from "./proxy/PageHandler.ts";
export { TrafficMeter } from "./proxy/TrafficMeter.ts";
