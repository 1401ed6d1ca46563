/**
 * Simulates one provider at the end of a line: it receives requests, refuses those over a limit, and streams its answers.
 */
import { Cause, Effect, Stream } from "effect";
import { type ProviderError, providerError } from "../../src/client/ProviderError.ts";
import type { Delivery } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { AttemptPath } from "../../src/paths/Path.ts";
import type { AttemptContext } from "../../src/runtime/contract/RunOptions.ts";
import type { Part } from "./Answer.ts";
import type { Asker, Diary, RunEntry, SentRequest } from "./Diary.ts";
import type { Connection, Line } from "./Line.ts";
import type { VirtualTime } from "./VirtualTime.ts";
import type { Limit } from "./Weather.ts";

/** Transit time of a packet, and time from a request to its response head, in milliseconds. */
const packetMs = 10;
export const headMs = 100;

/** A request and the answer it gets. */
export interface Asked extends Asker {
  readonly run: RunEntry;
  /** True if the attempt reports how its path is probed, as a client does. Otherwise the run's options do, as a relay's. */
  readonly reports: boolean;
  readonly answer: ReadonlyArray<Part>;
}

/** An item for the next pull. */
type Said =
  | { readonly _tag: "part"; readonly part: Part }
  | { readonly _tag: "failed"; readonly error: ProviderError }
  | { readonly _tag: "end" };

/** The parts of the world that an exchange needs. */
export interface Served {
  readonly time: VirtualTime;
  readonly diary: Diary;
  readonly line: Line;
  readonly limits: ReadonlyArray<Limit>;
}

/**
 * Opens an attempt.
 *
 * @param context the library's reporters
 */
export const attemptOf = (
  served: Served,
  asked: Asked,
  context: Pick<AttemptContext, "delivery" | "bytes">,
): Stream.Stream<Part, ProviderError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      if (asked.reports) (yield* AttemptPath)?.({ id: `https://provider-${asked.path}`, way: served.line.way });
      const exchange = yield* Effect.acquireRelease(
        Effect.sync(() => new Exchange(served, asked, context)),
        (opened) => Effect.sync(() => opened.close()),
      );
      return Stream.fromPull(Effect.succeed(exchange.pull));
    }),
  );

class Exchange {
  readonly #served: Served;
  readonly #asked: Asked;
  readonly #context: Pick<AttemptContext, "delivery" | "bytes">;
  readonly #ready: Array<Said> = [];
  #waiting: ((said: Said) => void) | undefined;
  #cancel: () => void = () => undefined;
  #connection: Connection | undefined;
  #request: SentRequest | undefined;
  #delivery: Delivery = "not_sent";
  readonly #from: number;
  #over = false;
  #ended = false;

  constructor(served: Served, asked: Asked, context: Pick<AttemptContext, "delivery" | "bytes">) {
    this.#served = served;
    this.#asked = asked;
    this.#context = context;
    this.#from = served.time.now;
    asked.run.connects += 1;
    context.delivery("not_sent");
    const cancel = served.line.connect((it) => {
      if (it._tag === "failed") this.#fail(it.failure);
      else this.#write(it.connection);
    });
    if (this.#connection === undefined) this.#cancel = cancel;
  }

  readonly pull = Effect.callback<readonly [Part], ProviderError | Cause.Done>((resume) => {
    const take = (said: Said): void => {
      this.#waiting = undefined;
      if (said._tag === "part") resume(Effect.succeed([said.part]));
      else if (said._tag === "failed") resume(Effect.fail(said.error));
      else resume(Cause.done());
    };
    const said = this.#ready.shift();
    if (said !== undefined) take(said);
    else this.#waiting = take;
    return Effect.sync(() => {
      this.#waiting = undefined;
    });
  });

  /** The client has finished the response or abandons it. */
  close(): void {
    this.#cancel();
    const connection = this.#connection;
    if (connection !== undefined) {
      if (this.#ended) this.#served.line.free(connection);
      else this.#served.line.close(connection);
    }
    if (!this.#over && !this.#ended && this.#request?.answered === true) this.#request.cut = "silent";
    this.#over = true;
  }

  #write(connection: Connection): void {
    const { line, time } = this.#served;
    this.#connection = connection;
    this.#deliver("ambiguous");
    const { key, model, path, run } = this.#asked;
    const request: SentRequest = {
      ...{ path, key, model, run: run.run, at: time.now, from: this.#from },
      ...{ reached: false, answered: false, refused: false, cut: "no" },
    };
    this.#request = request;
    run.requests.push(request);
    run.waitsFrom = undefined;
    connection.onReset = () => {
      if (request.answered) request.cut = "broke";
      this.#fail({ kind: "transport", operation: request.answered ? "body" : "head", code: "ECONNRESET" });
    };
    this.#cancel = time.after(packetMs, () => line.carry(connection, () => this.#received(connection, request)));
  }

  #received(connection: Connection, request: SentRequest): void {
    if (this.#over) return;
    const { line, time } = this.#served;
    request.reached = true;
    const limit = this.#limit();
    this.#cancel = time.after(headMs - packetMs, () =>
      line.carry(connection, () => {
        if (this.#over) return;
        this.#deliver("accepted");
        this.#context.bytes(1);
        if (limit === undefined) {
          request.answered = true;
          this.#stream(connection, 0);
        } else this.#refuse(limit);
      }),
    );
  }

  #limit(): Limit | undefined {
    const { limits, time } = this.#served;
    const { key, model } = this.#asked;
    const holds = (it: Limit) => it.from <= time.now && time.now < it.to && it.model === model;
    return limits.find((it) => holds(it) && (it.key === undefined || it.key === key));
  }

  #refuse(limit: Limit): void {
    const { diary, time } = this.#served;
    const { key, model, path } = this.#asked;
    if (this.#request !== undefined) this.#request.refused = true;
    const waitMs = Math.max(1, Math.ceil((limit.to - time.now) / 1_000)) * 1_000;
    if (limit.announced) {
      diary.refusals.push({ path, key, model, kind: limit.kind, at: time.now, until: time.now + waitMs });
    }
    this.#ended = true;
    this.#fail({
      kind: limit.kind,
      status: limit.kind === "overloaded" ? 529 : 429,
      ...(limit.announced ? { retry_after_ms: waitMs } : {}),
    });
  }

  #stream(connection: Connection, at: number): void {
    const part = this.#asked.answer[at];
    if (part === undefined) return;
    const { line, time } = this.#served;
    this.#cancel = time.after(part.delayMs, () =>
      line.carry(connection, () => {
        if (this.#over) return;
        this.#context.bytes(100);
        this.#say({ _tag: "part", part });
        if (part.word !== "end") return this.#stream(connection, at + 1);
        this.#ended = true;
        this.#say({ _tag: "end" });
      }),
    );
  }

  #deliver(delivery: Delivery): void {
    this.#delivery = delivery;
    this.#context.delivery(delivery);
  }

  #fail(failure: Failure): void {
    if (this.#over) return;
    this.#over = true;
    this.#say({ _tag: "failed", error: providerError(failure, this.#delivery) });
  }

  #say(said: Said): void {
    if (this.#waiting === undefined) this.#ready.push(said);
    else this.#waiting(said);
  }
}
