/**
 * Node's own fetch with limits. Its undici is bundled, and its Agent is reachable only through the global dispatcher.
 *
 * Must be imported before undici 8, whose import would install itself as the dispatcher of the global fetch.
 */
import type * as Undici from "@effect/platform-node/Undici";
import type { Ask } from "./Client.ts";

new Headers(); // makes Node load its bundled undici

const bundled: unknown = Reflect.get(globalThis, Symbol.for("undici.globalDispatcher.1"));

/** Limits of one request, for an undici Agent of either version. */
export const limits = ({ ca, http2, connectMs, headMs, bodyMs }: Ask): Undici.Agent.Options => ({
  connect: {
    ...(ca === undefined ? {} : { ca }),
    ...(connectMs === undefined ? {} : { timeout: connectMs }),
  },
  ...(http2 === undefined ? {} : { allowH2: http2 }),
  ...(headMs === undefined ? {} : { headersTimeout: headMs }),
  ...(bodyMs === undefined ? {} : { bodyTimeout: bodyMs }),
});

/** A dispatcher in Node's own types, which are those of undici 7. */
export type NodeDispatcher = NonNullable<RequestInit["dispatcher"]>;

/** A new Agent of Node's bundled undici. */
export const bundledAgent = (ask: Ask): NodeDispatcher => {
  const Agent = typeof bundled === "object" && bundled !== null ? bundled.constructor : undefined;
  if (Agent === undefined || Agent.name !== "Agent") throw new Error("Node's own dispatcher is not there");
  // Node has no types for its bundled classes, but its global RequestInit names them.
  return Reflect.construct(Agent, [limits(ask)]) as NodeDispatcher;
};

/** Uses an Agent and then destroys its sockets. */
export const using = async <D extends { readonly destroy: () => Promise<void> }, A>(
  agent: D,
  use: (agent: D) => Promise<A>,
): Promise<A> => {
  try {
    return await use(agent);
  } finally {
    await agent.destroy();
  }
};
