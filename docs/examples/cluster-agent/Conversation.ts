/**
 * A conversation as an entity of a cluster: one node owns it at a time, and its state is a row of PostgreSQL.
 *
 * The cluster keeps what is said until it is answered, so a turn whose node dies begins again at another node. The row and the
 * record of the run say what has been done by then: no response that has come is paid for twice, and no tool runs twice.
 */
import { randomUUID } from "node:crypto";
import { Config, Effect, Redacted, Schema, Stream } from "effect";
import { ClusterSchema, Entity } from "effect/cluster";
import { Rpc } from "effect/rpc";
import { SqlClient } from "effect/sql";
import {
  type AttemptContext,
  CallOutcomes,
  CrashRecovery,
  type ReadyCall,
  RunRecorder,
  StreamProcessor,
} from "effect-stream-recovery";
import { ProviderClient } from "effect-stream-recovery/client";
import { AnthropicMessages, Continuation } from "effect-stream-recovery/provider";
import { create, Seats } from "./Seats.ts";

const { protocol } = AnthropicMessages;

/** The turn has ended without an answer. */
class TurnFailed extends Schema.TaggedError<TurnFailed>()("TurnFailed", {
  reason: Schema.Literal("interrupted"),
  message: Schema.String,
}) {}

/** Says something. The same turn again is the same call: the cluster gives the answer that it has kept. */
const Say = Rpc.make("Say", {
  payload: { turn: Schema.String, text: Schema.String },
  primaryKey: ({ turn }) => turn,
  success: Schema.String,
  error: TurnFailed,
}).annotate(ClusterSchema.Persisted, true);

/** A conversation. Its entity id is its name. */
export const Conversation = Entity.make("Conversation", [Say]);

const State = Schema.Struct({
  /** The next request. */
  body: Schema.Record(Schema.String, Schema.Unknown),
  /** The newest turn. */
  turn: Schema.String,
  /** The run that asks for the response to `body`. */
  run: Schema.optionalKey(Schema.String),
  /** The response, once it has come whole, and its words. */
  response: Schema.optionalKey(Schema.Struct({ received: Continuation.Received, said: Schema.String })),
});
type State = typeof State.Type;

const StateJson = Schema.fromJsonString(State);
const decode = Schema.decodeUnknownEffect(StateJson);
const encode = Schema.encodeEffect(StateJson);

/** The row of a conversation. A node that was thought dead and wakes up finds another version, and saves nothing. */
const rowOf = Effect.fn("Conversation.rowOf")(function* (id: string, opening: State) {
  const sql = yield* SqlClient.SqlClient;
  yield* create(sql`CREATE TABLE IF NOT EXISTS conversations (id text PRIMARY KEY, version int, state text)`);
  yield* sql`INSERT INTO conversations VALUES (${id}, 0, ${yield* encode(opening)}) ON CONFLICT DO NOTHING`;
  const [row] = yield* sql`SELECT version, state FROM conversations WHERE id = ${id}`;
  let version = Number(row?.version);
  const save = Effect.fn("Conversation.save")(function* (state: State) {
    const saved = yield* sql`UPDATE conversations SET version = ${version + 1}, state = ${yield* encode(state)}
      WHERE id = ${id} AND version = ${version} RETURNING id`;
    if (saved.length === 0) return yield* Effect.die(new Error(`conversation ${id} has another owner`));
    version += 1;
    return state;
  });
  return { state: yield* decode(row?.state), save };
});

/** Waits until the node that began a run is known to be gone. `again`: no response of it was saved, so the model is asked anew. */
const wayOn = Effect.fn("Conversation.wayOn")(function* (run: string) {
  const recorder = yield* RunRecorder;
  while (true) {
    yield* CrashRecovery.recover();
    const record = yield* recorder.run(run);
    if (record === undefined || record.state === "ended") return "again" as const;
    if (record.parked !== undefined) return "takeUp" as const;
    yield* Effect.sleep("200 millis");
  }
});

/** Asks the model. Nothing is shown before the response is whole, so a break, or a death, is repeated without a question. */
const ask = Effect.fn("Conversation.ask")(function* (base: string, { body, run = "" }: State, way: "run" | "takeUp") {
  const processor = yield* StreamProcessor;
  const client = yield* ProviderClient;
  const { tool } = yield* Seats;
  const key = Redacted.value(yield* Config.Redacted("ANTHROPIC_API_KEY"));
  const headers = { "x-api-key": key, "anthropic-version": "2023-06-01" };
  const transcript = JSON.stringify(body);
  const request = {
    provider: { id: protocol.id },
    tools: [tool],
    reveal: "on_complete" as const,
    transcript,
    attempt: ({ bytes, delivery }: AttemptContext) =>
      client.stream({ protocol, url: `${base}/messages`, headers, body, bytes, delivery }),
    observe: AnthropicMessages.observe,
  };
  const events =
    way === "run" ? processor.run({ ...request, runId: run }) : processor.takeUp(run, { request, transcript });
  const collector = Continuation.collector(protocol.id);
  const calls: Array<ReadyCall> = [];
  let said = "";
  yield* Stream.runForEach(events, (event) =>
    Effect.sync(() => {
      if (event._tag !== "Part") return;
      collector.take(event.attempt, event.ordinal, event.part);
      calls.push(...(event.calls ?? []));
      said += Continuation.textOf(event.part);
    }),
  );
  return { calls, response: { received: collector.received(), said } };
});

/** Plays a turn, from the step that its row names. */
const say = Effect.fn("Conversation.say")(function* (
  { base, id, opening }: { readonly base: string; readonly id: string; readonly opening: State },
  { text, turn }: { readonly text: string; readonly turn: string },
) {
  const seats = yield* Seats;
  yield* Effect.logInfo(`turn ${turn} of ${id}`);
  const row = yield* rowOf(id, opening);
  let { state } = row;
  if (state.turn !== turn)
    state = yield* row.save({ body: Continuation.userTurn(protocol.id, state.body, text), turn });
  while (true) {
    let calls: ReadonlyArray<ReadyCall> = [];
    if (state.response === undefined) {
      const way = state.run === undefined ? "again" : yield* wayOn(state.run);
      if (way === "again") state = yield* row.save({ ...state, run: randomUUID() });
      const asked = yield* ask(base, state, way === "again" ? "run" : "takeUp");
      calls = asked.calls;
      state = yield* row.save({ ...state, response: asked.response });
    }
    const { body, response, run = "" } = state;
    if (response === undefined) continue;
    // The response is saved before its tools run. A call that fails is told to the model as what the record says of it.
    yield* Effect.forEach(calls, (call) => Effect.exit(seats.tool.run(call, call)), { discard: true });
    const outcomes = yield* CallOutcomes.of(run, [seats.tool]);
    const { received, said } = response;
    const next = { body, received, calls: outcomes, results: yield* seats.results(run) };
    state = yield* row.save({ body: yield* Effect.fromResult(Continuation.build(protocol.id, next)), turn });
    if (!received.items.some(({ type, whole }) => type === "call" && whole)) return said;
  }
});

/** The conversations of a node. */
export const layer = (model: string, base: string) =>
  Conversation.toLayer(
    Effect.gen(function* () {
      const { entityId } = yield* Entity.CurrentAddress;
      const { description } = yield* Seats;
      const system = "You book seats, and say in a few words what you did.";
      const body = { model, stream: true, max_tokens: 4_096, system, messages: [], tools: [description] };
      return Conversation.of({
        Say: ({ payload }) =>
          say({ base, id: entityId, opening: { body, turn: "" } }, payload).pipe(
            // A failure of the node ends this try alone: the cluster keeps the message, and begins again where the row says.
            Effect.catch((error) =>
              error._tag === "RunInterrupted" && error.reason !== "taken_over"
                ? new TurnFailed({ reason: "interrupted", message: error.message })
                : Effect.die(error),
            ),
          ),
      });
    }),
    { maxIdleTime: "5 minutes" },
  );
