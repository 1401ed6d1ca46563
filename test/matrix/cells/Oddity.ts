/**
 * An oddity: an answer that is damaged, or legal but rare, and its expected outcome in every mode.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import type { Answers, Cell, Expected, Mode } from "../Cell.ts";

/** A row of oddities; `only` restricts it to some protocols. */
export interface Oddity {
  readonly name: string;
  readonly only?: ReadonlyArray<ProtocolId>;
  readonly answers: (protocol: ProtocolId) => Answers;
  readonly expect: (mode: Mode, protocol: ProtocolId) => Expected;
  readonly more?: Partial<Pick<Cell, "emptyIsFailure" | "choices" | "rawMarker" | "tools" | "heavy">>;
}
