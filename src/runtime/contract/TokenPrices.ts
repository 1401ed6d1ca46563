/**
 * Holds what a program knows of the prices of its models, so that metrics say money too.
 */
import * as Context from "effect/Context";
import { none, type Prices } from "../../domain/Prices.ts";

/** The prices of the program's models; none by default. A processor reads them when it is made. */
export const TokenPrices = Context.Reference<Prices>("effect-stream-recovery/TokenPrices", {
  defaultValue: () => none,
});
