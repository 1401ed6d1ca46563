/** Judges a world from outside only: bytes at clients, requests at the provider, what stayed open, and the records. */
import type { Frame } from "../../gateway/clients/StandIn.ts";
import { samples } from "../../samples/index.ts";
import { textAt } from "../../samples/Json.ts";
import { framesIn, isNoOp } from "./Frames.ts";
import type { Asked, Call, History, Read } from "./History.ts";
import { documentOf, pageTitle, textOf } from "./Provider.ts";

/** The laws. */
export const laws = {
  W1: "a client gets a prefix of one answer of the provider: nothing twice, nothing spliced, nothing made up",
  W2: "a response that ends as whole was finished by the provider, and has all of it",
  W3: "a response that is not whole is marked broken: by an error event, an error status or a broken body",
  W4: "a turn costs no more paid requests than its budget, and nothing spins: connects, requests and log lines are bounded",
  W5: "every response ends within the time that clocks, budget and outages allow, and time goes on",
  W6: "nothing of the gateway stays open after its end",
  W7: "records say what clients and the provider saw",
  W8: "a response within budget is saved: a client that stays gets it whole",
} as const;
export type Law = keyof typeof laws;

/** A law that was broken, and how. */
export interface Violation {
  readonly law: Law;
  readonly found: string;
}

/** Maximum requests that the provider may have begun to process for one request of a client: the first and three retries. */
const paidMax = 4;

/** Maximum refused requests of one request of a client, besides the paid ones. */
const refusedMax = 4;

/** Judges what was seen. */
export const judge = (history: History): ReadonlyArray<Violation> => [
  ...history.calls.flatMap((call) => judgeCall(call, history)),
  ...history.world.turns.flatMap((_, turn) => [...judgeCost(turn, history), ...judgeRepeats(turn, history)]),
  ...judgeSecrets(history),
  ...judgeEnd(history),
  ...judgeRecords(history),
  ...judgeReads(history),
];

const violation = (law: Law, found: string): Violation => ({ law, found });

/** What a client of the protocol reads from a body. */
interface Reading {
  /** The data of its events, without those that only keep it waiting. */
  readonly data: ReadonlyArray<string>;
  readonly isWhole: boolean;
  readonly problem: string | undefined;
}

const readingOf = (call: Call, { world }: History): Reading => {
  const turn = world.turns[call.turn];
  const { take } = samples[turn?.protocol ?? "openai-chat"];
  const frames = framesIn(Buffer.from(call.body, "latin1").toString()).filter((frame) => !isNoOp(frame));
  const before: Array<Frame> = [];
  const data: Array<string> = [];
  let isWhole = false;
  let problem: string | undefined;
  for (const frame of frames) {
    const taken = take(frame, before);
    before.push(frame);
    isWhole ||= taken.whole === true;
    if (taken.problem === undefined) data.push(frame.data);
    else problem ??= `${taken.problem.code} ${taken.problem.message}`;
  }
  return { data, isWhole, problem };
};

const dataOf = ({ frames }: Asked): ReadonlyArray<string> =>
  framesIn(frames.join(""))
    .filter((frame) => !isNoOp(frame))
    .map(({ data }) => data);

const isPrefix = (short: ReadonlyArray<string>, long: ReadonlyArray<string>): boolean =>
  short.every((it, at) => it === long[at] || (at === 0 && isOwnStart(it)));

/** The gateway's own first event of a message, after which only an error follows. */
const isOwnStart = (data: string): boolean => /^\{"type":"message_start","message":\{"id":"gw_/.test(data);

const judgeCall = (call: Call, history: History): ReadonlyArray<Violation> => {
  const name = `call ${call.turn}.${call.number}`;
  if (call.end === undefined) return [violation("W5", `${name} did not end`)];
  const found: Array<Violation> = [];
  const isLeft = call.end.how === "left";
  if (call.status === 200 && history.world.turns[call.turn]?.isDocument === true) {
    const isWhole = call.body === documentOf(call.turn);
    if (call.end.how === "whole" && !isWhole)
      found.push(violation("W1", `${name} got another document: ${call.body.slice(0, 200)}`));
  } else if (call.status === 200) {
    const reading = readingOf(call, history);
    const answers = history.asked.filter(({ turn }) => turn === call.turn);
    if (answers.some(({ quote }) => quote !== undefined)) return [...found, ...judgeContinued(call, reading, history)];
    const sources = answers.filter((it) => isPrefix(reading.data, dataOf(it)));
    if (reading.data.length > 0 && sources.length === 0)
      found.push(
        violation(
          "W1",
          `${name} got events that are no prefix of one answer: ${reading.data.join(" | ").slice(0, 300)}`,
        ),
      );
    const endsWell = call.end.how === "whole" && reading.problem === undefined;
    const whole = sources.find((it) => isWholeFor(it, reading.data.length, history.world.reveal === "on_complete"));
    if (endsWell && reading.data.length === 0) found.push(violation("W3", `${name} ended clean without an event`));
    else if (endsWell && whole === undefined)
      found.push(violation(reading.isWhole ? "W2" : "W3", `${name} ended clean, but no answer was whole`));
  } else if (/invalid_request/.test(call.body) && call.body.includes("stream-recovery gateway")) {
    found.push(
      violation("W3", `${name} got a failure of the provider as an invalid request: ${call.body.slice(0, 200)}`),
    );
  }
  const isGood = call.end.how === "whole" || call.end.how === "closed";
  if (
    !isLeft &&
    isSaved(call, history) &&
    !(call.status === 200 && isGood && readingOf(call, history).problem === undefined)
  )
    found.push(
      violation(
        "W8",
        `${name} could be saved, but ended with ${call.status} ${call.end.how} ${readingOf(call, history).problem ?? ""}`,
      ),
    );
  return found;
};

/** The words of a continued text follow each other, all of one answer, and none comes twice. */
const judgeContinued = (call: Call, reading: Reading, history: History): ReadonlyArray<Violation> => {
  const name = `call ${call.turn}.${call.number}`;
  const { read } = samples[history.world.turns[call.turn]?.protocol ?? "openai-chat"];
  const events: ReadonlyArray<unknown> = framesIn(Buffer.from(call.body, "latin1").toString()).map(({ json }) => json);
  const text = events.map((event) => read(event).text).join("");
  const own = history.asked.filter(({ turn }) => turn === call.turn);
  const wholes = own.flatMap(({ answer, number }, at) =>
    answer.kind === "stream" && own[at]?.quote === undefined
      ? [textOf(call.turn, answer.isSame ? 0 : number, answer.words)]
      : [],
  );
  // A model that was asked to continue may also have been asked for the first time by another request.
  const whole = wholes.find((it) => it.startsWith(text));
  if (whole === undefined)
    return [violation("W1", `${name} was continued to a text that no answer has: ${text.slice(-300)}`)];
  if (call.end?.how !== "whole" || reading.problem !== undefined) return [];
  if (whole !== text)
    return [violation("W2", `${name} was continued and ended clean without its end: ${text.slice(-200)}`)];
  const copies = events.map((event) => textAt(event, "text")).filter((it) => it !== undefined && it.length > 100);
  const other = copies.find((it) => it !== text);
  return other === undefined
    ? []
    : [violation("W2", `${name} ended with a copy of ${other.length} of ${text.length} characters`)];
};

/** True if an answer counts as whole for a client that got this many of its events. */
const isWholeFor = (asked: Asked, events: number, isHidden: boolean): boolean => {
  const { answer, frames, written } = asked;
  if (answer.kind !== "stream" || isCutCall(asked)) return false;
  // A server that never sends its last event is passed on as it is, unless the response can still be asked for again.
  const hasStop = frames.some((frame) => frame.includes('"message_stop"'));
  if (hasStop && !isHidden && written >= frames.length - 1) return events >= dataOf(asked).length - 1;
  return dataOf(asked).length === events && written === frames.length;
};

/** True if the arguments of the last call are no JSON. */
const isCutCall = ({ answer, frames }: Asked): boolean =>
  answer.kind === "stream" && answer.says === "cut_call" && frames.some((frame) => frame.includes("cmd"));

/** Statuses with which a provider says that it did not process a request. */
const unprocessed = [429];

/** True if every failure of a call is one that the gateway recovers, within its budget. */
const isSaved = (call: Call, history: History): boolean => {
  const { asked, world } = history;
  const turn = world.turns[call.turn];
  if (turn === undefined || call.number > 0 || turn.client.bytesPerSecond !== null || world.stops.length > 0)
    return false;
  const away = history.away.get(turn.host) ?? [];
  const latency = world.hosts.find(({ name }) => name === turn.host)?.way.latencyMs ?? 0;
  const ended = call.end?.at ?? 0;
  const isReached = asked.some((it) => it.host === turn.host && it.headAt !== undefined && it.headAt < call.at);
  // A request of a document waits for its path only as long as its client would.
  if (away.length > 0 && (!isReached || turn.isDocument)) return false;
  if (away.reduce((sum, { ms }) => sum + ms, 0) > 500_000) return false;
  const own = asked.filter((it) => it.turn === call.turn && it.at <= ended);
  let [refused, paid, stalls, waits] = [0, 0, 0, 0];
  for (const { answer, at, over } of own) {
    const end = over?.at ?? ended;
    if (away.some((it) => it.at <= end + latency && at - 2 * latency <= it.at + it.ms)) return false;
    if (answer.kind === "silent") stalls += 1;
    else if (answer.kind === "no_head") paid += 1;
    else if (answer.kind === "refusal") {
      if (![...unprocessed, 500, 502, 503, 529].includes(answer.status)) return false;
      if (unprocessed.includes(answer.status)) refused += 1;
      else paid += 1;
      waits += answer.retryAfterS ?? 0;
    } else if (answer.kind === "page") return false;
    else if (!turn.isDocument && answer.end !== "whole" && answer.end !== "open") {
      const isHidden = world.reveal === "on_complete" && ["reset", "cut", "clean"].includes(answer.end);
      if (!isHidden || answer.says !== "text" || answer.isSame) return false;
      paid += 1;
    } else if (["cut_call", "thoughts", "blank"].includes(answer.says)) return false;
  }
  // A stall lasts longer than the time that a budget has after its first failure.
  if (stalls > 1 || (stalls === 1 && own[0]?.answer.kind !== "silent")) return false;
  return refused <= 3 && paid + stalls <= 3 && waits <= 30;
};

/** True if an answer was written to its finish. */
const isFinished = ({ answer, frames, headAt, over, written }: Asked, isDocument: boolean): boolean => {
  if (answer.kind !== "stream" || headAt === undefined) return false;
  if (isDocument) return true;
  if (!["text", "call", "drift"].includes(answer.says)) return false;
  return written === frames.length && (answer.end === "open" || (answer.end === "whole" && over?.by === "script"));
};

/** True if a continuation broke before it had repeated the quoted end. */
const endsBeforeSeam = ({ answer, frames, over, quote = "", written }: Asked): boolean =>
  answer.kind === "stream" &&
  over?.by === "script" &&
  written < frames.length &&
  frames.slice(0, written).join("").length < quote.length;

/** True if a client that repeats a request after a broken connection got an error event in place of one. */
const isToldTooEarly = (call: Call, own: ReadonlyArray<Asked>, history: History): boolean => {
  const { world } = history;
  const client = world.turns[call.turn]?.client;
  const [first] = own;
  if (client === undefined || client.repeats === 0 || call.number > 0 || world.reveal !== null) return false;
  if (!client.agent.startsWith("OpenAI/") || own.length !== 1 || first?.answer.kind !== "stream") return false;
  const isCut =
    ["cut", "reset"].includes(first.answer.end) && first.over?.by === "script" && first.answer.says === "text";
  return isCut && first.written > 3 && call.status === 200 && readingOf(call, history).problem !== undefined;
};

/** opencode 2 asks again after a broken connection and keeps the text that it has shown, so it has to be told of a break. */
const isCutTooEarly = (call: Call, history: History): boolean => {
  const client = history.world.turns[call.turn]?.client;
  if (client?.agent.startsWith("opencode/") !== true || call.status !== 200 || history.world.reveal !== null)
    return false;
  const { data, isWhole, problem } = readingOf(call, history);
  const isShown = data.some((it) => /r\d+w\d/.test(it));
  return isShown && !isWhole && problem === undefined && (call.end?.how === "ended" || call.end?.how === "reset");
};

/** True if text had arrived at the gateway. */
const hasText = ({ frames, written }: Asked): boolean => /r\d+w\d/.test(frames.slice(0, written).join(""));

/** A whole answer is paid for once, and an answer that only repeats the last one ends the attempts. */
const judgeRepeats = (turn: number, history: History): ReadonlyArray<Violation> => {
  const { asked, away, calls, world } = history;
  const found: Array<Violation> = [];
  const given = world.turns[turn];
  const isAway = (away.get(given?.host ?? "") ?? []).length > 0;
  if (isAway || world.stops.length > 0 || given === undefined) return [];
  for (const call of calls.filter((it) => it.turn === turn)) {
    const end = call.end?.at ?? Number.POSITIVE_INFINITY;
    const own = asked.filter((it) => it.turn === turn && it.at >= call.at && it.at < end);
    const whole = own.slice(0, -1).find((it) => isFinished(it, given.isDocument));
    if (whole !== undefined)
      found.push(violation("W4", `answer ${turn}.${whole.number} was whole, and it was asked again`));
    const early = own.filter((it) => it.quote !== undefined && endsBeforeSeam(it));
    if (early.length > 2)
      found.push(
        violation("W4", `turn ${turn} was continued ${early.length} times, each time to a break before its seam`),
      );
    if (isToldTooEarly(call, own, history))
      found.push(
        violation("W8", `call ${turn}.${call.number} was told of its first break, although its client asks again`),
      );
    if (isCutTooEarly(call, history))
      found.push(
        violation(
          "W1",
          `call ${call.turn}.${call.number} was cut, and its client shows the text of its next request after it`,
        ),
      );
    const isFutile = (it: Asked | undefined): boolean =>
      it?.answer.kind === "stream" &&
      it.quote === undefined &&
      it.answer.isSame &&
      hasText(it) &&
      it.answer.says === "text" &&
      it.over?.by === "script" &&
      it.answer.end !== "whole";
    if (isFutile(own[0]) && isFutile(own[1]) && own.length > 2)
      found.push(violation("W4", `turn ${turn} broke twice at the same words and was asked ${own.length} times`));
    const first = own[0];
    const isEmpty =
      first?.answer.kind === "stream" &&
      ["thoughts", "blank"].includes(first.answer.says) &&
      first.answer.end === "whole" &&
      first.over?.by === "script";
    // Live, white space and thoughts may have been shown; and a completion may be empty by right.
    const isHidden = world.reveal === "on_complete" && !given.isDocument && given.protocol !== "openai-completions";
    if (isEmpty && isHidden && own.length === 1 && call.end?.how === "whole")
      found.push(violation("W8", `turn ${turn} got an empty answer, and it was not asked again`));
  }
  return found;
};

const judgeCost = (turn: number, { asked, calls, world }: History): ReadonlyArray<Violation> => {
  const found: Array<Violation> = [];
  const own = asked.filter((it) => it.turn === turn);
  const count = calls.filter((it) => it.turn === turn).length;
  const refused = own.filter(({ answer }) => answer.kind === "refusal" || answer.kind === "page").length;
  const paid = own.length - refused;
  if (paid > paidMax + count - 1) found.push(violation("W4", `turn ${turn} cost ${paid} requests for ${count} calls`));
  if (refused > refusedMax * count + 3)
    found.push(violation("W4", `turn ${turn} was refused ${refused} times for ${count} calls`));
  const first = calls.find((it) => it.turn === turn)?.at ?? 0;
  const early = own.find(({ at }) => at < first);
  if (early !== undefined) found.push(violation("W4", `turn ${turn} was asked before its client called`));
  const host = world.hosts.find(({ name }) => name === world.turns[turn]?.host);
  const strange = own.find((it) => it.host !== host?.name);
  if (strange !== undefined) found.push(violation("W4", `turn ${turn} was asked at ${strange.host}`));
  return found;
};

/** Maximum connects to a host in a minute: probes of a path, and those of each turn. */
const connectsMax = 120;

/** A read lists the newest runs first, and no later read knows less. */
const judgeReads = ({ reads, world }: History): ReadonlyArray<Violation> => {
  const found: Array<Violation> = [];
  const seen = new Map<string, Read["runs"][number]>();
  for (const { at, runs } of reads) {
    const oldest = runs.at(-1)?.started_at ?? Number.NEGATIVE_INFINITY;
    const isSorted = runs.every((it, n) => n === 0 || (runs[n - 1]?.started_at ?? 0) >= it.started_at);
    if (!isSorted && world.jumps.length === 0)
      found.push(violation("W7", `a read at ${Math.round(at)} is not sorted by time`));
    const lost = [...seen.values()].find(
      (it) => it.started_at > oldest && runs.length > 0 && !runs.some(({ run_id }) => run_id === it.run_id),
    );
    if (lost !== undefined && world.jumps.length === 0)
      found.push(violation("W7", `a read at ${Math.round(at)} lost run ${lost.run_id}`));
    for (const run of runs) {
      if ((seen.get(run.run_id)?.attempts ?? 0) > run.attempts)
        found.push(violation("W7", `a read at ${Math.round(at)} lost an attempt of run ${run.run_id}`));
      seen.set(run.run_id, run);
    }
  }
  return found;
};

/** The title of a page belongs to the provider's user, and may be in no record and no log. */
const judgeSecrets = ({ lines, records, stored }: History): ReadonlyArray<Violation> => [
  ...(JSON.stringify(records).includes(pageTitle) ? [violation("W7", "a record has the title of a page")] : []),
  ...(stored.includes(pageTitle) ? [violation("W7", "the store has the title of a page")] : []),
  ...(lines.some((line) => line.includes(pageTitle)) ? [violation("W7", "the log has the title of a page")] : []),
];

const judgeEnd = ({ calls, connects, left, lines, ms, stuck, world }: History): ReadonlyArray<Violation> => {
  const found: Array<Violation> = [];
  if (stuck !== undefined) found.push(violation("W5", stuck));
  if (left.sockets > 0) found.push(violation("W6", `${left.sockets} sockets are open after the end`));
  if (left.timers > 0) found.push(violation("W6", `${left.timers} timers are left after the end`));
  for (const [host, times] of connects) {
    const busiest = Math.max(0, ...times.map((at) => times.filter((it) => at <= it && it < at + 60_000).length));
    if (busiest > connectsMax) found.push(violation("W4", `${busiest} connects to ${host} in a minute`));
  }
  const leaving = calls.filter(({ end }) => end?.how === "left").length;
  const cancelled = lines.filter((line) => line.includes(" outcome=cancelled ")).length;
  if (cancelled > leaving)
    found.push(violation("W7", `${cancelled} responses are logged as cancelled, and ${leaving} clients left`));
  const linesMax = 40 * (world.turns.length + 1) + ms / 10_000;
  if (lines.length > linesMax) found.push(violation("W4", `${lines.length} lines of log`));
  return found;
};

const judgeRecords = (history: History): ReadonlyArray<Violation> => {
  const { asked, calls, records, stuck } = history;
  if (stuck !== undefined) return [];
  const found: Array<Violation> = [];
  for (const record of records)
    if (record.state !== "ended")
      found.push(violation("W7", `run ${record.run_id} is ${record.state} after all responses`));
  for (const call of calls) {
    const runId = call.headers.get("x-recovery-run");
    const record = records.find((it) => it.run_id === runId);
    if (runId !== undefined && record === undefined) found.push(violation("W7", `no record of run ${runId}`));
  }
  const attempts =
    records.flatMap((it) => it.attempts).length + records.reduce((sum, it) => sum + it.attempts_omitted, 0);
  if (attempts < asked.length)
    found.push(violation("W7", `${asked.length} requests were sent, but ${attempts} are on record`));
  const completed = records.filter((it) => it.end?.state === "completed").length;
  const isGiven = (call: Call): boolean =>
    call.status === 200 && call.end?.how === "whole" && readingOf(call, history).problem === undefined;
  const whole = calls.filter(isGiven).length;
  const isText = ({ answer, over }: Asked): boolean =>
    answer.kind === "stream" && answer.end === "whole" && answer.says === "text" && over?.by === "script";
  if (whole > 0 && completed === 0 && asked.some(isText))
    found.push(violation("W7", "responses were whole, and no run is on record as completed"));
  return found;
};
