/**
 * Says which part of the gateway a sample of its CPU profile belongs to: that of the nearest function of ours on the stack, so
 * that what a library does for us is counted where we asked for it.
 */

/** A place of code in a profile, and what it called. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: ReadonlyArray<number>;
}

/** Parts by where their code stands; the first that fits. */
const parts: ReadonlyArray<readonly [RegExp, string]> = [
  [/src\/gateway\/proxy\/RequestBody/, "accept: the request's body"],
  [/src\/gateway\/(routing|routes|clients|config)\/|src\/gateway\/Requests/, "plan: way, client, route, options"],
  [/src\/gateway\/(log|api)\/|src\/runtime\/run\/Telemetry|TrafficMeter/, "log, metrics, traces"],
  [/src\/gateway\/attach\//, "linger: the copy for clients that come back"],
  [/src\/gateway\/upstream\/|src\/client\//, "transport: the provider's connection"],
  [/src\/gateway\//, "accept and write: the client's connection"],
  [/src\/adapters\/relay\//, "relay: hold and copy"],
  [/src\/provider\//, "decode"],
  [/src\/facts\/|src\/runtime\/attempt\//, "attempt: facts and parts"],
  [/src\/recorder\//, "record"],
  [/src\/(runtime|policy|failure)\//, "run: begin, decide, end"],
];

/** What has none of ours above it: what called us, or works behind us. */
const others: ReadonlyArray<readonly [RegExp, string]> = [
  [/node_modules\/(effect|@effect)\//, "Effect: fibers that nothing of ours stands above"],
  [/node_modules\/undici\//, "transport: the provider's connection"],
  [/^node:|^$/, "Node: sockets, HTTP, timers"],
];

const fitting = (table: ReadonlyArray<readonly [RegExp, string]>, url: string): string | undefined =>
  table.find(([where]) => where.test(url))?.[1];

/** The part of each node, by its id. */
export const partsOf = (nodes: ReadonlyArray<ProfileNode>): ReadonlyMap<number, string> => {
  const parents = new Map(nodes.flatMap(({ children = [], id }) => children.map((child) => [child, id] as const)));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const above = (id: number | undefined): string | undefined => {
    for (let at = id; at !== undefined; at = parents.get(at)) {
      const part = fitting(parts, byId.get(at)?.callFrame.url ?? "");
      if (part !== undefined) return part;
    }
    return undefined;
  };
  return new Map(
    nodes.map(({ callFrame, id }) => {
      if (callFrame.functionName === "(garbage collector)") return [id, "garbage collector"];
      return [id, above(id) ?? fitting(others, callFrame.url) ?? "what is left"];
    }),
  );
};
