/**
 * Folds a journal into the state of its chat: the next request, and the run that has not ended.
 *
 * The same fold runs live and when the journal is read back, so that the process after a kill goes on with exactly what the
 * killed one had.
 */
import { Effect, Result, Semaphore } from "effect";
import type * as Json from "../../domain/Json.ts";
import * as Continuation from "../../provider/Continuation.ts";
import { protocols } from "../../provider/Protocols.ts";
import { ChatRun } from "./ChatRun.ts";
import { opened, type ToolDescription } from "./Conversation.ts";
import type { Chat, Entry } from "./Entry.ts";
import type { Journal } from "./Journal.ts";
import { SpokenTurn } from "./SpokenTurn.ts";

/** The state of a chat. */
export class ChatState {
  readonly chat: Chat;
  readonly #write: Journal["append"];
  /** One line at a time is written and applied: both are in the same order. */
  readonly #lock = Semaphore.makeUnsafe(1);
  #body: Json.JsonRecord;
  #openRun: ChatRun | undefined;
  #goesOn = false;
  #runs = 0;
  #turn = new SpokenTurn(0, undefined);

  /**
   * @param chat the journal's first line
   * @param tools the descriptions of the tools, for the model
   * @param write adds a line to the journal
   */
  constructor(chat: Chat, tools: ReadonlyArray<ToolDescription>, write: Journal["append"]) {
    this.chat = chat;
    this.#write = write;
    this.#body = opened({ ...chat, tools });
  }

  /** The next request, without the run that has not ended. */
  get body(): Json.JsonRecord {
    return this.#body;
  }

  /** The run that has not ended. */
  get openRun(): ChatRun | undefined {
    return this.#openRun;
  }

  /** Whether the model has to be asked again before it is the user's turn. */
  get goesOn(): boolean {
    return this.#goesOn;
  }

  /** Whether the last turn has not ended. */
  get isOpen(): boolean {
    return this.#openRun !== undefined || this.#goesOn;
  }

  /** The number of runs so far. */
  get runs(): number {
    return this.#runs;
  }

  /** The newest turn. */
  get turn(): SpokenTurn {
    return this.#turn;
  }

  /** Writes an entry, and only then applies it: what is written is applied, also where the writer is interrupted. */
  add(entry: Exclude<Entry, { readonly _tag: "Attempt" }>): Effect.Effect<void> {
    return this.#written(entry, () => this.apply(entry));
  }

  /** Writes that an attempt begins. Gives its request. */
  begin(
    entry: Extract<Entry, { readonly _tag: "Attempt" }>,
  ): Effect.Effect<Result.Result<Json.JsonRecord, Continuation.ContinuationError>> {
    return this.#written(entry, () => {
      this.#turn.begin(entry);
      return this.#openRun?.begin(entry) ?? Result.succeed(this.#body);
    });
  }

  #written<A>(entry: Entry, then: () => A): Effect.Effect<A> {
    return Effect.uninterruptible(this.#lock.withPermits(1)(Effect.map(this.#write(entry), then)));
  }

  /** Applies an entry that is in the journal. */
  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Chat":
        return;
      case "User":
        this.#body = Continuation.userTurn(this.chat.protocol, this.#body, entry.text);
        this.#goesOn = true;
        this.#turn = new SpokenTurn(this.#turn.number + 1, entry.text);
        return;
      case "Run":
        this.#openRun = new ChatRun(entry.run, protocols.get(this.chat.protocol), this.#body);
        this.#runs += 1;
        return;
      case "End": {
        const ended = this.#openRun?.end(entry.ending);
        this.#openRun = undefined;
        this.#turn.ended(entry.ending);
        if (ended === undefined) return;
        this.#body = ended.body;
        this.#goesOn = ended.goes_on;
        return;
      }
      case "Attempt":
        this.#turn.begin(entry);
        this.#openRun?.begin(entry);
        return;
      case "Part":
        this.#turn.take(entry, this.#openRun?.take(entry));
        return;
      case "Discard":
        this.#turn.discard(entry);
        this.#openRun?.discard(entry);
        return;
      case "Started":
        this.#openRun?.started(entry);
        return;
      case "Result":
        this.#openRun?.settled(entry);
        return;
      case "Judged":
        this.#openRun?.judged(entry);
    }
  }
}
