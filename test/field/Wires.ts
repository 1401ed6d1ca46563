/**
 * Writes the responses of the field's dialects in all four protocols, and plays them to the relay under the test's clock.
 */
import { Effect, Fiber, type Scope } from "effect";
import { open } from "../../src/adapters/relay/Relay.ts";
import type { RelayOptions } from "../../src/adapters/relay/RelayBeginning.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { client, head, pass, planOf, type Step, scripted } from "../adapters/relay/RelayCases.ts";
import { type Ended, framesOf, type Said, samples } from "../samples/index.ts";

/** The events of one response. Its provider reports `tokens` as output, or no usage. */
export const written = (
  protocol: ProtocolId,
  said: ReadonlyArray<Said>,
  { tokens, ...ended }: Ended & { readonly tokens?: number } = {},
): string => framesOf(protocol, said, { ...ended, ...(tokens === undefined ? {} : { usage: [5, tokens] }) }).join("");

/** A response that every client accepts. */
export const good = (protocol: ProtocolId): string => written(protocol, [{ text: "GOOD" }], { tokens: 40 });

/** The client's result: the provider requests, the bytes that left, and the end (`end`, the rule of a break, or none yet). */
export interface Got {
  readonly requests: number;
  readonly text: string;
  readonly end: string | undefined;
}

/** Plays attempts to the relay. Each is a response, with its own head or status 200, and its connection's end. The last one repeats. */
export const played = (
  protocol: ProtocolId,
  attempts: ReadonlyArray<ReadonlyArray<Step>>,
  { limit = 1000, seconds = 60, ...options }: Partial<RelayOptions> & { limit?: number; seconds?: number } = {},
): Effect.Effect<Got, never, StreamProcessor | Scope.Scope> =>
  Effect.gen(function* () {
    const all = attempts.map(([first, ...rest]) =>
      typeof first === "object" && "status" in first
        ? [first, ...rest]
        : [head, ...(first === undefined ? [] : [first]), ...rest],
    );
    const last = all.at(-1) ?? [];
    const { seen, timed } = scripted(...all, last, last, last, last, last);
    const transport = yield* timed;
    const { bare, limit: limited, path } = samples[protocol];
    const plan = planOf({ ...bare, ...limited(limit) }, `https://api.example${path}`);
    const opening = yield* Effect.forkScoped(
      open(plan, { head: "content", emptyIsFailure: true, ...options, transport }),
      { startImmediately: true },
    );
    const reading = yield* Effect.forkScoped(
      Fiber.join(opening).pipe(
        Effect.flatMap(({ read }) => client(read)),
        Effect.catch((error) => Effect.succeed({ text: "", end: error.rule })),
      ),
      { startImmediately: true },
    );
    yield* pass(seconds);
    if (reading.pollUnsafe() === undefined) return { requests: seen.opened, text: "", end: undefined };
    const { end, text } = yield* Fiber.join(reading);
    return { requests: seen.opened, text, end };
  });
