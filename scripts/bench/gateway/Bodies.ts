/**
 * Measures the effect of a large request on other requests: the longest turn of the gateway's event loop while it receives a body of
 * 60 MB, and the memory it needs. Each body goes to a new process.
 */
import { Agent, request as httpRequest } from "node:http";
import type { Row } from "../Row.ts";
import { warmUp } from "./Client.ts";
import { type Contender, gateway } from "./Contenders.ts";
import type { Options } from "./Options.ts";
import { rowOf } from "./PeerRows.ts";
import { flagsOf, liveFile } from "./Settings.ts";
import { wires } from "./Wires.ts";

const bodyBytes = 60_000_000;
const mib = 1024 * 1024;

/** Conversations of about `bodyBytes` that are hard to read in different ways. */
const conversations: ReadonlyArray<readonly [name: string, one: string, last: string]> = [
  [
    "texts of 8 KB",
    JSON.stringify({ role: "user", content: 'He said: "so be it".\n'.repeat(390) }),
    '{"role":"user","content":"play=piece"}',
  ],
  [
    "one image",
    JSON.stringify({ role: "user", content: "A".repeat(bodyBytes) }),
    '{"role":"user","content":"play=piece"}',
  ],
  ["empty objects", "{}", "{}"],
];

const bodyOf = (one: string, last: string): Buffer => {
  const rest = { ...wires.chat.body(""), messages: undefined };
  const many = `${one},`.repeat(Math.max(1, Math.round(bodyBytes / (one.length + 1))));
  return Buffer.from(`${JSON.stringify(rest).slice(0, -1)},"messages":[${many}${last}]}`);
};

/** Measures each conversation. */
export const bodies = async (
  upstream: string,
  options: Options,
): Promise<{ readonly name: string; readonly rows: ReadonlyArray<Row> }> => {
  const rows: Array<Row> = [];
  for (const [name, one, last] of conversations) {
    console.error(`a body of ${bodyBytes / 1e6} MB: ${name} …`);
    const contender = await gateway(name, upstream, "memory", flagsOf(liveFile, options));
    rows.push(await measure(name, contender, bodyOf(one, last)));
    await contender.end();
  }
  return { name: `a request of ${bodyBytes / 1e6} MB`, rows };
};

const measure = async (name: string, contender: Contender, body: Buffer): Promise<Row> => {
  const ask = (question: "heap" | "rss" | "peak" | "turns" | "turnMs" | "turnCpuMs") =>
    contender.probe?.({ ask: question }) ?? Promise.resolve(Number.NaN);
  await warmUp(contender, "chat");
  await ask("heap");
  const before = await ask("rss");
  await ask("turns");
  const begun = performance.now();
  const status = await send(`${contender.url}${wires.chat.path}`, body);
  const ms = performance.now() - begun;
  const [turn, turnCpu] = [await ask("turnMs"), await ask("turnCpuMs")];
  const rss = ((await ask("peak")) - before) / mib;
  const value = `longest turn ${turn.toFixed(1)} ms, ${turnCpu.toFixed(1)} ms of CPU · ${rss.toFixed(0)} MiB more at its peak · ${(ms / 1000).toFixed(2)} s to its end · status ${status}`;
  return rowOf(name, value, { longest_turn_ms: turn, longest_turn_cpu_ms: turnCpu, rss_mib: rss, ms, status });
};

const send = (url: string, body: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { ...wires.chat.headers, "content-type": "application/json", "content-length": body.length };
    httpRequest(url, { method: "POST", agent: new Agent(), headers })
      .on("error", reject)
      .on("response", (response) => response.resume().on("end", () => resolve(response.statusCode ?? 0)))
      .end(body);
  });
