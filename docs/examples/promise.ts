/**
 * A loop without Effect: requests are async iterables, events arrive in a `for await`, and code answers the question after a break in text.
 */
import { Observation } from "effect-stream-recovery";
import { createRecovery } from "effect-stream-recovery/promise";

let requests = 0; // your provider: open its stream here, with `signal`
async function* attempt() {
  requests += 1;
  yield "Hello";
  if (requests === 1) throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
  yield " world";
  yield "[end]";
}
const observe = (part: string) => (part === "[end]" ? Observation.terminal("stop") : Observation.text(part.length));

await using recovery = createRecovery();
await using run = recovery.recover({ provider: { id: "example" }, tools: [], attempt, observe });
let shown = "";
for await (const event of run) {
  if (event._tag === "Part" && event.part !== "[end]") shown += event.part;
  if (event._tag === "AttemptDiscarded") shown = ""; // withdraw what the broken attempt has shown
  if (event._tag === "QuestionAsked") run.answer(event.question.may_repeat.length === 0 ? "retry" : "stop");
}
console.log(shown);
