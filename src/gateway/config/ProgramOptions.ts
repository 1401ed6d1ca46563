/**
 * Describes the options of a whole gateway program: of its server, its store, its questions and its log.
 */
import type { Prices } from "../../domain/Prices.ts";
import type { GatewayOptions } from "./GatewayOptions.ts";

/** A gateway, and what stands behind it. */
export interface ProgramOptions extends GatewayOptions {
  /** `memory`, or an SQLite file; left out the one that the commands read. */
  readonly db?: string;
  /** `fail` (default): no person is asked, and what is uncertain stops. `hold`: the client waits for an answer. */
  readonly onQuestion?: "fail" | "hold";
  /** A question takes its default after so many milliseconds. */
  readonly holdMs?: number;
  /** Lease of this process in the database, in milliseconds: so long after its death its runs are recovered. */
  readonly leaseMs?: number;
  /** What models cost, by name or by its beginning with `*` behind: for the page and for metrics. */
  readonly prices?: Prices;
  /** How a line of the log is written; `text` by default. */
  readonly logFormat?: "text" | "json";
}
