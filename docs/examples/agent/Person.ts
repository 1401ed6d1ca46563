/**
 * The person at the terminal: sees what the agent does, types lines, and answers questions of recovery.
 */
import { Context, Effect, Layer, Option, Queue, Stdio, Stream, Terminal } from "effect";
import { UserDecisions } from "effect-stream-recovery";

/** A person who can be shown text and asked. A program with a window or a web page provides another layer of this. */
export class Person extends Context.Service<
  Person,
  {
    /** Shows text of the model as it comes. */
    readonly show: (text: string) => Effect.Effect<void>;
    /** Shows a line of its own. */
    readonly tell: (line: string) => Effect.Effect<void>;
    /** The next line that the person types; `undefined` at the end of the input. */
    readonly hear: (prompt: string) => Effect.Effect<string | undefined>;
  }
>()("examples/agent/Person") {
  static readonly layer = Layer.effect(
    Person,
    Effect.gen(function* () {
      const terminal = yield* Terminal.Terminal;
      const { stdin } = yield* Stdio.Stdio;
      const write = (text: string) => Effect.orDie(terminal.display(text));
      let isLineOpen = false;
      yield* Effect.addFinalizer(() => {
        // An input that stays open must not keep the process alive.
        process.stdin.destroy();
        return isLineOpen ? write("\n") : Effect.void;
      });
      const lines = yield* stdin.pipe(Stream.decodeText(), Stream.splitLines, Stream.toQueue({ capacity: 16 }));
      const show = (text: string) =>
        Effect.suspend(() => {
          const plain = harmless(text);
          if (plain !== "") isLineOpen = !plain.endsWith("\n");
          return write(plain);
        });
      const tell = (line: string) => Effect.suspend(() => show(`${isLineOpen ? "\n" : ""}${line}\n`));
      const hear = (prompt: string) =>
        Effect.suspend(() => show(`${isLineOpen ? "\n" : ""}${prompt}`)).pipe(
          Effect.andThen(Effect.option(Queue.take(lines))),
          Effect.map((line) => {
            // The typed line has ended the line of its prompt.
            isLineOpen = false;
            return Option.getOrUndefined(line);
          }),
        );
      return { show, tell, hear };
    }),
  );
}

/** The text without control characters: a model must not steer the terminal. */
const harmless = (text: string): string => text.replaceAll(/(?![\n\t])\p{Cc}/gu, "");

/** The text in one line of at most 200 characters. */
export const oneLine = (text: string): string => {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length <= 200 ? flat : `${flat.slice(0, 199)}…`;
};

/** The answers of the library's questions, in words. */
const answers = {
  retry: "ask the model again from the start; what you have read is withdrawn",
  continue: "continue from what is settled",
  it_ran: "the tool took effect: continue from there",
  it_did_not_run: "the tool did nothing: continue without it",
  accept: "keep the part of the answer that is there",
  stop: "end the turn",
  yes: "run it again",
  no: "go back to the question",
} as const;

type Answer = keyof typeof answers;

/** Asks until one of the choices is typed, by number or by word. The end of the input leaves the question open: `parked`. */
export const choose = Effect.fn("Person.choose")(function* <A extends Answer>(
  message: string,
  choices: ReadonlyArray<A>,
) {
  const person = yield* Person;
  yield* person.tell(`? ${message}`);
  for (const [at, choice] of choices.entries()) {
    yield* person.tell(`  ${at + 1}  ${choice.padEnd(14)} ${answers[choice]}`);
  }
  while (true) {
    const typed = yield* person.hear("answer> ");
    if (typed === undefined) return "parked" as const;
    const chosen = choices.find((choice, at) => typed.trim() === choice || typed.trim() === String(at + 1));
    if (chosen !== undefined) return chosen;
  }
});

/** Puts the questions that the policy leaves to a person. A retry that may run a tool again needs a second word. */
const ask = Effect.fn("Person.ask")(function* ({ choices, decision, may_repeat, message }: UserDecisions.Question) {
  const tools = may_repeat.map((key) => decision.calls?.find(({ call }) => call === key)?.tool ?? key).join(", ");
  const repeats = may_repeat.length === 0 ? "" : ` A retry may run again: ${oneLine(tools)}.`;
  while (true) {
    const choice = yield* choose(`${message}${repeats}`, choices);
    if (choice !== "retry" || may_repeat.length === 0) return choice;
    const sure = yield* choose(`Run again: ${oneLine(tools)}?`, ["yes", "no"]);
    if (sure !== "no") return sure === "yes" ? choice : sure;
  }
});

/** Asks the person at the terminal. */
export const layerDecisions = UserDecisions.layerAsk(ask, { by: "person" });
