/**
 * Kills the process of a gateway (SIGKILL) while runs go on without their clients, and starts it again on the same store: each run has
 * one end on record, nobody attaches to it, and nothing is asked for again until its client does.
 */
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { AttachableRun } from "../../../src/gateway/api/Traffic.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { folder, runsIn, serve, urls } from "../../cli/ServeProcess.ts";
import { polled } from "../../Polling.ts";
import { bodies, paths, protocols, send } from "../GatewayCases.ts";
import { again, attach, clientOf, eventsOf, type Provider, providerOf, whole } from "./AttachCases.ts";

const headers = { "content-type": "application/json", authorization: "Bearer sk-one" };

/** A client that was killed behind an event of its response. */
interface Lost {
  readonly protocol: (typeof protocols)[number];
  readonly body: string;
  readonly at: number;
  readonly events: ReadonlyArray<Buffer>;
}

/** A client of each protocol behind each event: in front of the first one, and with the end behind the last one, too. */
const lost: ReadonlyArray<Lost> = protocols.flatMap((protocol) => {
  const events = eventsOf(protocol);
  return Array.from({ length: events.length + 2 }, (_, at) => {
    const body = JSON.stringify({ ...bodies[protocol], word: at });
    return { protocol, body, at, events };
  });
});

const ask = (url: string, { body, protocol }: Lost, more = {}) =>
  clientOf(`${url}${paths[protocol]}`, { body, headers: { ...headers, ...more } });

/** The runs that may be attached to, as the gateway's API tells them, once they are as wanted. */
const streams = (url: string, isWanted: (runs: ReadonlyArray<AttachableRun>) => boolean) =>
  polled(
    Effect.map(
      Effect.promise(() => send(`${url}/recovery/api/streams`)),
      ({ text }) => {
        const runs: ReadonlyArray<AttachableRun> = JSON.parse(text).streams;
        return isWanted(runs) ? runs : undefined;
      },
    ),
  );

/** Asks for each response in turn, sends what its client is to have, and kills that client. */
const leaveAll = (url: string, provider: Provider) =>
  Effect.gen(function* () {
    for (const [index, one] of lost.entries()) {
      const client = ask(url, one);
      const sent = yield* provider.nth(index);
      if (one.at > 0) sent.send(one.at);
      if (one.at > one.events.length) sent.response.end();
      client.leave();
      yield* whole(client);
    }
    const state = ({ at, events }: Lost) => (at > events.length ? "ended" : "left");
    const runs = yield* streams(url, (found) => lost.every((one, index) => found[index]?.state === state(one)));
    return runs.map(({ run_id }) => run_id);
  });

/** The runs of a store, once each has an end. */
const ended = (file: string) =>
  polled(
    Effect.map(runsIn(file), (runs) =>
      runs.every(({ state }) => state === "ended") ? new Map(runs.map((run) => [run.run_id, run])) : undefined,
    ),
  );

const completed = "completed after 1 attempt, 0 incidents, 0 questions: of nothing";
const interrupted = "stopped process_lost after 1 attempt, 0 incidents, 0 questions: of nothing";

/** What is on record of a run. */
const told = (run: RunRecord | undefined): string => {
  if (run?.end === undefined) return "no end";
  const { attempts, end, incidents, questions } = run;
  const reason = end.state === "completed" ? "" : ` ${end.reason}`;
  const counted = `${incidents.length} incidents, ${questions.length} questions`;
  return `${end.state}${reason} after ${attempts.length} attempt, ${counted}: of ${incidents[0]?.failure.kind ?? "nothing"}`;
};

describe("The process of a gateway that is killed while runs go on without their clients", () => {
  it.live("records one end for each run, serves none by its id, and repeats none by itself", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db");
      const provider = yield* providerOf((nth) => lost[nth % lost.length]?.events ?? []);
      const args = [
        "--port",
        "0",
        "--db",
        file,
        "--linger-ms",
        "600000",
        "--linger-max-ms",
        "600000",
        ...urls(provider.at),
      ];
      const first = yield* serve(args);
      const names = yield* leaveAll(first.url, provider);
      // Records are written behind: the last moments of a killed process may be missing.
      const completedRuns = lost.filter(({ at, events }) => at > events.length).length;
      yield* polled(
        Effect.map(runsIn(file), (runs) =>
          runs.length === lost.length && runs.filter(({ state }) => state === "ended").length === completedRuns
            ? true
            : undefined,
        ),
      );
      first.child.kill("SIGKILL");
      yield* Effect.promise(() => first.exited);

      const second = yield* serve(args);
      const runs = yield* ended(file);
      assert.strictEqual(runs.size, lost.length);
      for (const [index, one] of lost.entries()) {
        const note = `${one.protocol}, event ${one.at}`;
        assert.strictEqual(
          told(runs.get(names[index] ?? "")),
          one.at > one.events.length ? completed : interrupted,
          note,
        );
        const named = yield* whole(attach(second, names[index] ?? "", headers));
        assert.strictEqual(named.head?.statusCode, 404, note);
        assert.strictEqual(named.head?.headers["x-recovery-refused"], "stream");
        assert.include(named.body.toString(), "has restarted", note);
      }
      assert.lengthOf(provider.asked, lost.length, "nothing is paid for behind its client's back");

      for (const [index, one] of lost.entries()) {
        const client = ask(second.url, one, again);
        (yield* provider.nth(lost.length + index)).finish();
        const got = yield* whole(client);
        assert.isTrue(got.body.equals(Buffer.concat(one.events)), `${one.protocol}, event ${one.at}`);
        assert.isUndefined(got.head?.headers["x-recovery-attached"]);
      }
      const later = yield* polled(
        Effect.map(ended(file), (found) => (found.size === 2 * lost.length ? found : undefined)),
      );
      for (const name of names) assert.deepStrictEqual(later.get(name), runs.get(name), "an end is not decided again");
    }),
  );
});
