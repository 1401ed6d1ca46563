/**
 * Folds a journal into the state of its chat: the next request, and the run that has not ended.
 *
 * Live and read back it is the same fold, so that a process that was killed goes on with exactly what it had.
 */
import { Result } from "effect";
import type * as Json from "../../domain/Json.ts";
import * as Continuation from "../../provider/Continuation.ts";
import { protocols } from "../../provider/Protocols.ts";
import { Answering } from "./ChatRun.ts";
import { opened, type ToolDescription } from "./Conversation.ts";
import type { Chat, Entry } from "./Entry.ts";

/** The state of a chat. */
export class Transcript {
  readonly chat: Chat;
  readonly #write: (entry: Entry) => void;
  #body: Json.JsonRecord;
  #answering: Answering | undefined;
  #goesOn = false;
  #runs = 0;

  /**
   * @param chat the journal's first line
   * @param tools what the model is told of the tools
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
  get answering(): Answering | undefined {
    return this.#answering;
  }

  /** The model has to be asked again before the user's turn comes. */
  get goesOn(): boolean {
    return this.#goesOn;
  }

  /** The last turn has not come to its end. */
  get isOpen(): boolean {
    return this.#answering !== undefined || this.#goesOn;
  }

  /** Runs so far. */
  get runs(): number {
    return this.#runs;
  }

  /** Writes an entry, and only then counts it. */
  add(entry: Exclude<Entry, { readonly _tag: "Attempt" }>): void {
    this.#write(entry);
    this.apply(entry);
  }

  /** Writes that an attempt begins. Returns its request. */
  begin(
    entry: Extract<Entry, { readonly _tag: "Attempt" }>,
  ): Result.Result<Json.JsonRecord, Continuation.ContinuationError> {
    this.#write(entry);
    return this.#answering?.begin(entry) ?? Result.succeed(this.#body);
  }

  /** Counts an entry that is in the journal. */
  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Chat":
        return;
      case "User":
        this.#body = Continuation.userTurn(this.chat.protocol, this.#body, entry.text);
        this.#goesOn = true;
        return;
      case "Run":
        this.#answering = new Answering(entry.run, protocols.get(this.chat.protocol), this.#body);
        this.#runs += 1;
        return;
      case "End": {
        const ended = this.#answering?.end(entry.ending);
        this.#answering = undefined;
        if (ended === undefined) return;
        this.#body = ended.body;
        this.#goesOn = ended.goes_on;
        return;
      }
      case "Attempt":
        this.#answering?.begin(entry);
        return;
      case "Part":
        this.#answering?.take(entry);
        return;
      case "Discard":
        this.#answering?.discard(entry);
        return;
      case "Started":
        this.#answering?.started(entry);
        return;
      case "Result":
        this.#answering?.settled(entry);
        return;
      case "Judged":
        this.#answering?.judged(entry);
    }
  }
}
