/**
 * An answer by code, in Effect: a retry if it repeats nothing but text, else the default.
 */
import { Effect, Layer, Stream } from "effect";
import { Observation, RunRecorder, StreamProcessor, UserDecisions } from "effect-stream-recovery";

let requests = 0; // your provider: its first response breaks after text
const attempt = () =>
  ++requests === 1
    ? Stream.concat(Stream.make("Hello"), Stream.fail("socket hang up"))
    : Stream.make("Hello", " world", "[end]");
const observe = (part: string) => (part === "[end]" ? Observation.terminal("stop") : Observation.text(part.length));

const answers = UserDecisions.layerAsk(({ choices, default_choice, may_repeat, message }) =>
  Effect.sync(() => {
    console.log(message);
    return choices.includes("retry") && may_repeat.length === 0 ? "retry" : default_choice;
  }),
);

const program = Effect.gen(function* () {
  const run = (yield* StreamProcessor).run({ provider: { id: "example" }, tools: [], attempt, observe });
  let shown = "";
  yield* Stream.runForEach(run, (event) =>
    Effect.sync(() => {
      if (event._tag === "Part" && event.part !== "[end]") shown += event.part;
      if (event._tag === "AttemptDiscarded") shown = ""; // withdraw what the broken attempt has shown
    }),
  );
  console.log(shown);
});
const services = StreamProcessor.layer.pipe(Layer.provide([answers, RunRecorder.layerMemory()]));
await Effect.runPromise(Effect.provide(program, services));
