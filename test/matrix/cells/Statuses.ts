/**
 * Answers with an error status, with bodies of each protocol and of a proxy.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { samples } from "../../samples/index.ts";
import {
  type Answer,
  asked,
  type Cell,
  type Expected,
  fewTools,
  modes,
  none,
  protocols,
  recovered,
  stopped,
  storedIn,
  type ToolState,
} from "../Cell.ts";
import { withTools } from "./Healthy.ts";

/** Meaning of a status: the provider did nothing, it is unknown what it did, or the same request would fail again. */
type Meaning = "not processed" | "processed" | "for good";

/** Written by hand from section 5 of the design. Each has a body in the protocol's own error schema. */
const meanings: ReadonlyArray<readonly [status: number, meaning: Meaning]> = [
  [400, "for good"],
  [401, "for good"],
  [402, "for good"],
  [403, "for good"],
  [404, "for good"],
  [408, "processed"],
  [409, "processed"],
  [413, "for good"],
  [422, "for good"],
  [425, "processed"],
  [429, "not processed"],
  [500, "processed"],
  [501, "for good"],
  [502, "processed"],
  [503, "not processed"],
  [504, "processed"],
  [505, "for good"],
  [520, "processed"],
  [524, "processed"],
  [529, "not processed"],
  [530, "processed"],
];

const page = "<html><head><title>Bad gateway</title></head><body><h1>Upstream unavailable</h1></body></html>";

/** A proxy answers for the provider, so it is unknown what the provider did, whatever the status. */
const proxied: ReadonlyArray<readonly [name: string, answer: Answer]> = [
  ["proxy page, status 200", { status: 200, body: page }],
  ["proxy page, status 502", { status: 502, body: page }],
  ["proxy page, status 503", { status: 503, body: page }],
  ["proxy page, status 504", { status: 504, body: page }],
  ["proxy page, status 529", { status: 529, body: page }],
  ["JSON from another service, status 200", { status: 200, body: { ok: true } }],
  ["JSON from another service, status 503", { status: 503, body: { ok: false } }],
  ["empty body, status 503", { status: 503, body: "" }],
];

export const statuses = (): ReadonlyArray<Cell> =>
  protocols.flatMap((protocol) => [
    ...meanings.flatMap(([status, meaning]) =>
      cellsOf(protocol, `status ${status}`, { status, headers: soon }, proven(meaning, status, protocol)),
    ),
    ...proxied.flatMap(([name, answer]) => cellsOf(protocol, name, answer, "processed")),
    ...refreshed(protocol),
  ]);

/** An error without a code could be that of any server, so a 503 or 529 of such a protocol does not prove that nothing was done. */
const proven = (meaning: Meaning, status: number, protocol: ProtocolId): Meaning =>
  meaning === "not processed" && status !== 429 && !samples[protocol].has.codes ? "processed" : meaning;

/** Keeps waits below a second; longer waits have their own cells. */
const soon = { "retry-after-ms": "50" };

const cellsOf = (protocol: ProtocolId, name: string, answer: Answer, meaning: Meaning): ReadonlyArray<Cell> =>
  modes.flatMap((mode) =>
    [...fewTools, ...storedIn(protocol)].map((tools) => ({
      name: `${protocol}/${name}/${mode}/${tools.name}`,
      group: name,
      protocol,
      mode,
      tools,
      answers: () => [answer, withTools(tools)],
      expect: expectOf(meaning, tools),
    })),
  );

const expectOf = (meaning: Meaning, tools: ToolState): Expected => {
  if (meaning === "for good") return stopped("not_retryable");
  if (meaning === "not processed") return recovered("not_processed");
  return tools.hosted === undefined ? recovered("nothing_shown") : asked("side_effects_unprovable", []);
};

/** A 401 is retried only once, if the credentials can be refreshed. */
const refreshed = (protocol: ProtocolId): ReadonlyArray<Cell> =>
  modes.flatMap((mode): ReadonlyArray<Cell> => {
    const cell = { protocol, mode, tools: none, canRefresh: true, group: "status 401, credentials renewed" };
    return [
      {
        ...cell,
        name: `${protocol}/status 401, then well/${mode}`,
        answers: () => [{ status: 401 }, {}],
        expect: recovered("credentials_refreshed"),
      },
      {
        ...cell,
        name: `${protocol}/status 401, for ever/${mode}`,
        answers: () => [{ status: 401 }],
        expect: { ...stopped("not_retryable"), rules: ["credentials_refreshed", "not_retryable"], requests: 2 },
      },
    ];
  });
