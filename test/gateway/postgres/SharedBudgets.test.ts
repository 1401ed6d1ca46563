/** What gateways over one database spend together: the retries of a group. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { Answers } from "../../../src/testing/index.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, type Fronted, front, type Got, post } from "../GatewayCases.ts";

const whole = Buffer.concat(
  Answers.render("openai-chat", 1, { content: [{ text: 2 }] }).map(({ frame }) => Buffer.from(frame)),
);

/** A provider that breaks the first request of each user, and answers the next one. */
const breakingOnce = Effect.suspend(() => {
  const seen = new Set<string>();
  return serverOf(async (request, response) => {
    const chunks: Array<Buffer> = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString();
    if (seen.has(body)) {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(whole);
      return;
    }
    seen.add(body);
    response.destroy();
  });
});

const ask = ({ url }: Pick<Fronted, "url">, user: string, group: string): Effect.Effect<Got> =>
  post(url, "openai-chat", {
    body: JSON.stringify({ ...bodies["openai-chat"], user }),
    headers: { "content-type": "application/json", authorization: "Bearer k1", "x-recovery-group": group },
  });

describe("two gateways over one database", () => {
  it.live("let the runs of one group share their retries, whichever of them drives them", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const upstream = yield* breakingOnce;
      const program = { db, budget: { max_group_retries: 1 } } as const;
      const [a, b] = [yield* front(upstream, program), yield* front(upstream, program)];
      const statuses = [
        (yield* ask(a, "first", "tree")).status,
        (yield* ask(b, "second", "tree")).status,
        (yield* ask(b, "third", "other")).status,
        (yield* ask(a, "fourth", "other")).status,
      ];
      assert.deepStrictEqual(statuses, [200, 400, 200, 400]);
      const spent = yield* a.until((runs) => {
        const ended = runs.filter(({ end }) => end !== undefined);
        if (ended.length < statuses.length) return undefined;
        return ended.filter(({ end }) => end?.reason === "budget_exhausted").map(({ group }) => group);
      });
      assert.deepStrictEqual(spent, ["other", "tree"]);
    }).pipe(Effect.scoped),
  );
});
