/** Numbers the configurations of a gateway, so that an operator can see the configuration that each worker uses after a change. */
import { type Effect, Metric } from "effect";

/** Number of the configuration at the start; each accepted reload increments it. */
export const first = 1;

const generation = Metric.gauge("stream_recovery_gateway_config_generation", {
  description: "Generation of the configuration: 1 at startup, plus one for each accepted reload",
});

/** Publishes the number of this process's configuration as a metric. */
export const publish = (number: number): Effect.Effect<void> => Metric.update(generation, number);
