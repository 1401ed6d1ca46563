/**
 * Lists the path of a healthy stream through the gateway, from the accepted connection to the access line, as functions in order.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { code, table } from "../tables/Markdown.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** One function of the path. */
export interface Step {
  readonly stage: "accept" | "admit" | "open" | "decode" | "fold" | "hand over" | "close";
  /** The source, as a path from the root. */
  readonly file: string;
  readonly name: string;
  readonly what: string;
}

const step = (stage: Step["stage"], file: string, name: string, what: string): Step => ({
  ...{ stage, file: `src/${file}.ts`, name, what },
});

/** The path, in the order of its calls. */
export const steps: ReadonlyArray<Step> = [
  step("accept", "gateway/OpenPort", "handleRequest", "Node has read the head of a request."),
  step("accept", "gateway/Requests", "take", "A fiber serves the request until its response has ended."),
  step("admit", "gateway/Requests", "serveRequest", "Checks the request, and refuses it or routes it."),
  step("admit", "gateway/RequestHead", "headOf", "Decides about a head that the connection has not sent before."),
  step("admit", "gateway/routing/Admission", "admit", "Then checks token, Host and site."),
  step("admit", "gateway/routing/Way", "wayOf", "Then chooses the upstream by path and headers."),
  step("admit", "gateway/proxy/RequestBody", "read", "Reads the body into counted memory."),
  step("admit", "adapters/relay/RelayPlan", "recogniseBody", "Recognises protocol, model and tools."),
  step("admit", "gateway/routes/Routing", "routingOf", "Chooses the routes and their transports."),
  step("admit", "gateway/clients/Manner", "mannerOf", "Looks up the treatment of the client."),
  step("open", "gateway/proxy/RelayHandler", "relay", "Connects the run with the client."),
  step("open", "adapters/relay/RelayBeginning", "begin", "Builds the options of the run."),
  step("open", "runtime/StreamProcessor", "stream", "Begins the run, and records its start."),
  step("open", "runtime/attempt/Attempt", "start", "Starts the attempt and its clocks."),
  step("open", "gateway/upstream/UpstreamExchange", "dispatch", "Sends the request to the provider."),
  step("decode", "client/connection/Exchange", "onResponseData", "Bytes of the provider arrive."),
  step("decode", "adapters/relay/RelaySource", "poll", "Takes the bytes that have arrived."),
  step("decode", "adapters/relay/RelayFrames", "push", "Splits the bytes into events."),
  step("decode", "provider/stream/Decoder", "push", "Says what each event proves."),
  step("fold", "runtime/attempt/Attempt", "arrive", "Resets the clocks and looks for errors and the marker."),
  step("fold", "runtime/attempt/Reveal", "pass", "Holds what must not be shown yet."),
  step("fold", "facts/Facts", "passed", "Counts the parts as decoded and as shown."),
  step("hand over", "runtime/attempt/Handoff", "give", "Passes the parts to the reader that waits."),
  step("hand over", "adapters/relay/RelayCopy", "accept", "Takes the bytes of the parts."),
  step("hand over", "gateway/proxy/ClientResponse", "passOn", "Writes the bytes to the client."),
  step("close", "runtime/attempt/Attempt", "decide", "The source has ended, and the attempt is frozen."),
  step("close", "runtime/recovery/Recovery", "settle", "Completes a whole response without a fiber."),
  step("close", "runtime/run/Run", "finishThen", "Records the end of the run."),
  step("close", "runtime/recovery/Ending", "emitCompletion", "Ends the stream of the run."),
  step("close", "gateway/proxy/ClientResponse", "end", "Ends the response."),
  step("close", "gateway/Requests", "recordAccess", "Counts the request and writes its access line."),
];

/** Returns the line of a function in its source; undefined if the source does not define it. */
export const lineOf = ({ file, name }: Pick<Step, "file" | "name">): number | undefined => {
  const defined = new RegExp(
    String.raw`^(?: *(?:export )?const ${name} =|  (?:override |readonly )*(?:get )?${name}(?:<.*>)?\()`,
  );
  const at = readFileSync(`${root}/${file}`, "utf8")
    .split("\n")
    .findIndex((line) => defined.test(line));
  return at === -1 ? undefined : at + 1;
};

/** Returns the path as a Markdown table, without line numbers, because those change with every edit. */
export const followTable = (): string =>
  table(
    ["stage", "function", "file", "what happens"],
    steps.map(({ file, name, stage, what }) => [stage, code(name), code(file), what]),
  );
