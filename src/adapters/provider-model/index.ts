/**
 * A language model of `effect/ai` for the four protocols. It reaches its provider with this package's own client, which is
 * Node's, and so it has an entry of its own: `./effect-ai` runs where no Node is.
 */
export * as ProviderModel from "./ProviderModel.ts";
