/**
 * Decides what becomes of a call that names a turn: pure, by the journal and by what this owner does.
 *
 * A cluster delivers a call at least once, and a caller that heard nothing says it again. What may run is decided here and by the
 * journal alone: a turn begins once.
 */
import { ConversationError } from "./ConversationError.ts";
import type { Order } from "./Protocol.ts";

/** How a conversation is when a call comes. */
export interface Standing {
  /** Turns that the journal holds. */
  readonly turns: number;
  /** What was said in the newest one. */
  readonly asked: string | undefined;
  /** Whether the newest one has not ended. */
  readonly isOpen: boolean;
  /** Whether this owner is at it. */
  readonly isDriven: boolean;
  /** Which rest the newest one is in, where this owner was at it: a question is open, or its limit of requests was reached. */
  readonly rest: string | undefined;
}

/** A turn by its number, and what was said in it. */
export interface NumberedTurn {
  readonly number: number;
  readonly asked: string | undefined;
}

/**
 * The newest turn.
 *
 * @param written by the journal
 * @param begun by the call that has just begun one here: its line comes later
 */
export const newestOf = (written: NumberedTurn, begun: NumberedTurn | undefined): NumberedTurn =>
  begun !== undefined && begun.number > written.number ? begun : written;

/** What becomes of a call. */
export type Move = "begin" | "go_on" | "tell" | ConversationError;

/** Decides. */
export const moveOf = ({ go_on, text, turn }: Order, standing: Standing): Move => {
  const { asked, isDriven, isOpen, rest, turns } = standing;
  if (turn === turns + 1 && text !== undefined) {
    return isOpen ? refused("open", `turn ${turns} has not ended; it is gone on with first`) : "begin";
  }
  if (turn !== turns || turn === 0) {
    return refused("out_of_turn", `turn ${turn} was asked for, and the conversation has ${turns}`);
  }
  if (text !== undefined && text !== asked) {
    return refused("taken", `another caller has said something else in turn ${turn}`);
  }
  if (!isOpen || isDriven || (rest !== undefined && rest !== go_on)) return "tell";
  return "go_on";
};

const refused = (reason: ConversationError["reason"], message: string): ConversationError =>
  new ConversationError({ reason, message });
