/**
 * Describes an oddity: an answer that is damaged, or legal but rare, and what must come of it in every mode.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import type { Answers, Cell, Expected, Mode } from "../Cell.ts";

/** A row of oddities; `only` where it is about some protocols. */
export interface Oddity {
  readonly name: string;
  readonly only?: ReadonlyArray<ProtocolId>;
  readonly answers: (protocol: ProtocolId) => Answers;
  readonly expect: (mode: Mode, protocol: ProtocolId) => Expected;
  readonly more?: Partial<Pick<Cell, "emptyIsFailure" | "choices" | "rawMarker" | "tools" | "heavy">>;
}
