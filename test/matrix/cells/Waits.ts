/**
 * Answers 429 and 503 with every form in which a provider can announce a delay.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { samples } from "../../samples/index.ts";
import { type Answer, asked, type Cell, type Expected, modes, none, protocols, recovered } from "../Cell.ts";

/** Maximum delay beyond the announced one on a busy machine, in milliseconds. */
const lateMs = 3_000;

interface Form {
  readonly name: string;
  readonly answer: (nowMs: number, protocol: ProtocolId) => Answer;
  readonly expect: Expected;
}

const within = (least: number, most: number): Expected =>
  recovered("not_processed", { waitMs: [least, most + lateMs] });

const header =
  (headers: (nowMs: number) => Record<string, string>): Form["answer"] =>
  (nowMs) => ({
    status: 429,
    headers: headers(nowMs),
  });

/** The next whole second that is at least a second away, for headers without fractions. */
const ahead = (nowMs: number): number => Math.ceil(nowMs / 1_000) + 1;

const forms: ReadonlyArray<Form> = [
  { name: "none", answer: header(() => ({})), expect: within(1_000, 1_000) },
  { name: "retry-after-ms", answer: header(() => ({ "retry-after-ms": "300" })), expect: within(300, 300) },
  { name: "retry-after in seconds", answer: header(() => ({ "retry-after": "1" })), expect: within(1_000, 1_000) },
  { name: "retry-after with a fraction", answer: header(() => ({ "retry-after": "0.3" })), expect: within(300, 300) },
  {
    name: "retry-after-ms and retry-after",
    answer: header(() => ({ "retry-after-ms": "200", "retry-after": "1" })),
    expect: within(200, 900),
  },
  {
    name: "retry-after as a date",
    answer: header((now) => ({ "retry-after": new Date(ahead(now) * 1_000).toUTCString() })),
    expect: within(500, 2_000),
  },
  {
    name: "retry-after as a date in the past",
    answer: header((now) => ({ "retry-after": new Date(now - 60_000).toUTCString() })),
    expect: within(0, 0),
  },
  {
    name: "retry-after as an epoch",
    answer: header((now) => ({ "retry-after": String(ahead(now)) })),
    expect: within(500, 2_000),
  },
  {
    name: "retry-after as an epoch in milliseconds",
    // Far enough ahead that a busy machine may answer late.
    answer: header((now) => ({ "retry-after": String(now + 2_000) })),
    expect: within(500, 2_000),
  },
  {
    name: "retry-after that cannot be read",
    answer: header(() => ({ "retry-after": "soon" })),
    expect: within(1_000, 1_000),
  },
  {
    name: "RetryInfo in the body",
    answer: (_now, protocol) => ({ status: 429, body: samples[protocol].rateLimit([retryInfo("0.4s")]) }),
    expect: within(400, 400),
  },
  {
    name: "retry-after, too long",
    answer: header(() => ({ "retry-after": "120" })),
    expect: asked("retry_after_too_long", []),
  },
  {
    name: "retry-after as a date, too long",
    answer: header((now) => ({ "retry-after": new Date(now + 3_600_000).toUTCString() })),
    expect: asked("retry_after_too_long", []),
  },
  {
    name: "RetryInfo in the body, too long",
    answer: (_now, protocol) => ({ status: 429, body: samples[protocol].rateLimit([retryInfo("120s")]) }),
    expect: asked("retry_after_too_long", []),
  },
  {
    name: "503 with retry-after",
    answer: () => ({ status: 503, headers: { "retry-after": "0.3" } }),
    expect: within(300, 300),
  },
  {
    name: "500 with retry-after-ms",
    answer: () => ({ status: 500, headers: { "retry-after-ms": "100" } }),
    expect: recovered("nothing_shown", { waitMs: [100, 100 + lateMs] }),
  },
];

/** Google's retry detail, which gateways pass through beside each protocol's own error. */
const retryInfo = (retryDelay: string) => ({ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay });

export const waits = (): ReadonlyArray<Cell> =>
  protocols.flatMap((protocol) =>
    modes.flatMap((mode) =>
      forms.map(({ answer, expect, name }) => ({
        name: `${protocol}/429 ${name}/${mode}`,
        group: name.startsWith("50") ? name : `429, ${name === "none" ? "no retry-after" : name}`,
        protocol,
        mode,
        tools: none,
        answers: (nowMs: number) => [answer(nowMs, protocol), {}],
        // An error without a code could be that of any server.
        expect:
          name.startsWith("503") && !samples[protocol].has.codes ? { ...expect, rules: ["nothing_shown"] } : expect,
      })),
    ),
  );
