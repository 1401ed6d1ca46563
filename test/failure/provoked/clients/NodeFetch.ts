/**
 * Node's own fetch with limits: its undici is bundled, and only its global dispatcher leads to its Agent.
 *
 * Must be imported before undici 8, whose import would make itself the dispatcher of the global fetch.
 */
import type * as Undici from "@effect/platform-node/Undici";
import type { Ask } from "./Client.ts";

new Headers(); // Node loads its undici with the first of its classes

const bundled: unknown = Reflect.get(globalThis, Symbol.for("undici.globalDispatcher.1"));

/** Limits of one request as an undici Agent of either version takes them. */
export const limits = ({ ca, http2, connectMs, headMs, bodyMs }: Ask): Undici.Agent.Options => ({
  connect: {
    ...(ca === undefined ? {} : { ca }),
    ...(connectMs === undefined ? {} : { timeout: connectMs }),
  },
  ...(http2 === undefined ? {} : { allowH2: http2 }),
  ...(headMs === undefined ? {} : { headersTimeout: headMs }),
  ...(bodyMs === undefined ? {} : { bodyTimeout: bodyMs }),
});

/** A dispatcher as Node's types know it: those of undici 7. */
export type NodeDispatcher = NonNullable<RequestInit["dispatcher"]>;

/** A fresh Agent of the undici inside Node. */
export const bundledAgent = (ask: Ask): NodeDispatcher => {
  const Agent = typeof bundled === "object" && bundled !== null ? bundled.constructor : undefined;
  if (Agent === undefined || Agent.name !== "Agent") throw new Error("Node's own dispatcher is not there");
  // Node gives its bundled classes no types; its global RequestInit names them.
  return Reflect.construct(Agent, [limits(ask)]) as NodeDispatcher;
};

/** Uses an Agent and takes its sockets down. */
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
