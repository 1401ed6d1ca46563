/**
 * Joins the parts of a continued step to the parts that a caller has read. Text is joined by the same rules as in any continuation, and the
 * text of one block stays in one block.
 *
 * A continuation has new block ids. If a block was open at the break, the text after the seam (where the continuation joins the shown text)
 * gets the id of that block. If no block was open, the continuation starts a new one.
 */
import { type LanguageModel, Response } from "effect/ai";
import type { Observation } from "../../domain/Observation.ts";
import { lifecycle } from "../../domain/Observation.ts";
import * as PlainSeam from "../../seam/PlainSeam.ts";
import type { SeamJoin, SeamPassed, TextSeam } from "../../seam/TextSeam.ts";
import type { ReadPart } from "./Parts.ts";

/** A step whose text may be continued. */
export interface SeamStep {
  readonly toolChoice: LanguageModel.ToolChoice<string>;
  /** Called with every part that was delivered to the caller. */
  readonly onPartDelivered: (part: ReadPart) => void;
}

/** Creates the seam that continues the text of a step. */
export const make = (step: SeamStep): TextSeam<ReadPart> => {
  const inner = PlainSeam.make<ReadPart>({ text: textOf, withText })();
  const isForced = isCallRequired(step.toolChoice);
  /** Id of the open text block, as the caller knows it. */
  let open: string | undefined;
  return {
    ...inner,
    begins: () => {
      open = undefined;
      inner.begins();
    },
    left: (part, observation) => {
      for (const it of part.given) {
        if (it.type === "text-start") open = it.id;
        if (it.type === "text-end" && it.id === open) open = undefined;
      }
      step.onPartDelivered(part);
      inner.left(part, observation);
    },
    plan: () => (isForced ? "forced_tool" : inner.plan()),
    joins: (plan) => new BlockJoin(inner.joins(plan), open),
  };
};

const isCallRequired = (choice: LanguageModel.ToolChoice<string>): boolean =>
  typeof choice === "string" ? choice === "required" : "tool" in choice || choice.mode === "required";

const textOf = ({ given: [part] }: ReadPart): string | undefined =>
  part?.type === "text-delta" ? part.delta : part?.type === "text" ? part.text : undefined;

const withText = (read: ReadPart, text: string): ReadPart => {
  const [part] = read.given;
  if (part?.type === "text-delta") return withPart(read, Response.makePart("text-delta", { ...part, delta: text }));
  return part?.type === "text" ? withPart(read, Response.makePart("text", { ...part, text })) : read;
};

type TextPart = Response.TextPart | Response.TextStartPart | Response.TextDeltaPart | Response.TextEndPart;

/** A text part has the same form, encoded or not. */
const withPart = (read: ReadPart, part: TextPart): ReadPart => ({ ...read, given: [part], parts: [part] });

/** Renames the text blocks of a continuation to the ids that the caller knows. */
class BlockJoin implements SeamJoin<ReadPart> {
  readonly #inner: SeamJoin<ReadPart>;
  /** Block that was open at the break; undefined after it has ended. */
  #open: string | undefined;
  /** Block of the continuation that contains the seam; undefined until text after the seam is delivered. */
  #joining: string | undefined;
  /** Blocks of the continuation whose start the caller has received. */
  readonly #begun = new Set<string>();

  constructor(inner: SeamJoin<ReadPart>, open: string | undefined) {
    this.#inner = inner;
    this.#open = open;
  }

  readonly take = (part: ReadPart, observation: Observation): SeamPassed<ReadPart> =>
    this.#renameBlocks(this.#inner.take(part, observation));

  readonly end = (): SeamPassed<ReadPart> => this.#renameBlocks(this.#inner.end());

  #renameBlocks(passed: SeamPassed<ReadPart>): SeamPassed<ReadPart> {
    if (passed.type === "unproven") return passed;
    const parts: Array<ReadPart> = [];
    const observations: Array<Observation> = [];
    const addPart = (part: ReadPart, observation: Observation): void => {
      parts.push({ ...part, observation });
      observations.push(observation);
    };
    for (const [at, part] of passed.parts.entries()) {
      for (const own of this.#blocksBefore(part)) addPart(own, lifecycle);
      const kept = this.#renamePart(part);
      if (kept !== undefined) addPart(kept, passed.observations[at] ?? part.observation);
    }
    return { ...passed, parts, observations };
  }

  /** Returns the ends and starts of blocks that the caller has to receive before a part. */
  #blocksBefore(read: ReadPart): ReadonlyArray<ReadPart> {
    const [part] = read.given;
    const begins = part?.type === "text-delta" && !this.#begun.has(part.id) && !this.#isContinuation(part.id);
    if (!begins && !isTextEnd(part)) return [];
    const { attempt, run_id } = read;
    const bare: ReadPart = { attempt, run_id, parts: [], given: [], observation: lifecycle, calls: [] };
    const own: Array<ReadPart> = [];
    if (this.#open !== undefined)
      own.push(withPart(bare, Response.makePart("text-end", { id: this.#open, metadata: {} })));
    this.#open = undefined;
    if (!begins) return own;
    this.#begun.add(part.id);
    return [...own, withPart(bare, Response.makePart("text-start", { id: part.id, metadata: {} }))];
  }

  /** True if a block continues the block that was open at the break. Only the first block with new text does. */
  #isContinuation(id: string): boolean {
    if (this.#open === undefined) return false;
    this.#joining ??= id;
    return this.#joining === id;
  }

  /**
   * Returns the part with the block id that the caller knows. Returns undefined for the end of a block whose start the caller has not
   * received.
   */
  #renamePart(read: ReadPart): ReadPart | undefined {
    const [part] = read.given;
    if (part?.type === "text-start") this.#begun.add(part.id);
    if ((part?.type !== "text-delta" && part?.type !== "text-end") || this.#begun.has(part.id)) return read;
    const id = this.#open;
    if (id === undefined) return undefined;
    if (part.type === "text-delta") return withPart(read, Response.makePart("text-delta", { ...part, id }));
    this.#open = undefined;
    return withPart(read, Response.makePart("text-end", { ...part, id }));
  }
}

/** True if an open block cannot get more text after this part. */
const isTextEnd = (part: Response.AnyPart | undefined): boolean =>
  part?.type === "finish" || part?.type === "text-start" || part?.type === "tool-params-start";
