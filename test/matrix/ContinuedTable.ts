/**
 * Prints the outcome of breaks in shown text with `continue_text` set to `auto` and to `ask`, a row for each way to break.
 */
import { Effect } from "effect";
import { ids, playAll, type Row, wrongIn } from "./ContinuedText.ts";

/** The table, and the number of cells in it with a wrong outcome. */
export interface Continued {
  readonly text: string;
  readonly wrong: number;
}

/** Plays every cell twice, with `ask` and with `auto`. */
export const play = Effect.fnUntraced(function* () {
  const auto: Array<Row> = [];
  const ask: Array<Row> = [];
  for (const id of ids) {
    auto.push(...(yield* playAll(id, "auto")));
    ask.push(...(yield* playAll(id, "ask")));
  }
  return { text: table(auto, ask), wrong: auto.filter((row) => wrongIn(row) !== "").length } satisfies Continued;
});

const table = (auto: ReadonlyArray<Row>, ask: ReadonlyArray<Row>): string => {
  const line = (name: string, which: (row: Row) => boolean): string => {
    const went = auto.filter(which);
    const cells = went.length;
    const whole = (rows: ReadonlyArray<Row>) => rows.filter((row) => row.whole).length;
    const repeated = went.filter((row) => /twice|two answers/.test(wrongIn(row)));
    const calls = repeated.filter(({ calls }) => calls.length > 1).length;
    const asked = whole(ask.filter(which));
    return `| ${[name, cells, asked, whole(went), whole(went) - asked, repeated.length - calls, calls].join(" | ")} |`;
  };
  const kinds = [...new Set(auto.map(({ kind }) => kind))];
  return [
    "| break | cells | whole with `ask` | whole with `auto` | only with `auto` | text twice | effects twice |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...kinds.flatMap((kind) =>
      (["live", "on_complete"] as const).map((reveal) =>
        line(`${kind}, \`${reveal}\``, (row) => row.kind === kind && row.reveal === reveal),
      ),
    ),
    line("all", () => true),
  ].join("\n");
};
