/**
 * The prices of a program's models, so that metrics can report cost.
 */
import * as Context from "effect/Context";
import { none, type Prices } from "../../domain/Prices.ts";

/** The prices of the program's models; none by default. A processor reads them once, when it is created. */
export const TokenPrices = Context.Reference<Prices>("effect-stream-recovery/TokenPrices", {
  defaultValue: () => none,
});
