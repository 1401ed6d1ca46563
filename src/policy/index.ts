/** Recovery policy as pure functions: decides what may be repeated after a model stream breaks. It needs no runtime. */

export * as Attempt from "../domain/AttemptFacts.ts";
export * as Decision from "../domain/Decision.ts";
export * as Failure from "../domain/Failure.ts";
export * as Observation from "../domain/Observation.ts";
export * as Run from "../domain/RunFacts.ts";
export * as SideEffects from "../domain/SideEffects.ts";
export * as Facts from "../facts/Facts.ts";
export * as Backoff from "./Backoff.ts";
export * as Choices from "./Choices.ts";
export * as DecisionInput from "./DecisionInput.ts";
export { explain } from "./Explanation.ts";
export * as PolicyTable from "./PolicyTable.ts";
export * as RecoveryPolicy from "./RecoveryPolicy.ts";
export { decide } from "./RecoveryPolicy.ts";
