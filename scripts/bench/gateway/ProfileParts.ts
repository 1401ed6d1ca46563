/**
 * Assigns each sample of a CPU profile to a part of the gateway: that of the nearest function of ours on the stack, so that a library's
 * work counts for the code that called it.
 */

/** A node of a profile's call tree. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: ReadonlyArray<number>;
}

/** Parts by the path of their code. The first match counts. */
const parts: ReadonlyArray<readonly [RegExp, string]> = [
  [/src\/gateway\/proxy\/RequestBody/, "accept: the request's body"],
  [/src\/gateway\/(routing|routes|clients|config)\/|src\/gateway\/Requests/, "plan: way, client, route, options"],
  [/src\/gateway\/(log|api)\/|src\/runtime\/run\/Telemetry|TrafficMeter/, "log, metrics, traces"],
  [/src\/gateway\/attach\//, "linger: the copy for returning clients"],
  [/src\/gateway\/upstream\/|src\/client\//, "transport: the provider's connection"],
  [/src\/gateway\//, "accept and write: the client's connection"],
  [/src\/adapters\/relay\//, "relay: hold and copy"],
  [/src\/provider\//, "decode"],
  [/src\/facts\/|src\/runtime\/attempt\//, "attempt: facts and parts"],
  [/src\/recorder\//, "record"],
  [/src\/(runtime|policy|failure)\//, "run: begin, decide, end"],
];

/** Parts of samples without any function of ours on the stack. */
const others: ReadonlyArray<readonly [RegExp, string]> = [
  [/node_modules\/(effect|@effect)\//, "Effect: fibers without our code above them"],
  [/node_modules\/undici\//, "transport: the provider's connection"],
  [/^node:|^$/, "Node: sockets, HTTP, timers"],
];

const findPart = (table: ReadonlyArray<readonly [RegExp, string]>, url: string): string | undefined =>
  table.find(([where]) => where.test(url))?.[1];

/** Maps each node's id to its part. */
export const partsOf = (nodes: ReadonlyArray<ProfileNode>): ReadonlyMap<number, string> => {
  const parents = new Map(nodes.flatMap(({ children = [], id }) => children.map((child) => [child, id] as const)));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const above = (id: number | undefined): string | undefined => {
    for (let at = id; at !== undefined; at = parents.get(at)) {
      const part = findPart(parts, byId.get(at)?.callFrame.url ?? "");
      if (part !== undefined) return part;
    }
    return undefined;
  };
  return new Map(
    nodes.map(({ callFrame, id }) => {
      if (callFrame.functionName === "(garbage collector)") return [id, "garbage collector"];
      return [id, above(id) ?? findPart(others, callFrame.url) ?? "other"];
    }),
  );
};
