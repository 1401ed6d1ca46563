/**
 * Folds a journal into the state of its chat: the next request, and the run that has not ended.
 *
 * The same fold runs live and when the journal is read back, so that the process after a kill goes on with exactly what the
 * killed one had.
 */
import { Result } from "effect";
import type * as Json from "../../domain/Json.ts";
import * as Continuation from "../../provider/Continuation.ts";
import { protocols } from "../../provider/Protocols.ts";
import { ChatRun } from "./ChatRun.ts";
import { opened, type ToolDescription } from "./Conversation.ts";
import type { Chat, Entry } from "./Entry.ts";

/** The state of a chat. */
export class ChatState {
  readonly chat: Chat;
  readonly #write: (entry: Entry) => void;
  #body: Json.JsonRecord;
  #openRun: ChatRun | undefined;
  #goesOn = false;
  #runs = 0;

  /**
   * @param chat the journal's first line
   * @param tools the descriptions of the tools, for the model
   * @param write adds a line to the journal
   */
  constructor(chat: Chat, tools: ReadonlyArray<ToolDescription>, write: (entry: Entry) => void) {
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

  /** Writes an entry, and only then applies it. */
  add(entry: Exclude<Entry, { readonly _tag: "Attempt" }>): void {
    this.#write(entry);
    this.apply(entry);
  }

  /** Writes that an attempt begins. Returns its request. */
  begin(
    entry: Extract<Entry, { readonly _tag: "Attempt" }>,
  ): Result.Result<Json.JsonRecord, Continuation.ContinuationError> {
    this.#write(entry);
    return this.#openRun?.begin(entry) ?? Result.succeed(this.#body);
  }

  /** Applies an entry that is in the journal. */
  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Chat":
        return;
      case "User":
        this.#body = Continuation.userTurn(this.chat.protocol, this.#body, entry.text);
        this.#goesOn = true;
        return;
      case "Run":
        this.#openRun = new ChatRun(entry.run, protocols.get(this.chat.protocol), this.#body);
        this.#runs += 1;
        return;
      case "End": {
        const ended = this.#openRun?.end(entry.ending);
        this.#openRun = undefined;
        if (ended === undefined) return;
        this.#body = ended.body;
        this.#goesOn = ended.goes_on;
        return;
      }
      case "Attempt":
        this.#openRun?.begin(entry);
        return;
      case "Part":
        this.#openRun?.take(entry);
        return;
      case "Discard":
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
